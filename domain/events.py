"""The events of a run, as clients see them.

Nodes emit them through LangGraph's custom stream. The run adds `done` or `error` at the end; a stream without either
has not ended. `type` is the name of the SSE event, the other fields are its data.
"""

from typing import Any, Literal

from typing_extensions import TypedDict

from domain.documents import Citation, Claim, Verification
from domain.outcome import Framing, Outcome, Reason
from domain.state import Degradation, Route, Usage


class Thinking(TypedDict):
    """A step begins."""

    type: Literal["thinking"]
    step: str
    """The name of the node that starts."""


class ToolCalled(TypedDict):
    """The research agent calls a tool."""

    type: Literal["tool_call"]
    call_id: str
    name: str
    arguments: dict[str, Any]


class ToolReturned(TypedDict):
    """A tool of the research agent has run."""

    type: Literal["tool_result"]
    call_id: str
    name: str
    text: str
    """What the tool says besides its sources; often nothing."""
    sources: list[int]
    """The numbers of the sources that it brought."""


class Sources(TypedDict):
    """The sources from which the answer will be written. Sent before the first `content`."""

    type: Literal["sources"]
    citations: list[Citation]


class Content(TypedDict):
    """A piece of the answer."""

    type: Literal["content"]
    token: str


class CitationUsed(TypedDict):
    """A marker appeared in the answer for the first time."""

    type: Literal["citation"]
    citation: Citation


class Verified(TypedDict):
    """The verdict on each claim of the answer."""

    type: Literal["verification"]
    status: str
    claims: list[Claim]


RESTART = "restart"
"""Reason of the correction that opens a resumed run, after the process that executed it had died."""


class Correction(TypedDict):
    """`answer` replaces all text streamed so far."""

    type: Literal["correction"]
    reason: str
    """The reason in words; or `RESTART`: then `answer` is the part that was saved, which is often empty."""
    answer: str
    citations: list[Citation]


class Compared(TypedDict):
    """A run was replayed on its tape. Sent before the end."""

    type: Literal["comparison"]
    run_id: str
    """The recorded run."""
    identical: bool
    """True where events and final state equal the recorded ones, times apart."""
    differences: list[str]
    """The lines of a unified diff."""


class Answer(TypedDict):
    """A whole answer and how it came about."""

    run_id: str
    thread_id: str
    answer: str
    citations: list[Citation]
    outcome: Outcome | None
    """None where the run was stopped before it had one."""
    abstained: bool
    """True where the documents did not answer: `outcome` is `abstained`, or `showed_passages`."""
    outcome_reasons: list[Reason]
    """Why the outcome is no plain `answered`, in codes; `answer` says it in words."""
    framing: Framing
    """The parts of `answer` that claim nothing."""
    route: Route
    mode: str
    standalone_question: str
    """The question as it was understood and first searched for."""
    confidence: float
    verification: Verification
    cached: bool
    """True where an earlier run wrote the answer."""
    stopped: bool
    """True where somebody stopped the run; `answer` is what was written until then."""
    usage: list[Usage]
    cost: float | None
    """US dollars; None where a model's price is unknown."""
    timings: dict[str, float]
    """Milliseconds by node, plus `total`."""
    warnings: list[str]
    answered_by: str
    """The language model that wrote the answer, or `local`; empty where nothing was written."""
    degraded: list[Degradation]
    """The run's fallbacks, in order."""
    prompts: dict[str, str]
    """The version of each prompt that a model was asked with, by node."""
    trace_url: str | None


class Waiting(TypedDict):
    """For some seconds nothing has come of a step: it waits, mostly for a language model. Each reader is told by
    themselves, and the run knows nothing of it."""

    type: Literal["waiting"]
    step: str
    """The name of the node."""
    seconds: float


class Done(Answer):
    """The end of a turn."""

    type: Literal["done"]


class Failed(TypedDict):
    """The end of a turn that failed: what went wrong, and whether asking again may help."""

    type: Literal["error"]
    code: str
    message: str
    retryable: bool


NodeEvent = Thinking | ToolCalled | ToolReturned | Sources | Content | CitationUsed | Verified | Correction
"""The events that nodes emit."""

Event = NodeEvent | Compared | Waiting | Done | Failed


def data_of(event: Event) -> dict[str, Any]:
    """Return the event without its name, for an SSE `data:` field."""
    return {key: value for key, value in event.items() if key != "type"}
