"""The run manager's inputs and outputs: questions, branches, and accepted runs."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

from app.answering.following import Broadcast
from domain.errors import InputError
from domain.events import Done, Event, Failed
from domain.execution.streams import StreamedEvent
from domain.people.access import OWNER, Caller
from domain.profile import MOST_SOURCES, Profile
from domain.runs import WhenBusy
from domain.scope import DEFAULT_SCOPE, Scope
from domain.state import AnswerState, Turn, TurnInput
from domain.text.question import clean_question


@dataclass(frozen=True, slots=True)
class Ask:
    """A question as it arrives, before anything is checked."""

    question: str
    scope: Scope = DEFAULT_SCOPE
    thread_id: str | None = None
    mode: str = "standard"
    when_busy: WhenBusy = "queue"
    threshold: float | None = None
    """Drop candidates that are less similar, 0-1; None: as the mode says."""
    caller: Caller = OWNER
    limit: int | None = None
    """Number of sources, 1 to `MOST_SOURCES`; None: as the mode says."""
    history: Sequence[Turn] = ()
    """The conversation so far, where the client keeps it. Used where the thread has none."""
    noted: Mapping[str, Any] = field(default_factory=dict)
    """What the client notes of the run."""
    anew: bool = False
    """True: take no stored answer."""
    leaves_unread: bool = False
    """True where the client has sent more beside the question, which is not read; the reader is told."""

    def as_turn(self, run_id: str, profile: Profile) -> TurnInput:
        """Build the graph's input; `profile` is what the mode was resolved to. Raises `QuestionError`, and `InputError`
        where the threshold or the limit is out of range."""
        return TurnInput(
            run_id=run_id,
            question=clean_question(self.question),
            scope=self.scope.to_json(),
            mode=profile.name,
            profile=self._adapt(profile.model_dump()),
            asked_on=datetime.now(UTC).date().isoformat(),
        )

    def _adapt(self, profile: dict[str, Any]) -> dict[str, Any]:
        """Return the profile with the threshold and the limit of this question."""
        if self.threshold is not None:
            if not 0 <= self.threshold <= 1:
                raise InputError(f"The threshold is {self.threshold:g}; it has to be from 0 to 1.")
            profile = profile | {"retrieval": profile["retrieval"] | {"similarity_threshold": self.threshold}}
        if self.limit is not None:
            if not 1 <= self.limit <= MOST_SOURCES:
                raise InputError(f"The limit is {self.limit}; it has to be from 1 to {MOST_SOURCES}.")
            candidates = max(self.limit, profile["retrieval"]["candidates"])
            profile = profile | {
                "retrieval": profile["retrieval"] | {"candidates": candidates},
                "rerank": profile["rerank"] | {"keep": self.limit, "keep_broad": self.limit},
            }
        return profile


@dataclass(frozen=True, slots=True)
class Branch:
    """A run that starts from a copy of a saved state, which its own thread holds already."""

    thread_id: str
    values: AnswerState
    forked_from: dict[str, Any]
    caller: Caller = OWNER


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
