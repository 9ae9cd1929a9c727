"""The tape of a run: every call that it made to a port, with the result.

From its tape a run can be replayed without a single call, to the same events and the same state.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from domain.errors import AskgraphError
from domain.events import Event
from domain.ports.models import FailedAttempt, ModelUsage

TapeUse = Literal["off", "strict", "fill"]
"""The use that a replay makes of the tape. `off`: makes all calls anew. `strict`: makes no call. `fill`: makes only the
calls that the tape lacks."""


@dataclass(slots=True)
class Call:
    """One call of a port's method. Equal calls are told apart by their order on the tape."""

    port: str
    """The port's protocol, and its name where it has one: `Library`, `ChatModel gpt-5-nano`."""
    method: str
    request: dict[str, Any]
    """The arguments by name, as plain values and arrays. A schema is its name and its JSON schema."""
    step: int
    """The graph's step that made the call, as checkpoints count steps."""
    reply: Any = None
    """The result; for a stream, the list of its chunks."""
    error: tuple[str, str] | None = None
    """Class (of `domain.errors`) and message of the raised error."""
    cut: bool = True
    """True where the call was abandoned: its step ran out of time, or the result was not needed any more."""
    usage: list[ModelUsage] = field(default_factory=list)
    failures: list[FailedAttempt] = field(default_factory=list)
    """The attempts of a model's call that failed. Those before the last were repeated."""
    thoughts: str = ""
    """What the model thought before its reply. Only the tape has it."""

    def end(self, error: AskgraphError | None = None) -> None:
        """Note that the call ended, or failed with this error."""
        self.cut = False
        if error is not None:
            self.error = (type(error).__name__, error.message)


@dataclass(frozen=True, slots=True)
class Tape:
    """The calls of a run, the ports that it had, and its events."""

    ports: dict[str, Any]
    """The attributes of the ports, as `app/workbench/tapes/taping.py` describes a context."""
    calls: list[Call]
    events: list[Event]
