"""Follows runs of any process, while they are executed and after they have ended."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import cast

from domain.errors import UnknownRun
from domain.events import RESTART, Content, Correction, Done, Failed
from domain.execution.streams import StreamedEvent, order_of
from domain.ports.runs import RunQueue
from domain.ports.streams import RunStreams


async def follow_elsewhere(
    queue: RunQueue,
    streams: RunStreams,
    workspace_id: str,
    run_id: str,
    after: str | None,
    is_over: Callable[[], bool],
    *,
    only_while_running: bool = False,
) -> AsyncGenerator[StreamedEvent]:
    """Yield the run's events past the id `after` from its stream; where the stream is gone, wait for the run's end and
    yield that.

    Stops early once `is_over` returns True, and, with `only_while_running`, once no process executes the run.
    """
    over: tuple[Done | Failed, str] | None = None
    missed = False
    async with aclosing(streams.follow(run_id, after)) as events:
        async for event in events:
            if is_over() and (event is None or not event.is_end):
                return
            if event is not None:
                missed = missed or not _follows(event.id, after)
                if missed and event.is_end:
                    # Redis has lost events: its memory was full, or it was emptied.
                    for retold in _retell(cast("Done | Failed", event.event), event.id):
                        yield retold
                after = event.id
                yield event
                if event.is_end:
                    return
                continue
            if over is not None:
                # All events are in the stream before the end is stored: nothing more will come.
                ended, ended_id = over
                for retold in _retell(ended, after):
                    yield retold
                yield StreamedEvent.of(ended, ended_id)
                return
            status = await queue.get(workspace_id, run_id)
            if status is None:
                # Its thread was deleted meanwhile.
                yield _without_id(_lost(run_id))
                return
            if only_while_running and status.state == "queued":
                return
            if status.ended is not None and status.ended_id is not None:
                # The stream may have become complete since we read it: read once more.
                over = status.ended, status.ended_id


def _follows(event_id: str, after: str | None) -> bool:
    """Return True where no event is missing between the two ids."""
    attempt, number = order_of(event_id)
    before = (1, 0) if after is None else order_of(after)
    return (attempt, number) == (before[0], before[1] + 1) or (attempt > before[0] and number == 1)


def _retell(ended: Done | Failed, after: str | None) -> list[StreamedEvent]:
    """Make the events that a reader needs before the end of a run whose stream has expired."""
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
    """Make an event for this reader alone. A reader that reconnects names the last id before it."""
    return StreamedEvent.of(event, "")
