"""Replays many runs with one change, each in memory from the first step that the change affects, and reports what would
have been otherwise."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from app.answering.graph_pass import prepare_judgement
from app.history.states import find_problem
from app.support.cases import work_through
from app.workbench.compare.endings import Compared, Ending, compare, read_ending
from app.workbench.compare.judging import Judged, judge_by_model, judge_by_verifier
from app.workbench.explain.whatif import (
    AT_ONCE,
    SEARCH_ANEW,
    TrialParts,
    Variant,
    find_beginning,
    plan_variant,
    read_path,
    run_variant,
)
from app.workbench.fleet.budget import Budget
from app.workbench.fleet.fleet_journal import FleetJournal
from app.workbench.fleet.fleet_report import FleetReport, FleetRow, NodeChange, Plan, compare_nodes, make_report
from app.workbench.replay.in_memory import Start
from app.workbench.replay.rehearsal import Rehearsal
from app.workbench.replay.saved_run import SavedRun, SavedStep
from domain.errors import DamagedState, DatabaseUnavailable, NotFound, StateError
from domain.ports.models import ChatModel, ModelUsage
from domain.ports.runs import RunLog
from domain.run_lists import MOST_RUNS, RunFilter, RunSummary
from domain.scope import Scope
from domain.state import Step
from nodes.context import Ledger

MOST_REPLAYED = 10_000
"""Runs of one replay."""
MOST_AT_ONCE = 1_000
"""Runs of one replay over HTTP, whose report is one response."""
_UNREADABLE = (StateError, NotFound, DamagedState)
"""What reading a run raises whose steps are not there, or no longer."""


class Reader(Protocol):
    """Reads runs that have ended."""

    async def read_end(self, workspace_id: str, thread_id: str, run_id: str) -> SavedStep: ...

    async def read_to_repeat(self, asker: Scope, run_id: str) -> SavedRun: ...


@dataclass(frozen=True, slots=True)
class Planned:
    """A run that the change affects, and where it begins. The run itself is read again when its turn comes."""

    summary: RunSummary
    begins: str
    repeated_cost: float
    """What the steps from there on cost then, in US dollars, as far as prices are known."""
    unpriced_calls: int
    """Calls of these steps whose price is not known."""


class Fleet:
    """Replays runs of one workspace."""

    def __init__(self, runs: Reader, log: RunLog, parts: TrialParts) -> None:
        self._runs = runs
        self._log = log
        self._parts = parts

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
                end = await self._runs.read_end(asker.workspace_id, summary.thread_id, summary.run_id)
            except _UNREADABLE:
                skipped["steps are not kept"] += 1
                continue
            steps: list[Step] = end.values["steps"]
            path = [step["node"] for step in steps]
            if path[-1:] != [end.node]:
                skipped["steps are not kept"] += 1
                continue
            if find_problem(end.values, end.version) is not None:
                skipped["saved by another version of askgraph"] += 1
                continue
            found = find_beginning(path, end.values, variant, self._parts.modes)
            if found is None:
                unaffected += 1
                continue
            place, beginning = found
            begins[beginning.name] += 1
            usage = [used for step in steps[place + beginning.decides :] for used in step["usage"]]
            cost = sum(used["cost"] or 0.0 for used in usage)
            unpriced = sum(used["calls"] for used in usage if used["cost"] is None)
            planned.append(Planned(summary, beginning.name, cost, unpriced))
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
        judge: ChatModel | None = None,
        journal: FleetJournal | None = None,
        used: list[ModelUsage] | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> FleetReport:
        """Replay the runs, a few at a time. `budget` are US dollars for language models; None: they are not asked. A
        run begins only while what it may cost is left, and as long as every price is known. `judge` compares changed
        answers, without one the verifier does. Runs that the journal holds are not replayed again. What new calls
        use is added to `used`, even where this ends early. `progress` is called with how many runs are done, of how
        many.
        """
        await prepare_judgement(self._parts.judges)
        known = {} if journal is None else journal.rows
        money, used = Budget(budget), [] if used is None else used

        async def work(each: Planned) -> FleetRow:
            of_run: list[ModelUsage] = []
            try:
                return await self._replay(asker, each, variant, money, of_run, models=budget is not None, judge=judge)
            finally:
                used.extend(of_run)

        rows = await work_through(
            {each.summary.run_id: each for each in planned},
            work,
            known=known,
            keep=lambda row: None if journal is None else journal.add(row),
            at_once=AT_ONCE,
            # What a run costs now is known once one has ended.
            first_alone=budget is not None,
            report=progress,
        )
        resumed = sum(run_id in known for run_id in rows)
        name = "verifier" if judge is None else judge.name
        return make_report(variant.label, plan, list(rows.values()), judge=name, resumed=resumed)

    async def _replay(
        self,
        asker: Scope,
        each: Planned,
        variant: Variant,
        money: Budget,
        used: list[ModelUsage],
        *,
        models: bool,
        judge: ChatModel | None,
    ) -> FleetRow:
        try:
            run = await self._runs.read_to_repeat(asker, each.summary.run_id)
            path = read_path(run, self._parts.graph)
            start = plan_variant(run, path, variant, self._parts.modes)
        except (*_UNREADABLE, DatabaseUnavailable) as error:
            # Pruned or erased since the plan was made. The other runs go on: they may have been paid for.
            return _make_row(each, problem=f"its steps could not be read any more ({error.code})")
        assert start is not None
        recorded = read_ending(run.final, path=path)
        with money.reserve(each.repeated_cost, used) as problem:
            if problem is not None:
                return _make_row(each, recorded=recorded, problem=problem)
            rehearsed, problem = await run_variant(run, variant, start, self._parts, used, models=models)
            if rehearsed is None:
                return _make_row(each, recorded=recorded, cost=_add_costs(used), problem=problem)
            compared = compare(recorded, rehearsed.ending)
            judged = None
            if {"outcome", "answer"} & set(compared["flipped"]):
                judged = await self._judge(run.final, rehearsed, judge, used)
        return _make_row(
            each,
            recorded=recorded,
            ending=rehearsed.ending,
            compared=compared,
            judged=judged,
            by_node=compare_nodes(_list_repeated(run, start), _list_new(rehearsed, start)),
            taped=rehearsed.taped,
            made=rehearsed.made,
            cost=_add_costs(used),
            problem=problem,
        )

    async def _judge(
        self, recorded: Mapping[str, Any], rehearsed: Rehearsal, judge: ChatModel | None, used: list[ModelUsage]
    ) -> Judged | None:
        if rehearsed.error is not None:
            return Judged(now="worse", reason=rehearsed.error)
        now = cast(Mapping[str, Any], rehearsed.state)
        if judge is None:
            return await judge_by_verifier(recorded, now, self._parts.judges.verifier)
        ledger = Ledger()
        try:
            return await judge_by_model(recorded, now, judge, ledger)
        finally:
            used += ledger.usage

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


def make_variant(changes: Mapping[str, Any], mode: str | None, *, search_anew: bool = False) -> Variant:
    """Make the change of a replay of many runs. Raises `StateError` where there is none."""
    if search_anew:
        if changes or mode is not None:
            raise StateError("--search-anew is a change of its own: leave out --profile, --mode and --set.")
        return SEARCH_ANEW
    if not changes and mode is None:
        raise StateError("Say what to change: --profile, --mode, --set or --search-anew.")
    if unfit := [key for key in changes if not key.startswith("profile.")]:
        raise StateError(f"Over many runs only knobs can be changed, not {unfit[0]!r}: profile.rerank.keep=3.")
    parts = [f"mode {mode}"] if mode else []
    return Variant("set", ", ".join([*parts, *(f"{key}={value}" for key, value in changes.items())]), changes, mode)


def _make_row(
    planned: Planned,
    *,
    recorded: Ending | None = None,
    ending: Ending | None = None,
    compared: Compared | None = None,
    judged: Judged | None = None,
    by_node: dict[str, NodeChange] | None = None,
    taped: int = 0,
    made: int = 0,
    cost: float = 0.0,
    problem: str | None,
) -> FleetRow:
    return FleetRow(
        run_id=planned.summary.run_id,
        question=planned.summary.question,
        begins=planned.begins,
        recorded=recorded,
        ending=ending,
        compared=compared,
        judged=judged,
        by_node=by_node or {},
        taped=taped,
        made=made,
        cost=cost,
        problem=problem,
    )


def _add_costs(used: Sequence[ModelUsage]) -> float:
    return round(sum(call.cost or 0.0 for call in used), 6)


def _list_repeated(run: SavedRun, start: Start) -> list[Step]:
    """Return the recorded steps that run again."""
    place = next(place for place, step in enumerate(run.steps) if step.checkpoint_id == start.checkpoint_id)
    steps: list[Step] = run.final["steps"]
    return steps[len(steps) - (len(run.steps) - 1 - place) :]


def _list_new(rehearsed: Rehearsal, start: Start) -> list[Step]:
    known = start.values["steps"]
    steps = rehearsed.state["steps"]
    return steps[len(known) :] if steps[: len(known)] == known else steps
