"""The tape of a run: every call that it made of the outside, and what came of each.

With its tape a run can be run again without a single call, to the same events and the same state.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from domain.errors import AskgraphError
from domain.events import Event
from domain.ports.models import ModelUsage

TapeUse = Literal["off", "strict", "fill"]
"""What a replay does with the tape. `off`: calls everything anew. `strict`: calls nothing. `fill`: calls what the tape
does not hold."""


@dataclass(slots=True)
class Call:
    """One call of a port's method. Which of several equal ones it is, their order on the tape says."""

    port: str
    """The port's protocol, and its name where it has one: `Library`, `ChatModel gpt-5-nano`."""
    method: str
    request: dict[str, Any]
    """The arguments by name, as plain values and arrays. A schema is its name and its JSON schema."""
    step: int
    """The graph's step in which it was made, as checkpoints count them."""
    reply: Any = None
    """What came back; of a stream, the list of its chunks."""
    error: tuple[str, str] | None = None
    """The class, of `domain.errors`, and the message of what was raised."""
    cut: bool = True
    """Whether it was left before it ended: its step was out of time, or nobody needed it any more."""
    usage: list[ModelUsage] = field(default_factory=list)

    def end(self, error: AskgraphError | None = None) -> None:
        """Note that it came to its end, or to this error."""
        self.cut = False
        if error is not None:
            self.error = (type(error).__name__, error.message)


@dataclass(frozen=True, slots=True)
class Tape:
    """What a run called, with what it had to call, and the events that came of it."""

    ports: dict[str, Any]
    """The attributes of the ports, as `app/runs/taping.py` describes a context."""
    calls: list[Call]
    events: list[Event]
