"""Language models whose calls are spans of the run's trace."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import cast

from app.support.spans import span
from domain.execution.spans import Facts, Note
from domain.ports.models import ChatModel, FailedAttempt, Message, ModelReply, ModelUsage, Schema, Tool, UsageSink


class TracedModel:
    """A model that opens a span for each call. One call may hold several requests: retries, and a repair."""

    def __init__(self, model: ChatModel) -> None:
        self.name, self._model = model.name, model

    @property
    def sees(self) -> bool:
        """True if messages may show pictures; a model that refuses some loses it."""
        return self._model.sees

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        """Return the model's judgement."""
        with self._trace(messages, sink) as (note, meter):
            judgement = await self._model.judge(messages, schema, meter)
            note(Facts(reply=ModelReply(judgement.model_dump_json())))
        return judgement

    async def act(
        self, messages: Sequence[Message], tools: Sequence[Tool], sink: UsageSink, *, max_tokens: int
    ) -> ModelReply:
        """Return the model's words and calls."""
        with self._trace(messages, sink) as (note, meter):
            reply = await self._model.act(messages, tools, meter, max_tokens=max_tokens)
            note(Facts(tools=tools, reply=reply))
        return reply

    async def stream(
        self,
        messages: Sequence[Message],
        sink: UsageSink,
        *,
        temperature: float,
        max_tokens: int,
        timeout: float | None = None,
    ) -> AsyncIterator[str]:
        """Yield the model's words."""
        pieces: list[str] = []
        with self._trace(messages, sink) as (note, meter):
            words = self._model.stream(messages, meter, temperature=temperature, max_tokens=max_tokens, timeout=timeout)
            try:
                async with aclosing(cast("AsyncGenerator[str]", words)) as arriving:
                    async for piece in arriving:
                        pieces.append(piece)
                        yield piece
            finally:
                note(Facts(reply=ModelReply("".join(pieces))))

    @contextmanager
    def _trace(self, messages: Sequence[Message], sink: UsageSink) -> Iterator[tuple[Note, "_Meter"]]:
        with span(f"chat {self.name}", leaf=True) as note:
            note(Facts(kind="model", model=self.name, messages=messages))
            yield note, _Meter(sink, note)


class _Meter:
    """A sink that also adds up for the span what its call has consumed."""

    def __init__(self, sink: UsageSink, note: Note) -> None:
        self._sink, self._note = sink, note
        self._read, self._written, self._cost = 0, 0, 0.0

    def record(self, usage: ModelUsage) -> None:
        self._sink.record(usage)
        self._read += usage.input_tokens
        self._written += usage.output_tokens
        self._note(Facts(input_tokens=self._read, output_tokens=self._written))
        if usage.cost is not None:
            self._cost += usage.cost
            self._note(Facts(cost=self._cost))

    def record_failure(self, failure: FailedAttempt) -> None:
        self._sink.record_failure(failure)

    def record_thoughts(self, thoughts: str) -> None:
        self._sink.record_thoughts(thoughts)
