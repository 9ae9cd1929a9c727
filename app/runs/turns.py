"""A turn's life: checked, accepted, executed here or elsewhere, followed, stopped."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast
from uuid import uuid4

from app.runs.following import follow_elsewhere, read_status
from app.runs.live import LiveRun
from app.runs.taping import Player
from app.services import Services
from domain.errors import Draining
from domain.events import Done, Event, Failed
from domain.profile import Profile
from domain.question import clean_question
from domain.runs import Lease, RunRequest, RunStatus, WhenBusy
from domain.scope import DEFAULT_SCOPE, Scope
from domain.state import AnswerState, TurnInput
from domain.streams import StreamedEvent

logger = logging.getLogger("askgraph.turns")

DRAIN_SECONDS = 5.0
"""How long runs may take to finish once the process is told to end."""
STEP_SECONDS = 3.0
"""How long a draining process waits for the steps that are being taken, before it leaves them to others as well."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as it arrives, before anything is checked."""

    question: str
    scope: Scope = DEFAULT_SCOPE
    thread_id: str | None = None
    mode: str = "standard"
    when_busy: WhenBusy = "queue"

    def as_turn(self, run_id: str, profile: Profile) -> TurnInput:
        """What the graph is given. Raises `QuestionError`."""
        return TurnInput(
            run_id=run_id,
            question=clean_question(self.question),
            scope=self.scope.to_json(),
            mode=self.mode,
            profile=profile.model_dump(),
        )


@dataclass(frozen=True, slots=True)
class Branch:
    """A run that starts from a copy of a saved state, already in the thread that is its own."""

    thread_id: str
    values: AnswerState
    forked_from: dict[str, Any]
    player: Player | None = None
    """Answers what it can in place of the run's own calls."""


@dataclass(frozen=True, slots=True)
class Started:
    """A run that was accepted."""

    run_id: str
    thread_id: str
    workspace_id: str
    live: LiveRun | None = field(default=None, repr=False)
    """None where it waits for another run of its thread."""


class Turns:
    """Starts runs, executes those that this process has leases of, and follows any. Use it as a context manager:
    leaving waits for what runs; leaving with an error stops it."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._live: dict[str, LiveRun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._working: AsyncExitStack | None = None
        self._draining: asyncio.Task[None] | None = None
        services.streams.on_stop(self._stop_here)
        services.queue.watch_leases(on_stop=self._stop_here, on_lost=self._give_up)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            for live in self._live.values():
                live.stop()
        await self.close()

    async def close(self) -> None:
        """Wait for what runs, and end the worker."""
        for live in self._live.values():
            live.hurry()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._working is not None:
            working, self._working = self._working, None
            await working.aclose()

    async def work(self, concurrency: int = 8) -> None:
        """Execute, besides what is started here, the runs that no process executes, so many at once: those that waited
        for another of their thread, and those whose process has died."""
        if self._working is None:
            self._working = AsyncExitStack()
            await self._working.enter_async_context(self._services.queue.work(self.execute, concurrency=concurrency))

    async def drain(self, seconds: float = DRAIN_SECONDS, step_seconds: float = STEP_SECONDS) -> None:
        """Take no new runs; after `seconds`, let other processes go on with those that are not over: from after the
        step that is being taken, or, where that takes longer than `step_seconds`, from before it. Called again, it
        waits for the first call."""
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(seconds, step_seconds))
        await asyncio.shield(self._draining)

    async def _drain(self, seconds: float, step_seconds: float) -> None:
        self._services.queue.stop_taking()
        if self._tasks:
            await asyncio.wait(self._tasks.copy(), timeout=seconds)
        for live in self._live.values():
            live.drain()
        if self._tasks:
            await asyncio.wait(self._tasks.copy(), timeout=step_seconds)
        for live in list(self._live.values()):
            live.leave()
        if self._tasks:
            await asyncio.wait(self._tasks.copy(), timeout=step_seconds)

    async def start(self, ask: Ask) -> Started:
        """Check the question and start its run, which then goes on whether anybody follows it or not.

        Everything that is wrong with the request is raised here, before it costs anything: `QuestionError`,
        `UnknownMode`, `UnknownDocument`, `UnknownThread`, `ThreadBusy`, `Draining`, `DatabaseUnavailable`. Later
        faults end the run with an `error` event.
        """
        services = self._services
        run_id = str(uuid4())
        turn = ask.as_turn(run_id, services.find_mode(ask.mode))
        workspace_id = ask.scope.workspace_id
        if ask.scope.document_ids is not None:
            await services.documents.corpus_fingerprint(ask.scope)
        started = await self._accept(
            RunRequest(run_id, ask.thread_id or str(uuid4()), workspace_id, turn, ask.thread_id is None),
            wait=ask.when_busy != "reject",
        )
        if ask.thread_id is not None and ask.when_busy == "interrupt":
            # Once this one is accepted, so that of several that interrupt at once each stops those before it.
            for status in await services.queue.list_unfinished(workspace_id, ask.thread_id):
                if status.request.run_id == run_id:
                    break
                await self.stop(workspace_id, status.request.run_id)
        return started

    async def resume(self, branch: Branch) -> Started:
        """Run on from a saved state. Never served from the cache, and never stored in it."""
        values = branch.values
        turn = cast(TurnInput, {key: values[key] for key in TurnInput.__annotations__})  # type: ignore[literal-required]
        request = RunRequest(
            values["run_id"], branch.thread_id, values["scope"]["workspace_id"], turn, forked_from=branch.forked_from
        )
        return await self._accept(request, wait=False, player=branch.player)

    async def ask(self, ask: Ask) -> AsyncGenerator[Event]:
        """Start a run, and hand back its events. Raises what `start` raises."""
        return read_events(self.follow(await self.start(ask)))

    async def follow(self, started: Started, after: str | None = None) -> AsyncGenerator[StreamedEvent]:
        """The events of a run that was started here, to its end; wherever that comes about."""
        live = started.live
        if live is not None and live.broadcast.reaches(after):
            async with aclosing(live.broadcast.follow(after)) as events:
                async for event in events:
                    after = event.id
                    yield event
                    if event.is_end:
                        return
        elsewhere = follow_elsewhere(self._services, started.workspace_id, started.run_id, after, self._is_over)
        async with aclosing(elsewhere) as events:
            async for event in events:
                yield event
                if event.is_end:
                    return
        yield StreamedEvent.of(_say_draining(), "")

    async def follow_run(
        self, workspace_id: str, run_id: str, after: str | None = None
    ) -> AsyncGenerator[StreamedEvent]:
        """The events of any run past the id `after`: those of the past and those to come.

        Raises `UnknownRun`.
        """
        status = await read_status(self._services, workspace_id, run_id)
        return self.follow(Started(run_id, status.request.thread_id, workspace_id, self._live.get(run_id)), after)

    async def stop(self, workspace_id: str, run_id: str) -> RunStatus:
        """End a run, wherever it is executed, with what it has written so far. Returns how it stands then.

        Raises `UnknownRun`, `DatabaseUnavailable`.
        """
        status = await read_status(self._services, workspace_id, run_id)
        if status.ended is not None:
            return status
        if run_id in self._live:
            self._stop_here(run_id)
        else:
            await self._services.streams.request_stop(run_id)
        await self._services.queue.request_stop(workspace_id, run_id)
        return await read_status(self._services, workspace_id, run_id)

    async def execute(self, lease: Lease) -> None:
        """Execute a run whose lease this process has, to its end."""
        live = self._begin(lease, None)
        if lease.stop_requested:
            live.stop()
        if self._draining is not None:
            live.leave()
        task = self._spawn(live)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            live.leave()
            await asyncio.wait({task})
            raise

    async def _accept(self, request: RunRequest, *, wait: bool, player: Player | None = None) -> Started:
        if self._draining is not None:
            raise Draining
        lease = await self._services.queue.accept(request, wait=wait)
        if lease is None:
            # Whoever lets a run wait sees to it that somebody takes it.
            await self.work()
            return Started(request.run_id, request.thread_id, request.workspace_id)
        live = self._begin(lease, player)
        if self._draining is not None:
            # The process was told to end while the run was being accepted: another one begins it.
            live.leave()
        self._spawn(live)
        return Started(request.run_id, request.thread_id, request.workspace_id, live)

    def _begin(self, lease: Lease, player: Player | None) -> LiveRun:
        live = LiveRun(self._services, lease, self._follow_other, player=player)
        self._live[lease.request.run_id] = live
        return live

    def _spawn(self, live: LiveRun) -> asyncio.Task[None]:
        task = asyncio.create_task(self._perform(live))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _perform(self, live: LiveRun) -> None:
        try:
            await live.perform()
        except Exception:
            logger.exception("run %s could not be brought to an end", live.request.run_id)
        finally:
            if self._live.get(live.request.run_id) is live:
                del self._live[live.request.run_id]

    async def _follow_other(self, workspace_id: str, run_id: str) -> AsyncGenerator[StreamedEvent]:
        """The events of a run that is being executed. They end early where nobody executes it any more: the run that
        follows it may be what keeps it from being begun again."""
        live = self._live.get(run_id)
        if live is not None and live.broadcast.reaches(None):
            events = live.broadcast.follow()
        else:
            status = await self._services.queue.get(workspace_id, run_id)
            if status is None or status.state != "running":
                return
            events = follow_elsewhere(
                self._services, workspace_id, run_id, None, self._is_over, only_while_running=True
            )
        async with aclosing(events) as open_events:
            async for event in open_events:
                yield event

    def _is_over(self) -> bool:
        """Whether this process has no run any more, and takes none."""
        return self._draining is not None and (not self._live or self._draining.done())

    def _stop_here(self, run_id: str) -> None:
        if live := self._live.get(run_id):
            live.stop()

    def _give_up(self, run_id: str) -> None:
        if live := self._live.get(run_id):
            live.give_up()


def _say_draining() -> Failed:
    message = "This server is about to stop. The answer goes on elsewhere: come back for the rest of the run's events."
    return Failed(type="error", code=Draining().code, message=message, retryable=True)


async def read_events(streamed: AsyncGenerator[StreamedEvent]) -> AsyncGenerator[Event]:
    """The events of a stream, decoded."""
    async with aclosing(streamed):
        async for event in streamed:
            yield event.event


async def collect(events: AsyncGenerator[Event]) -> tuple[Done | Failed, list[Event]]:
    """Follow a turn to its end: how it ended, and all its events."""
    async with aclosing(events):
        seen = [event async for event in events]
    return cast("Done | Failed", seen[-1]), seen
