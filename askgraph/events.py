"""The events of a run, typed, in the order in which they come."""

from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field, TypeAdapter

from askgraph.errors import unknown_form
from askgraph.frames import Frame
from askgraph.models import Answer, Citation, Claim, Model


class Accepted(Model):
    """The question was accepted as this run; the first event of a question."""

    type: Literal["accepted"]
    run_id: str
    thread_id: str


class Thinking(Model):
    """A step begins."""

    type: Literal["thinking"]
    step: str


class ToolCalled(Model):
    """The research agent calls a tool."""

    type: Literal["tool_call"]
    call_id: str
    name: str
    arguments: dict[str, Any]


class ToolReturned(Model):
    """A tool of the research agent has run."""

    type: Literal["tool_result"]
    call_id: str
    name: str
    text: str
    """What the tool says besides its sources; often nothing."""
    sources: list[int]
    """The numbers of the sources that it brought."""


class Sources(Model):
    """The sources from which the answer will be written. A second one replaces the first."""

    type: Literal["sources"]
    citations: list[Citation]


class Content(Model):
    """A piece of the answer."""

    type: Literal["content"]
    token: str


class CitationUsed(Model):
    """A marker appeared in the answer for the first time."""

    type: Literal["citation"]
    citation: Citation


class Verified(Model):
    """The verdict on each claim."""

    type: Literal["verification"]
    status: str
    claims: list[Claim]


class Correction(Model):
    """`answer` and `citations` replace all that was streamed so far."""

    type: Literal["correction"]
    reason: str
    """In words; or `restart`, where another process has taken the run over."""
    answer: str
    citations: list[Citation]


class Compared(Model):
    """The comparison of a strict replay with its recording."""

    type: Literal["comparison"]
    run_id: str
    identical: bool
    differences: list[str]


class Waiting(Model):
    """Nothing has come of a step for some seconds: it waits, mostly for a language model."""

    type: Literal["waiting"]
    step: str
    seconds: float


class Done(Answer):
    """The end of the run, with its whole answer."""

    type: Literal["done"]


Event: TypeAlias = (
    Accepted
    | Thinking
    | ToolCalled
    | ToolReturned
    | Sources
    | Content
    | CitationUsed
    | Verified
    | Correction
    | Compared
    | Waiting
    | Done
)

_EVENTS: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])
_TYPES = {kind.model_fields["type"].annotation.__args__[0] for kind in get_args(Event)}


class EventReader:
    """Reads the events of one run."""

    def __init__(self) -> None:
        self._sources: list[Citation] = []

    def read(self, frame: Frame) -> Event | None:
        """Return the event of a frame; None where it is of a kind that only newer clients know. `Done` gets the sources
        that came before it. Raises `AskgraphError` where the event is not as this client knows it."""
        if frame.type not in _TYPES:
            return None
        try:
            event = _EVENTS.validate_python(frame.event)
        except ValueError as error:
            raise unknown_form(error) from error
        match event:
            case Sources():
                self._sources = event.citations
            case Done():
                return event.model_copy(update={"sources": self._sources})
        return event
