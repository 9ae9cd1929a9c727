"""What a part of a run tells its span in the run's trace. The tracing adapter translates it to the field's names."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from domain.ports.models import Message, ModelReply, Tool  # noqa: TID251 - shows what was sent

Kind = Literal["agent", "chain", "model", "retriever", "reranker", "tool"]
"""A run, a step of one, the call of a language model, a search, a ranking, the call of a tool."""


class Facts(TypedDict, total=False):
    """What a span shows."""

    kind: Kind
    thread_id: str
    model: str
    input_tokens: int
    output_tokens: int
    cost: float
    """US dollars; absent where it is unknown."""
    tool: str
    call_id: str
    input: Any
    """What the work is about: the question, the query, the arguments of a tool."""
    output: Any
    messages: Sequence[Message]
    tools: Sequence[Tool]
    """Those that the model was offered."""
    reply: ModelReply
    candidates: Sequence[Mapping[str, Any]]
    """What was ranked: of each chunk its id, its score and, where it was read, its text."""
    documents: Sequence[Mapping[str, Any]]
    """What was found or chosen, best first, like `candidates`."""


Note = Callable[[Facts], None]
"""Adds facts to an open span."""


def ignore(facts: Facts) -> None:
    """Add nothing: nobody traces."""
