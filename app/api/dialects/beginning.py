"""Begins to answer a question, for every protocol alike."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from app.runs.cached_answers import CachedAnswers, Hit
from app.runs.manager import RunManager
from app.runs.requests import AcceptedRun, Ask, read_events
from domain.events import Event


@dataclass(frozen=True, slots=True)
class Begun:
    """An answer that has begun."""

    run: AcceptedRun | Hit
    events: AsyncGenerator[Event]
    stop: Callable[[], Awaitable[object]]
    """Stops the run; does nothing where the answer came from the cache, complete."""


async def begin(cached_answers: CachedAnswers, manager: RunManager, ask: Ask) -> Begun:
    """Look for a cached answer, else start a run. Raises what `RunManager.start` raises."""
    if hit := await cached_answers.find(ask):

        async def repeat() -> AsyncGenerator[Event]:
            for event in hit.events:
                yield event

        async def leave() -> None:
            """Leave the answer, which is complete."""

        return Begun(hit, repeat(), leave)
    run = await manager.start(ask)

    async def stop() -> None:
        await manager.stop(run.workspace_id, run.run_id)

    return Begun(run, read_events(manager.follow(run)), stop)
