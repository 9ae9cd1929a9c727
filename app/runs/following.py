"""Following a run of any process, while it runs and after it has ended."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from app.runs.hits import record_hits
from app.services import Services
from domain.errors import UnknownRun
from domain.events import RESTART, Content, Correction, Done, Failed
from domain.runs import RunStatus
from domain.streams import StreamedEvent, order_of


async def read_status(services: Services, workspace_id: str, run_id: str) -> RunStatus:
    """How a run stands. Raises `UnknownRun`."""
    status = await services.queue.get(workspace_id, run_id)
    if status is None:
        # Perhaps it was answered before the graph, this moment.
        await record_hits(services)
        status = await services.queue.get(workspace_id, run_id)
    if status is None:
        raise UnknownRun(f"There is no run {run_id!r} in this workspace.")
    return status


async def follow_elsewhere(
    services: Services,
    workspace_id: str,
    run_id: str,
    after: str | None,
    is_over: Callable[[], bool],
    *,
    only_while_running: bool = False,
) -> AsyncGenerator[StreamedEvent]:
    """The run's events past `after`, from its stream; where that is gone, how the run ended, as soon as it has. Before
    the run's end they end where this process `is_over`; and, with `only_while_running`, where no process executes it.
    """
    over: tuple[Done | Failed, str] | None = None
    missed = False
    async with aclosing(services.streams.follow(run_id, after)) as events:
        async for event in events:
            if is_over() and (event is None or not event.is_end):
                return
            if event is not None:
                missed = missed or not _follows(event.id, after)
                if missed and event.is_end:
                    # Redis has lost some: its memory was full, or it was emptied.
                    for retold in _retell(cast("Done | Failed", event.event), event.id):
                        yield retold
                after = event.id
                yield event
                if event.is_end:
                    return
                continue
            if over is not None:
                # Everything was in the stream before the end was stored: what is not there now, never will be.
                ended, ended_id = over
                for retold in _retell(ended, after):
                    yield retold
                yield StreamedEvent.of(ended, ended_id)
                return
            status = await services.queue.get(workspace_id, run_id)
            if status is None:
                # Its thread was removed meanwhile.
                yield _without_id(_lost(run_id))
                return
            if only_while_running and status.state == "queued":
                return
            if status.ended is not None and status.ended_id is not None:
                # The stream may have got all of it since it was looked at: once more.
                over = status.ended, status.ended_id


def _follows(event_id: str, after: str | None) -> bool:
    """Whether nothing is missing between the two."""
    attempt, number = order_of(event_id)
    before = (1, 0) if after is None else order_of(after)
    return (attempt, number) == (before[0], before[1] + 1) or (attempt > before[0] and number == 1)


def _retell(ended: Done | Failed, after: str | None) -> list[StreamedEvent]:
    """What a reader must be told before the end of a run whose stream has expired."""
    if ended["type"] == "error":
        return []
    if after is None:
        return [_without_id(Content(type="content", token=ended["answer"]))]
    answer, citations = ended["answer"], ended["citations"]
    return [_without_id(Correction(type="correction", reason=RESTART, answer=answer, citations=citations))]


def _lost(run_id: str) -> Failed:
    message = f"There is no run {run_id!r} in this workspace any more."
    return Failed(type="error", code=UnknownRun().code, message=message, retryable=False)


def _without_id(event: Content | Correction | Failed) -> StreamedEvent:
    """An event that is of this reading alone. A reader who comes again names the last id before it."""
    return StreamedEvent.of(event, "")
