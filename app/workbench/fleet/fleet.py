"""Replays many runs with one change, each in memory from the first step that the change affects, and reports what would
have been otherwise."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.answering.graph_pass import prepare_judgement
from app.answering.parts import RunParts
from app.history.run_list import read_all
from app.history.states import find_problem
from app.support.cases import work_through
from app.workbench.compare.endings import Ending, compare, read_ending
from app.workbench.explain.whatif import (
    AT_ONCE,
    SEARCH_ANEW,
    Variant,
    find_beginning,
    plan_variant,
    read_path,
    run_variant,
)
from app.workbench.fleet.report import FleetReport, FleetRow, Plan, make_report
from domain.errors import DamagedState, DatabaseUnavailable, NotFound, StateError
from domain.history.run_lists import RunFilter, RunSummary
from domain.ports.models import ModelUsage
from domain.ports.runs import RunLog
from domain.profile import Profile
from domain.scope import Scope
from domain.state import ExecutedStep

if TYPE_CHECKING:
    from app.workbench.debugger import Debugger

MOST_AT_ONCE = 1_000
"""Runs of one replay, whose report is one response."""
_UNREADABLE = (StateError, NotFound, DamagedState)
"""What reading a run raises whose steps are not there, or no longer."""


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

    def __init__(self, runs: "Debugger", log: RunLog, parts: RunParts, modes: Mapping[str, Profile]) -> None:
        self._runs = runs
        self._log = log
        self._parts = parts
        self._modes = modes

    async def plan(self, asker: Scope, wanted: RunFilter, variant: Variant) -> tuple[Plan, list[Planned]]:
        """Find the runs that the change affects. Calls nothing.

        Raises `StateError` where the change cannot be made, and `DatabaseUnavailable`.
        """
        planned: list[Planned] = []
        skipped, begins = Counter[str](), Counter[str]()
        runs = unaffected = 0
        async for summary in read_all(self._log, asker, wanted):
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
            steps: list[ExecutedStep] = end.values["steps"]
            path = [step["node"] for step in steps]
            if path[-1:] != [end.node]:
                skipped["steps are not kept"] += 1
                continue
            if find_problem(end.values, end.version) is not None:
                skipped["saved by another version of askgraph"] += 1
                continue
            found = find_beginning(path, end.values, variant, self._modes)
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
        used: list[ModelUsage] | None = None,
        charge: Callable[[], Awaitable[None]] | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> FleetReport:
        """Replay the runs, a few at a time. `budget` are US dollars for language models; None: they are not asked.
        With one, the runs go one after another, each only while what it cost then is left, and every price is known.
        What new calls use is added to `used`, even where this ends early, and `charge` called after each run that has
        used something: what it raises ends the others. `progress` is called with how many runs are done, of how many.
        """
        await prepare_judgement(self._parts.make_context().judges)
        used = [] if used is None else used
        spent: list[ModelUsage] = []

        async def work(each: Planned) -> FleetRow:
            if problem := _find_overspending(each, budget, spent):
                return _make_row(each, problem=problem)
            of_run: list[ModelUsage] = []
            try:
                row = await self._replay(asker, each, variant, of_run, models=budget is not None)
            finally:
                used.extend(of_run)
                spent.extend(of_run)
            if of_run and charge is not None:
                await charge()
            return row

        rows = await work_through(
            {each.summary.run_id: each for each in planned},
            work,
            at_once=AT_ONCE if budget is None else 1,
            report=progress,
        )
        return make_report(variant.label, plan, list(rows.values()))

    async def _replay(
        self, asker: Scope, each: Planned, variant: Variant, used: list[ModelUsage], *, models: bool
    ) -> FleetRow:
        try:
            run = await self._runs.read_to_repeat(asker, each.summary.run_id)
            path = read_path(run)
            start = plan_variant(run, path, variant, self._modes, asker.groups)
        except (*_UNREADABLE, DatabaseUnavailable) as error:
            # Pruned or erased since the plan was made. The other runs go on: they may have been paid for.
            return _make_row(each, problem=f"its steps could not be read any more ({error.code})")
        assert start is not None
        recorded = read_ending(run.final, path=path)
        tried = await run_variant(run, variant, start, self._parts, used, models=models)
        return _make_row(each, recorded=recorded, ending=tried.ending, used=used, problem=tried.problem)


def make_variant(changes: Mapping[str, Any], mode: str | None, *, search_anew: bool = False) -> Variant:
    """Make the change of a replay of many runs. Raises `StateError` where there is none."""
    if search_anew:
        if changes or mode is not None:
            raise StateError("--search-anew is a change of its own: leave out --mode and --set.")
        return SEARCH_ANEW
    if not changes and mode is None:
        raise StateError("Say what to change: --mode, --set or --search-anew.")
    if unfit := [key for key in changes if not key.startswith("profile.")]:
        raise StateError(f"Over many runs only knobs can be changed, not {unfit[0]!r}: profile.rerank.keep=3.")
    parts = [f"mode {mode}"] if mode else []
    return Variant("set", ", ".join([*parts, *(f"{key}={value}" for key, value in changes.items())]), changes, mode)


def _find_overspending(planned: Planned, budget: float | None, used: Sequence[ModelUsage]) -> str | None:
    """Say why the run must not begin; None where it may."""
    if budget is None:
        return None
    if unpriced := sorted({call.model for call in used if call.cost is None}):
        return f"the budget cannot be kept: the price of {', '.join(unpriced)} is not known"
    spent = sum(call.cost or 0.0 for call in used)
    if spent + planned.repeated_cost > budget or spent >= budget:
        return "it may cost more than is left of the budget"
    return None


def _make_row(
    planned: Planned,
    *,
    problem: str | None,
    recorded: Ending | None = None,
    ending: Ending | None = None,
    used: Sequence[ModelUsage] = (),
) -> FleetRow:
    return FleetRow(
        run_id=planned.summary.run_id,
        question=planned.summary.question,
        begins=planned.begins,
        recorded=recorded,
        ending=ending,
        compared=None if recorded is None or ending is None else compare(recorded, ending),
        cost=round(sum(call.cost or 0.0 for call in used), 6),
        problem=problem,
    )
