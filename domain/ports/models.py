"""Language models, and what their calls consume."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from pydantic import BaseModel

from domain.ports.pictures import Picture

Schema = TypeVar("Schema", bound=BaseModel)

AWAITED_UNTIL: ContextVar[float] = ContextVar("awaited_until", default=float("inf"))
"""The event loop time at which whoever asks a model stops waiting. A call that is cancelled before is not needed any
more: its reader has left, or the graph took another way than a step ahead had expected."""


LARGER_WINDOW = "A larger context window helps (of Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile)."


UNSAID = "unsaid"
"""In place of a word for the end of a reply, where its stream just stopped."""


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The tokens and costs of calls to a model."""

    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None
    """US dollars; None where the model's price is not known."""
    full: bool = False
    """True if the reply ends because its limit of tokens was reached."""
    estimated: bool = False
    """True for a call that was given up: providers bill it, and report only what ended."""
    ended: str = ""
    """The provider's word for the end of a reply of which it is not known whether it is whole, or `UNSAID`; empty where
    it is."""
    unread: bool = False
    """True where the provider counted far less than it was sent: it may have cut the prompt."""
    cached_tokens: int = 0
    """Tokens among those read that the provider knew from an earlier request, which are cheaper and sooner read."""


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """A request to a provider that failed. It may have been repeated."""

    status: int | None
    """The HTTP status; None where no reply came."""
    message: str
    """What the provider said, or what happened to the connection."""


class UsageSink(Protocol):
    """Collects the usage that a model reports, its attempts that failed, and what it thought."""

    def record(self, usage: ModelUsage) -> None: ...

    def record_failure(self, failure: FailedAttempt) -> None: ...

    def record_thoughts(self, thoughts: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of an object: the function's arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's call of a tool. The arguments are as the model wrote them: check them against the tool's schema."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    problem: str = ""
    """Why the arguments could not be read, for the model to read; empty where they could."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply where it was offered tools: words, calls, or both."""

    text: str
    calls: Sequence[ToolCall] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: Sequence[ToolCall] = ()
    """The calls that the assistant made."""
    answers: str = ""
    """The id of the call whose result a message of the role `tool` is."""
    pictures: Sequence[Picture] = ()
    """Pictures that the user shows, in this order. For models that see."""


class ChatModel(Protocol):
    """A language model.

    Raises `ModelUnavailable`, `ModelTimeout`, `ModelRefused`, `ModelRejectedKey`, `ContextTooLong`,
    `ModelReplyCut` or `ModelError`.
    """

    name: str
    sees: bool
    """True if messages may show pictures."""

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        """A reply that fits `schema`. `ModelError` where the reply does not, after one repair."""

    async def act(
        self, messages: Sequence[Message], tools: Sequence[Tool], sink: UsageSink, *, max_tokens: int
    ) -> ModelReply:
        """A reply in words, or calls of some of the tools. Whoever calls this runs them, and asks again with a message
        of the role `tool` for each call. `ModelError` where the reply is empty, or reaches `max_tokens`."""

    def stream(
        self,
        messages: Sequence[Message],
        sink: UsageSink,
        *,
        temperature: float,
        max_tokens: int,
        timeout: float | None = None,
    ) -> AsyncIterator[str]:
        """The reply's text as it comes. A stream that the provider did not finish raises `ModelReplyCut`; one
        without a word for `timeout` seconds, or for as long as the model waits by itself, `ModelTimeout`: thoughts are
        none. A reply that reaches `max_tokens` ends there; its usage says that it is `full`. So does one that
        `ended` for a reason that nobody knows."""


class TokenCounter(Protocol):
    """Counts tokens as large models see them."""

    def count(self, text: str) -> int: ...
