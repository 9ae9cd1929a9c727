"""The debugger: reads runs as they were saved, for those who may, and hands them to what explains them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import asdict, replace
from typing import Any
from uuid import uuid4

from app.access.limits import CallerLimits
from app.answering.following import note_followed
from app.answering.parts import RunParts
from app.support.cancelling import finish
from app.support.cases import tell_progress
from app.workbench.explain.passages import list_left_out
from app.workbench.explain.whatif import Variant, WhatIf, count_tokens, try_variants
from app.workbench.explain.why import explain_run
from app.workbench.fleet.fleet import Fleet
from app.workbench.fleet.report import Plan
from app.workbench.replay.saved_run import SavedRun, SavedStep, read_end, read_saved_run, read_steps
from domain.errors import UnknownCheckpoint, UnknownRun
from domain.execution.budget import Budget
from domain.history.run_lists import RunFilter
from domain.people.access import OWNER, Caller
from domain.ports.models import ModelUsage
from domain.ports.runs import RunLog
from domain.profile import Profile
from domain.runs import RunRecord
from domain.scope import Scope


class Debugger:
    """Reads runs."""

    def __init__(self, parts: RunParts, log: RunLog) -> None:
        self._parts = parts
        self._log = log

    async def read(self, asker: Scope, run_id: str) -> SavedRun:
        """Return a run that has ended.

        Raises `UnknownRun` where there is none, or the asker may not read what it was shown, `UnknownCheckpoint` where
        nothing of it is saved, and `DatabaseUnavailable`.
        """
        run = await self._read_unread(asker, await self.read_to_repeat(asker, run_id))
        if not run.record.cached:
            return run
        origin = await self._log.find_origin(run.record)
        if origin is None:
            return run
        # Its asker may have been shown what this one may not see.
        with suppress(UnknownRun, UnknownCheckpoint):
            made = await self._read_unread(asker, await self.read_to_repeat(asker, origin.run_id))
            return replace(run, origin=made)
        return run

    async def explain(self, asker: Scope, run_id: str) -> dict[str, Any]:
        """Say why a run ended as it did. Raises what `read` raises."""
        return await asyncio.to_thread(explain_run, await self.read(asker, run_id))

    async def _read_unread(self, asker: Scope, run: SavedRun) -> SavedRun:
        """Return the run with the passages that its searches found and it never read."""
        searches = [step for step in run.steps if step.node == "retrieve"]
        left_out = [each["chunk_id"] for step in searches for each in list_left_out(run, step)]
        if not left_out:
            return run
        passages = await self._parts.make_context().library.read_passages(asker, list(dict.fromkeys(left_out)))
        return replace(run, unread={passage.chunk_id: asdict(passage) for passage in passages})

    async def read_to_repeat(self, asker: Scope, run_id: str) -> SavedRun:
        """Return a run that has ended with what repeating it needs: without the passages that it never read. Raises
        what `read` raises."""
        record = await self._find(asker, run_id)
        with self._parts.states.translating_errors():
            return await read_saved_run(self._parts.states.graph, self._log, record)

    async def read_end(self, workspace_id: str, thread_id: str, run_id: str) -> SavedStep:
        """Return the state in which a run ended that whoever asks may read. Raises `UnknownCheckpoint` and
        `DatabaseUnavailable`."""
        with self._parts.states.translating_errors():
            return await read_end(self._parts.states.graph, workspace_id, thread_id, run_id)

    async def _find(self, asker: Scope, run_id: str) -> RunRecord:
        """Return the record of a run that has ended. Raises `UnknownRun`."""
        record = await self._log.get(asker.workspace_id, run_id)
        readable = await self._parts.queue.list_readable(asker, [run_id], steps=True)
        if record is None or run_id not in readable:
            raise UnknownRun(f"There is no run {run_id!r} in this workspace that has ended.")
        return record

    async def read_so_far(self, asker: Scope, run_id: str) -> SavedRun:
        """Return a run that has ended, or what is saved of one that has not: its steps up to now, perhaps none.

        Raises what `read` raises.
        """
        try:
            return await self.read(asker, run_id)
        except UnknownRun:
            status = await self._parts.queue.get(asker.workspace_id, run_id)
            if status is None or run_id not in await self._parts.queue.list_readable(asker, [run_id], steps=True):
                raise
            if status.ended is not None:
                # It ended between the two questions.
                return await self.read(asker, run_id)
        request = status.request
        record = RunRecord(
            run_id=run_id,
            thread_id=request.thread_id,
            workspace_id=request.workspace_id,
            mode=request.turn["mode"],
            question=request.turn["question"],
            started_at=status.started_at or status.accepted_at,
            scope=request.turn["scope"],
            forked_from=request.forked_from,
        )
        steps: list[SavedStep] = []
        with self._parts.states.translating_errors(), suppress(UnknownCheckpoint):
            steps = await read_steps(self._parts.states.graph, record.workspace_id, record.thread_id, run_id)
        return SavedRun(record, steps, untaped="Its tape is kept when it has ended.", running=True)

    async def try_variants(
        self,
        asker: Scope,
        run_id: str,
        *,
        sets: Sequence[Mapping[str, Any]] = (),
        models: bool = False,
        caller: Caller = OWNER,
    ) -> WhatIf:
        """Try what would have changed the run's end. Counts as one of the caller's runs.

        Raises what `read` and `whatif.try_variants` raise, `Saturated`, `TooManyRuns` and `BudgetSpent`.
        """
        self.check_room()
        run = await self.read(asker, run_id)
        async with self.count(caller) as trial:
            modes = await self._parts.modes.list(asker, run.record.mode)
            return await try_variants(run, self._parts, modes, asker.groups, sets=sets, models=models, used=trial.used)

    async def plan_many(self, asker: Scope, wanted: RunFilter, variant: Variant) -> Plan:
        """Return which runs the variant affects, and what replaying them may cost. Calls nothing. Raises what
        `Fleet.plan` raises."""
        fleet = await self._open_fleet(asker, variant)
        plan, _ = await fleet.plan(asker, wanted, variant)
        return plan

    async def replay_many(
        self,
        asker: Scope,
        wanted: RunFilter,
        variant: Variant,
        *,
        budget: float | None = None,
        caller: Caller = OWNER,
    ) -> AsyncGenerator[dict[str, Any]]:
        """Replay the runs that the variant affects, in memory: yield the plan, how far it has come, and the report.
        Counts as one of the caller's runs, until it is closed.

        Raises what `Fleet.plan` raises, `Saturated`, `TooManyRuns` and `BudgetSpent`.
        """
        self.check_room()
        fleet = await self._open_fleet(asker, variant)
        async with self.count(caller) as trial:
            plan, planned = await fleet.plan(asker, wanted, variant)
            for each in planned:
                note_followed(asker.workspace_id, each.summary.run_id)
            yield {"type": "plan", "plan": plan, "budget": budget}

            async def work(report: Callable[[int, int], None]) -> dict[str, Any]:
                spending: Any = {"budget": budget, "used": trial.used, "charge": trial.settle}
                done = await fleet.run(asker, plan, planned, variant, progress=report, **spending)
                return {"type": "report", "report": done}

            async with aclosing(tell_progress(work)) as events:
                async for event in events:
                    yield event

    def check_room(self) -> None:
        """Raise `Saturated` where the process has no room for another run."""
        self._parts.admission.check()

    @asynccontextmanager
    async def count(self, caller: Caller) -> AsyncIterator["Trial"]:
        """Count one of the caller's runs, and what models use for it.

        Raises `TooManyRuns` and `BudgetSpent`.
        """
        admission, trial = self._parts.admission, Trial(self._parts.limits, caller)
        admission.enter()
        try:
            # Within: whoever leaves while this waits has perhaps been counted.
            await trial.go_on()
            yield trial
        finally:
            admission.leave()
            await trial.charge(trial.id)

    def make_fleet(self, modes: Mapping[str, Profile] | None = None) -> Fleet:
        """Make what replays many runs; `modes` are those of their workspace, None: the deployment's alone."""
        return Fleet(self, self._log, self._parts, modes or self._parts.modes.deployed)

    async def _open_fleet(self, asker: Scope, variant: Variant) -> Fleet:
        modes = None if variant.mode is None else await self._parts.modes.list(asker, variant.mode)
        return self.make_fleet(modes)


class Trial:
    """One of a caller's runs that no conversation has."""

    def __init__(self, limits: CallerLimits, caller: Caller) -> None:
        self.id = str(uuid4())
        self.used: list[ModelUsage] = []
        """What models have used and nobody is charged for yet."""
        self._limits = limits
        self._caller = caller

    async def go_on(self) -> None:
        """Count it as running from now. Raises `TooManyRuns` and `BudgetSpent` where it may not."""
        await self._limits.begin_run(self._caller, self.id, Budget().expect())

    async def settle(self) -> None:
        """Charge what was used, and go on where the caller may. Raises what `go_on` raises."""
        await self.charge()
        await self.go_on()

    async def charge(self, ended: str = "") -> None:
        """Charge what was used, whoever has left, and end the run of this id."""
        tokens, dollars = count_tokens(self.used), sum(each.cost or 0.0 for each in self.used)
        self.used.clear()
        await finish(lambda: self._limits.end_run(self._caller.name, ended, tokens, dollars))
