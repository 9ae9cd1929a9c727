"""The run manager's inputs and outputs: questions, branches, and accepted runs."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

from app.runs.broadcast import Broadcast
from app.runs.taping import Player
from domain.events import Done, Event, Failed
from domain.question import clean_question
from domain.runs import WhenBusy
from domain.scope import DEFAULT_SCOPE, Scope
from domain.state import AnswerState, TurnInput
from domain.streams import StreamedEvent


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as it arrives, before anything is checked."""

    question: str
    scope: Scope = DEFAULT_SCOPE
    thread_id: str | None = None
    mode: str = "standard"
    when_busy: WhenBusy = "queue"

    def as_turn(self, run_id: str, profile: dict[str, Any]) -> TurnInput:
        """Build the graph's input; `profile` is the mode's, dumped. Raises `QuestionError`."""
        return TurnInput(
            run_id=run_id,
            question=clean_question(self.question),
            scope=self.scope.to_json(),
            mode=self.mode,
            profile=profile,
        )


@dataclass(frozen=True, slots=True)
class Branch:
    """A run that starts from a copy of a saved state, which its own thread holds already."""

    thread_id: str
    values: AnswerState
    forked_from: dict[str, Any]
    player: Player | None = None
    """Answers the run's calls from a tape where it can."""


@dataclass(frozen=True, slots=True)
class AcceptedRun:
    """A run that was accepted."""

    run_id: str
    thread_id: str
    workspace_id: str
    broadcast: Broadcast | None = field(default=None, repr=False)
    """Its events, where this process executes it; None where it waits for another run of its thread."""


async def read_events(streamed: AsyncGenerator[StreamedEvent]) -> AsyncGenerator[Event]:
    """Decode the events of a stream."""
    async with aclosing(streamed):
        async for event in streamed:
            yield event.event


async def collect(events: AsyncGenerator[Event]) -> tuple[Done | Failed, list[Event]]:
    """Follow a run to its end. Returns its last event, and all events."""
    async with aclosing(events):
        seen = [event async for event in events]
    return cast("Done | Failed", seen[-1]), seen
