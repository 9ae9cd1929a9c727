"""A model that keeps what it was asked and gives replies that are put down for it."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.ports.models import Message, UsageSink


@dataclass
class RecordedModel:
    """`reply` is the object of a judgement, or the text of a stream."""

    reply: Any
    name: str = "recorded"
    sees: bool = False
    prompts: list[Sequence[Message]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    async def judge(self, messages: Sequence[Message], schema: Any, sink: UsageSink) -> Any:
        self.prompts.append(messages)
        return schema.model_validate(self.reply)

    async def stream(self, messages: Sequence[Message], sink: UsageSink, **options: Any) -> AsyncIterator[str]:
        self.prompts.append(messages)
        self.options = options
        yield self.reply

    async def act(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError
