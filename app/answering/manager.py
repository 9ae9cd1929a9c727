"""Manages runs: accepts, executes, follows and stops them."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from types import TracebackType
from typing import Self, cast
from uuid import uuid4

from app.access.authority import limit_rights
from app.answering.following import follow_elsewhere, note_followed
from app.answering.parts import RunParts
from app.answering.requests import AcceptedRun, Ask, Branch, read_events
from app.answering.run_execution import RunExecution
from app.support.cancelling import finish
from domain.errors import Draining, Forbidden, UnknownRun, UnknownThread
from domain.events import Event, Failed
from domain.execution.budget import Budget
from domain.execution.streams import StreamedEvent
from domain.people.access import Caller
from domain.runs import Lease, RunRequest, RunStatus
from domain.scope import Scope
from domain.state import TurnInput

logger = logging.getLogger("askgraph.runs")

DRAIN_SECONDS = 5.0
"""Seconds that runs may take to finish once the process is told to end."""
STEP_SECONDS = 2.0
"""Seconds that a draining process then waits for the current steps, before it hands their runs over as well."""


class RunManager:
    """Starts runs, executes those that this process holds a lease of, and follows any.

    Use it as a context manager: leaving it waits for the runs of this process; leaving it with an error stops them.
    """

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._executions: dict[str, RunExecution] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: AsyncExitStack | None = None
        self._draining: asyncio.Task[None] | None = None
        parts.queue.watch_leases(on_stop=self._stop_here, on_lost=self._give_up)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            for execution in self._executions.values():
                execution.stop()
        await self.close()

    async def close(self) -> None:
        """Wait for the runs of this process, and end the worker."""
        for execution in self._executions.values():
            execution.hurry()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._working is not None:
            working, self._working = self._working, None
            await working.aclose()

    async def work(self, concurrency: int = 8) -> None:
        """Also execute, `concurrency` at once, runs that no process executes: those that waited for another run of
        their thread, and those whose process has died. Returns at once."""
        if self._working is None:
            self._working = AsyncExitStack()
            await self._working.enter_async_context(self._parts.queue.work(self.execute, concurrency=concurrency))

    async def drain(self, seconds: float = DRAIN_SECONDS, step_seconds: float = STEP_SECONDS) -> None:
        """Take no new runs, and hand unfinished ones to other processes after `seconds`: after the current step, or
        before it where the step takes longer than `step_seconds`. Further calls wait for the first."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(seconds, step_seconds))
        await asyncio.shield(self._draining)

    async def _drain(self, seconds: float, step_seconds: float) -> None:
        self._parts.queue.stop_taking()
        if self._tasks:
            await asyncio.wait(self._tasks.copy(), timeout=seconds)
        for execution in self._executions.values():
            execution.drain()
        if self._tasks:
            await asyncio.wait(self._tasks.copy(), timeout=step_seconds)
        for execution in list(self._executions.values()):
            execution.leave()
        if self._tasks:
            await asyncio.wait(self._tasks.copy(), timeout=step_seconds)

    @property
    def is_draining(self) -> bool:
        """True once the process is about to end."""
        return self._draining is not None

    async def start(self, ask: Ask) -> AcceptedRun:
        """Accept a question: the one way in, for every protocol. Its run is started, and continues whether anybody
        follows it or not.

        Raises everything that is wrong with the request, before it costs anything: `QuestionError`, `UnknownMode`,
        `AssistantError`, `FilterError`, `UnknownDocument`, `UnknownThread`, `ThreadBusy`, `TooManyRuns`, `BudgetSpent`,
        `Saturated`, `Draining`, `DatabaseUnavailable`. Later faults end the run with an `error` event.
        """
        parts = self._parts
        self._check_room()
        run_id = str(uuid4())
        workspace_id = ask.scope.workspace_id
        profile = await parts.modes.find(ask.scope, ask.mode)
        turn = ask.as_turn(run_id, profile)
        profile.documents.narrow(ask.scope)
        if ask.thread_id is not None and not await parts.threads.is_open_to(ask.scope, ask.thread_id):
            raise UnknownThread
        if ask.scope.document_ids is not None:
            await parts.documents.corpus_fingerprint(ask.scope)
        request = RunRequest(
            run_id,
            ask.thread_id or str(uuid4()),
            workspace_id,
            turn,
            begins_thread=ask.thread_id is None,
            history=list(ask.history),
            caller=ask.caller.name,
            noted=dict(ask.noted),
            anew=ask.anew,
            leaves_unread=ask.leaves_unread,
        )
        started = await self._accept(request, ask.caller, wait=ask.when_busy != "reject")
        if ask.thread_id is not None and ask.when_busy == "interrupt":
            # Only now that this run is accepted: of several that interrupt at once, each stops those before it.
            for status in await parts.queue.list_unfinished(workspace_id, ask.thread_id):
                if status.request.run_id == run_id:
                    break
                # What somebody else asks is waited for.
                if ask.caller.may_change(status.request.caller):
                    await self.stop(workspace_id, status.request.run_id)
        return started

    async def resume(self, branch: Branch) -> AcceptedRun:
        """Start a run from a saved state. The answer cache is neither read nor written."""
        values = limit_rights(branch.values, branch.caller.groups)
        turn = cast(TurnInput, {key: values[key] for key in TurnInput.__annotations__})
        request = RunRequest(
            values["run_id"],
            branch.thread_id,
            values["scope"]["workspace_id"],
            turn,
            forked_from=branch.forked_from,
            caller=branch.caller.name,
        )
        return await self._accept(request, branch.caller, wait=False)

    async def ask(self, ask: Ask) -> AsyncGenerator[Event]:
        """Start a run and return its events. Raises what `start` raises."""
        return read_events(self.follow(await self.start(ask)))

    async def follow(self, run: AcceptedRun, after: str | None = None) -> AsyncGenerator[StreamedEvent]:
        """Yield the events of a run past the id `after`, to its end, even where another process takes the run over."""
        note_followed(run.workspace_id, run.run_id)
        if run.broadcast is not None and run.broadcast.reaches(after):
            async with aclosing(run.broadcast.follow(after)) as events:
                async for event in events:
                    after = event.id or after
                    yield event
                    if event.is_end:
                        return
        elsewhere = follow_elsewhere(
            self._parts.queue, self._parts.streams, run.workspace_id, run.run_id, after, self._is_over
        )
        async with aclosing(elsewhere) as events:
            async for event in events:
                yield event
                if event.is_end:
                    return
        message = "This server is about to stop. The answer goes on elsewhere: come back for the run's other events."
        yield StreamedEvent.of(Failed(type="error", code=Draining().code, message=message, retryable=True), "")

    async def follow_run(
        self, workspace_id: str, run_id: str, after: str | None = None
    ) -> AsyncGenerator[StreamedEvent]:
        """Return the events of any run past the id `after`, past and future ones.

        Raises `UnknownRun`.
        """
        status = await self.read_status(workspace_id, run_id)
        execution = self._executions.get(run_id)
        broadcast = None if execution is None else execution.broadcast
        return self.follow(AcceptedRun(run_id, status.request.thread_id, workspace_id, broadcast), after)

    async def read_status(self, workspace_id: str, run_id: str) -> RunStatus:
        """Return the status of any run.

        Raises `UnknownRun`, `DatabaseUnavailable`.
        """
        status = await self._parts.queue.get(workspace_id, run_id)
        if status is None:
            raise UnknownRun(_describe_unknown(run_id))
        return status

    async def require(self, asker: Scope, *run_ids: str) -> None:
        """Raise `UnknownRun` where the asker may not read what one of the runs might have been shown."""
        if hidden := set(run_ids) - await self._parts.queue.list_readable(asker, run_ids):
            raise UnknownRun(_describe_unknown(min(hidden)))

    async def cancel(self, caller: Caller, asker: Scope, run_id: str) -> RunStatus:
        """Stop a run on behalf of a caller, who has asked it or has the right `admin`. Returns its status then.

        Raises `UnknownRun`, `Forbidden`, `DatabaseUnavailable`.
        """
        await self.require(asker, run_id)
        status = await self.read_status(asker.workspace_id, run_id)
        if not caller.may_change(status.request.caller):
            raise Forbidden("Somebody else has asked this. Stopping it needs the right 'admin'.")
        return await self.stop(asker.workspace_id, run_id)

    async def stop(self, workspace_id: str, run_id: str) -> RunStatus:
        """Stop a run, wherever it is executed; its answer is what it has written so far. Returns its status then.

        Raises `UnknownRun`, `DatabaseUnavailable`.
        """
        status = await self.read_status(workspace_id, run_id)
        if status.ended is not None:
            return status
        self._stop_here(run_id)
        await self._parts.queue.request_stop(workspace_id, run_id)
        return await self.read_status(workspace_id, run_id)

    async def execute(self, lease: Lease) -> None:
        """Execute a run whose lease this process holds, to its end."""
        execution = self._begin(lease)
        if lease.stop_requested:
            execution.stop()
        if self._draining is not None:
            execution.leave()
        self._parts.admission.enter()
        task = self._spawn(execution)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            execution.leave()
            await asyncio.wait({task})
            raise

    async def _accept(self, request: RunRequest, caller: Caller, *, wait: bool) -> AcceptedRun:
        admission, limits, lease = self._parts.admission, self._parts.limits, None
        self._check_room()
        admission.enter()
        try:
            try:
                # Within: whoever leaves while this waits has perhaps been counted.
                expected = Budget.model_validate(request.turn["profile"]["budget"]).expect()
                await limits.begin_run(caller, request.run_id, expected)
                lease = await self._parts.queue.accept(request, wait=wait)
            except BaseException:
                await finish(lambda: limits.end_run(caller.name, request.run_id))
                raise
        finally:
            if lease is None:
                admission.leave()
        if lease is None:
            # The run waits: make sure that some process will take it.
            await self.work()
            return AcceptedRun(request.run_id, request.thread_id, request.workspace_id)
        execution = self._begin(lease)
        if self._draining is not None:
            # The process was told to end while the run was being accepted: another one begins it.
            execution.leave()
        self._spawn(execution)
        return AcceptedRun(request.run_id, request.thread_id, request.workspace_id, execution.broadcast)

    def _check_room(self) -> None:
        if self._draining is not None:
            raise Draining
        self._parts.admission.check()

    def _begin(self, lease: Lease) -> RunExecution:
        execution = RunExecution(self._parts, lease)
        self._executions[lease.request.run_id] = execution
        return execution

    def _spawn(self, execution: RunExecution) -> asyncio.Task[None]:
        def forget(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._parts.admission.leave()

        task = asyncio.create_task(self._perform(execution))
        self._tasks.add(task)
        task.add_done_callback(forget)
        return task

    async def _perform(self, execution: RunExecution) -> None:
        run_id = execution.request.run_id
        try:
            await execution.perform()
        except Exception:
            logger.exception("the end of run %s could not be stored", run_id)
        finally:
            if self._executions.get(run_id) is execution:
                del self._executions[run_id]

    def _is_over(self) -> bool:
        """Return True once this process has no run left and takes none."""
        return self._draining is not None and (not self._executions or self._draining.done())

    def _stop_here(self, run_id: str) -> None:
        if execution := self._executions.get(run_id):
            execution.stop()

    def _give_up(self, run_id: str) -> None:
        if execution := self._executions.get(run_id):
            execution.give_up()


def _describe_unknown(run_id: str) -> str:
    return f"There is no run {run_id!r} in this workspace."
