"""Contract of every `ChatModel`. An adapter's tests inherit from the class and provide the fixture `model`: a model
that understands askgraph's prompts, real or over `tests/wire`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, Field

from domain.ports.models import ChatModel, FailedAttempt, Message, ModelUsage, Tool

SOURCE = """<source number="1" title="Handbook">
The notice period is six weeks. Holidays are thirty days a year.
</source>"""


MESSAGES = [Message("system", "You answer."), Message("user", f"{SOURCE}\n\nQuestion: How long is the notice period?")]

Call = Literal["judge", "act", "stream"]


SEARCH = Tool(
    "search",
    "Search the handbook.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)


@dataclass
class Sink:
    """Keeps what is recorded."""

    usage: list[ModelUsage] = field(default_factory=list)
    failures: list[FailedAttempt] = field(default_factory=list)

    def record(self, usage: ModelUsage) -> None:
        self.usage.append(usage)

    thoughts: list[str] = field(default_factory=list)

    def record_failure(self, failure: FailedAttempt) -> None:
        self.failures.append(failure)

    def record_thoughts(self, thoughts: str) -> None:
        self.thoughts.append(thoughts)


class Part(BaseModel):
    label: str
    weight: float = Field(ge=0, le=1)


class Judgement(BaseModel):
    """Every kind of field that the nodes' schemas use."""

    kind: Literal["good", "bad"]
    certain: bool
    count: int
    parts: list[Part] = Field(default_factory=list, max_length=10)
    reason: str = Field("", min_length=0, max_length=4000)
    format: str = ""


async def call(
    model: ChatModel, how: Call, sink: Sink | None = None, messages: Sequence[Message] = tuple(MESSAGES)
) -> str:
    """The result of one call of this kind."""
    if how == "judge":
        return (await model.judge(messages, Judgement, sink or Sink())).model_dump_json()
    if how == "act":
        return (await model.act(messages, [SEARCH], sink or Sink(), max_tokens=100)).calls[0].name
    return "".join([p async for p in model.stream(messages, sink or Sink(), temperature=0.2, max_tokens=100)])


class ChatModelContract:
    async def test_judges_in_the_shape_asked_for(self, model: ChatModel) -> None:
        sink = Sink()
        judgement = await model.judge([Message("system", "You judge."), Message("user", "Judge.")], Judgement, sink)
        assert isinstance(judgement, Judgement)
        assert judgement.kind in ("good", "bad")
        assert len(sink.usage) == 1

    async def test_streams_a_reply_in_pieces(self, model: ChatModel) -> None:
        sink = Sink()
        pieces = [piece async for piece in model.stream(MESSAGES, sink, temperature=0.2, max_tokens=200)]
        assert len(pieces) > 1
        assert all(pieces)
        assert "six weeks" in "".join(pieces)

    async def test_records_what_a_call_consumed(self, model: ChatModel) -> None:
        sink = Sink()
        messages = [Message("user", "Hello, who are you?")]
        async for _ in model.stream(messages, sink, temperature=0.0, max_tokens=50):
            assert not sink.usage, "recorded before the call was over"
        (usage,) = sink.usage
        assert usage.model == model.name
        assert not usage.estimated
        assert usage.input_tokens > 0
        assert usage.output_tokens > 0

    async def test_understands_every_role(self, model: ChatModel) -> None:
        conversation = [
            Message("system", "You are polite."),
            Message("user", "Hello!"),
            Message("assistant", "Hello. How can I help?"),
            Message("user", "Who are you?"),
        ]
        reply = [piece async for piece in model.stream(conversation, Sink(), temperature=0.0, max_tokens=50)]
        assert "".join(reply).strip()

    async def test_may_be_left_in_the_middle(self, model: ChatModel) -> None:
        sink = Sink()
        stream = model.stream([Message("user", "Hello!")], sink, temperature=0.0, max_tokens=50)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        (usage,) = sink.usage
        assert usage.input_tokens > 0, "it is billed, although nobody has counted it"
        assert usage.output_tokens > 0
        again = [
            piece async for piece in model.stream([Message("user", "Hi!")], Sink(), temperature=0.0, max_tokens=50)
        ]
        assert again

    async def test_calls_a_tool_and_reads_its_result(self, model: ChatModel) -> None:
        sink = Sink()
        asked = [Message("system", "You answer."), Message("user", "Question: How long is the notice period?")]
        reply = await model.act(asked, [SEARCH], sink, max_tokens=200)
        (call,) = reply.calls
        assert call.name == "search"
        assert "notice" in call.arguments["query"]
        assert not call.problem
        (usage,) = sink.usage
        assert usage.output_tokens > 0
        results = [Message("assistant", reply.text, calls=reply.calls), Message("tool", SOURCE, answers=call.id)]
        told = await model.act([*asked, *results], [SEARCH], sink, max_tokens=200)
        assert not told.calls
        assert "six weeks" in told.text
        assert len(sink.usage) == 2
