"""Replays many runs with one change, each in memory from the first step that the change affects, and reports what would
have been otherwise."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import TypedDict

from app.runs.endings import Compared, Ending, compare, read_ending
from app.runs.graph_pass import prepare_judgement
from app.runs.in_memory import Start
from app.runs.rehearsal import Rehearsal
from app.runs.saved_run import SavedRun
from app.runs.whatif import AT_ONCE, Bench, Variant, plan_variant, read_path, run_variant
from domain.errors import AskgraphError, DamagedState, DatabaseUnavailable, NotFound, StateError
from domain.ports.models import ModelUsage
from domain.ports.runs import RunLog
from domain.run_lists import MOST_RUNS, RunFilter, RunSummary
from domain.scope import Scope
from domain.state import Step

MOST_REPLAYED = 10_000
"""Runs of one replay."""
_SHOWN = 20
"""Changed runs that the report shows side by side."""
_UNREADABLE = (StateError, NotFound, DamagedState)
"""What reading a run raises whose steps are not there, or no longer."""

Read = Callable[[Scope, str], Awaitable[SavedRun]]


@dataclass(frozen=True, slots=True)
class Planned:
    """A run that the change affects, and where it begins. The run itself is read again when its turn comes."""

    summary: RunSummary
    begins: str
    repeated_cost: float
    """What the steps from there on cost then, in US dollars, as far as prices are known."""
    unpriced_calls: int
    """Calls of these steps whose price is not known."""


class Plan(TypedDict):
    """What a replay would do, before it does anything."""

    runs: int
    affected: int
    unaffected: int
    """No step of these reads what would change."""
    skipped: dict[str, int]
    """Runs that cannot be replayed, by reason."""
    begins: dict[str, int]
    """Affected runs by the step that runs first."""
    repeated_cost: float
    """What the steps that run again cost then, in US dollars: about the most that language models may cost now."""
    unpriced_calls: int
    """Calls of these steps whose price is not known, and is not in `repeated_cost`."""


class FleetRow(TypedDict):
    """One run that was replayed."""

    run_id: str
    question: str
    begins: str
    recorded: Ending | None
    """None where the run could no longer be read."""
    ending: Ending | None
    compared: Compared | None
    taped: int
    made: int
    problem: str | None
    """Why there is no ending."""


class FleetReport(TypedDict):
    """What would have been otherwise."""

    plan: Plan
    tried: int
    not_tried: dict[str, int]
    """By reason."""
    changed: int
    share_changed: float
    """Of those that were tried."""
    flipped: dict[str, int]
    """Runs whose outcome, answer, citations or verdict differs."""
    outcomes: dict[str, int]
    """Changed outcomes: `abstained → answered`."""
    routes_changed: int
    citations_gained: int
    citations_lost: int
    ms_by_node: dict[str, tuple[float, float]]
    """Of the steps that ran again: then and now."""
    spent: float
    """US dollars, for new calls of models."""
    most_different: list[str]
    """The run ids of the runs that changed most."""
    runs: list[FleetRow]


class Fleet:
    """Replays runs of one workspace."""

    def __init__(self, read: Read, log: RunLog, bench: Bench) -> None:
        self._read = read
        self._log = log
        self._bench = bench

    async def plan(self, asker: Scope, wanted: RunFilter, variant: Variant) -> tuple[Plan, list[Planned]]:
        """Find the runs that the change affects. Calls nothing.

        Raises `StateError` where the change cannot be made, and `DatabaseUnavailable`.
        """
        planned: list[Planned] = []
        skipped, begins = Counter[str](), Counter[str]()
        runs = unaffected = 0
        async for summary in self._list(asker, wanted):
            runs += 1
            if summary.replay or summary.error is not None or summary.cached:
                reason = "replays" if summary.replay else "from the cache" if summary.cached else "failed or stopped"
                skipped[reason] += 1
                continue
            try:
                run = await self._read(asker, summary.run_id)
                path = read_path(run, self._bench.graph)
            except _UNREADABLE:
                skipped["steps are not kept"] += 1
                continue
            start = plan_variant(run, path, variant, self._bench.modes)
            if start is None:
                unaffected += 1
                continue
            name = _name(start)
            begins[name] += 1
            again = _list_repeated(run, start)
            usage = [used for step in again for used in step["usage"]]
            cost = sum(used["cost"] or 0.0 for used in usage)
            unpriced = sum(used["calls"] for used in usage if used["cost"] is None)
            planned.append(Planned(summary, name, cost, unpriced))
        plan = Plan(
            runs=runs,
            affected=len(planned),
            unaffected=unaffected,
            skipped=dict(skipped),
            begins=dict(begins),
            repeated_cost=round(sum(each.repeated_cost for each in planned), 6),
            unpriced_calls=sum(each.unpriced_calls for each in planned),
        )
        return plan, planned

    async def run(
        self,
        asker: Scope,
        plan: Plan,
        planned: Sequence[Planned],
        variant: Variant,
        *,
        budget: float | None = None,
        progress: Callable[[str, int, int], None] = lambda label, done, total: None,
    ) -> FleetReport:
        """Replay the runs, a few at a time. `budget` are US dollars for language models; None: they are not asked. No
        further run begins once they are spent, or a call was made whose price is not known."""
        await prepare_judgement(self._bench.judges, {"profile": {"verify": True}})
        slots, spent, done = asyncio.Semaphore(AT_ONCE), 0.0, 0
        unpriced: set[str] = set()
        times: dict[str, list[float]] = {}

        async def replay(each: Planned) -> FleetRow:
            nonlocal spent, done
            async with slots:
                try:
                    run = await self._read(asker, each.summary.run_id)
                    path = read_path(run, self._bench.graph)
                    start = plan_variant(run, path, variant, self._bench.modes)
                except (*_UNREADABLE, DatabaseUnavailable) as error:
                    # Pruned or erased since the plan was made. The other runs go on: they may have been paid for.
                    done += 1
                    progress("replayed", done, len(planned))
                    return _report_unread(each, error)
                assert start is not None
                used: list[ModelUsage] = []
                rehearsed: Rehearsal | None
                problem: str | None
                if unpriced:
                    names = ", ".join(sorted(unpriced))
                    rehearsed, problem = None, f"the budget cannot be kept: the price of {names} is not known"
                elif budget is not None and spent >= budget:
                    rehearsed, problem = None, "the budget was spent"
                else:
                    rehearsed, problem = await run_variant(run, start, self._bench, used, models=budget is not None)
                spent += sum(call.cost or 0.0 for call in used)
                unpriced.update(call.model for call in used if call.cost is None)
                if rehearsed is not None:
                    before, after = _list_repeated(run, start), _list_new(rehearsed, start)
                    for place, steps in enumerate((before, after)):
                        for step in steps:
                            times.setdefault(step["node"], [0.0, 0.0])[place] += step["ms"]
                done += 1
                progress("replayed", done, len(planned))
                recorded = read_ending(run.final, path=path)
                ending = None if rehearsed is None else rehearsed.ending
                return FleetRow(
                    run_id=run.record.run_id,
                    question=run.record.question,
                    begins=each.begins,
                    recorded=recorded,
                    ending=ending,
                    compared=None if ending is None else compare(recorded, ending),
                    taped=rehearsed.taped if rehearsed else 0,
                    made=rehearsed.made if rehearsed else 0,
                    problem=problem,
                )

        rows = await asyncio.gather(*map(replay, planned))
        return _report(plan, rows, times, spent)

    async def _list(self, asker: Scope, wanted: RunFilter) -> AsyncIterator[RunSummary]:
        after, listed = wanted.after, 0
        while listed < wanted.limit:
            page = await self._log.list_runs(
                asker, RunFilter(wanted.since, wanted.alternatives, min(MOST_RUNS, wanted.limit - listed), after)
            )
            for summary in page:
                yield summary
            if not page:
                return
            listed += len(page)
            after = page[-1].started_at, page[-1].run_id


def make_variant(changes: Mapping[str, Any], mode: str | None) -> Variant:
    """Make the change of a replay of many runs. Raises `StateError` where there is none."""
    if not changes and mode is None:
        raise StateError("Say what to change: --profile, --mode or --set.")
    if unfit := [key for key in changes if not key.startswith("profile.")]:
        raise StateError(f"Over many runs only knobs can be changed, not {unfit[0]!r}: profile.rerank.keep=3.")
    return Variant("set", "", changes, mode)


def _report_unread(planned: Planned, error: AskgraphError) -> FleetRow:
    return FleetRow(
        run_id=planned.summary.run_id,
        question=planned.summary.question,
        begins=planned.begins,
        recorded=None,
        ending=None,
        compared=None,
        taped=0,
        made=0,
        problem=f"its steps could not be read any more ({error.code})",
    )


def _name(start: Start) -> str:
    return f"after {start.after}" if start.forced is None else start.forced


def _list_repeated(run: SavedRun, start: Start) -> list[Step]:
    """Return the recorded steps that run again."""
    place = next(place for place, step in enumerate(run.steps) if step.checkpoint_id == start.checkpoint_id)
    steps: list[Step] = run.final["steps"]
    return steps[len(steps) - (len(run.steps) - 1 - place) :]


def _list_new(rehearsed: Rehearsal, start: Start) -> list[Step]:
    known = start.values["steps"]
    steps = rehearsed.state["steps"]
    return steps[len(known) :] if steps[: len(known)] == known else steps


def _report(plan: Plan, rows: list[FleetRow], times: Mapping[str, list[float]], spent: float) -> FleetReport:
    flipped, outcomes, reasons = Counter[str](), Counter[str](), Counter[str]()
    changed: list[FleetRow] = []
    gained = lost = routes = tried = 0
    for row in rows:
        ending, compared, recorded = row["ending"], row["compared"], row["recorded"]
        if ending is None or compared is None or recorded is None:
            reasons[row["problem"] or "no ending"] += 1
            continue
        tried += 1
        flipped.update(compared["flipped"])
        gained, lost = gained + len(compared["gained"]), lost + len(compared["lost"])
        routes += ending["route"] != recorded["route"]
        if "outcome" in compared["flipped"]:
            outcomes[f"{recorded['outcome']} → {ending['error'] or ending['outcome']}"] += 1
        if compared["flipped"]:
            changed.append(row)
    changed.sort(key=_weigh_change, reverse=True)
    return FleetReport(
        plan=plan,
        tried=tried,
        not_tried=dict(reasons),
        changed=len(changed),
        share_changed=round(len(changed) / tried, 4) if tried else 0.0,
        flipped=dict(flipped),
        outcomes=dict(outcomes),
        routes_changed=routes,
        citations_gained=gained,
        citations_lost=lost,
        ms_by_node={node: (round(then, 2), round(now, 2)) for node, (then, now) in times.items()},
        spent=round(spent, 6),
        most_different=[row["run_id"] for row in changed[:_SHOWN]],
        runs=rows,
    )


def _weigh_change(row: FleetRow) -> tuple[int, int]:
    compared = row["compared"]
    assert compared is not None
    return (
        ("outcome" in compared["flipped"]) * 4 + ("verdict" in compared["flipped"]) * 2 + len(compared["flipped"]),
        len(compared["gained"]) + len(compared["lost"]),
    )
