"""What a client sees while a question is being answered.

Nodes emit these through LangGraph's custom stream; the turn runner adds `done` or `error`, without which a stream
has not ended. `type` is the SSE event name, the rest is its data.
"""

from typing import Any, Literal

from typing_extensions import TypedDict

from domain.documents import Citation, Claim, Verification
from domain.state import Degradation, Route, Usage


class Thinking(TypedDict):
    """A step begins."""

    type: Literal["thinking"]
    step: str
    """The name of the node that starts."""


class Sources(TypedDict):
    """What the answer will be written from. Sent before the first `content`."""

    type: Literal["sources"]
    citations: list[Citation]


class Content(TypedDict):
    """A piece of the answer."""

    type: Literal["content"]
    token: str


class CitationUsed(TypedDict):
    """A marker has appeared in the answer for the first time."""

    type: Literal["citation"]
    citation: Citation


class Verified(TypedDict):
    """What the check of the answer said, claim by claim."""

    type: Literal["verification"]
    status: str
    claims: list[Claim]


RESTART = "restart"
"""The reason of a correction whose run was taken up again after the process that executed it had died."""


class Correction(TypedDict):
    """The text streamed so far does not stand; `answer` replaces all of it."""

    type: Literal["correction"]
    reason: str
    """What was wrong, in words; or `RESTART`, and the answer is what is known of it so far, often nothing."""
    answer: str
    citations: list[Citation]


class Compared(TypedDict):
    """A run was run again on its tape. Sent before the end."""

    type: Literal["comparison"]
    run_id: str
    """The run that was recorded."""
    identical: bool
    """Whether events and final state are those of that run, byte for byte, times apart."""
    differences: list[str]
    """Where they are not: the lines of a unified diff."""


class Done(TypedDict):
    """The turn is over: the whole answer, and what a client or a log wants to know of it."""

    type: Literal["done"]
    run_id: str
    thread_id: str
    answer: str
    citations: list[Citation]
    route: Route
    mode: str
    standalone_question: str
    """The question as it was understood: what was searched for first."""
    confidence: float
    verification: Verification
    cached: bool
    """Whether another run has written the answer: one that was stored, or one that the same question had in flight."""
    stopped: bool
    """Whether somebody stopped it: `answer` is what was written until then."""
    usage: list[Usage]
    cost: float | None
    """US dollars; None where a model's price is not known."""
    timings: dict[str, float]
    """Milliseconds by node, plus `total`."""
    warnings: list[str]
    answered_by: str
    """The language model that wrote the answer, or `local`; empty where nothing was written."""
    degraded: list[Degradation]
    """What the run went on without, and why."""
    prompts: dict[str, str]
    """The version of each prompt that a model was asked with, by node."""
    trace_url: str | None


class Failed(TypedDict):
    """The turn has failed: what went wrong and whether asking again may help."""

    type: Literal["error"]
    code: str
    message: str
    retryable: bool


NodeEvent = Thinking | Sources | Content | CitationUsed | Verified | Correction
"""What a node may emit."""

Event = NodeEvent | Compared | Done | Failed


def data_of(event: Event) -> dict[str, Any]:
    """The event without its name: what goes into an SSE `data:` field."""
    return {key: value for key, value in event.items() if key != "type"}
