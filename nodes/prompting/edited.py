"""Language models that get a step's edited system prompt in the place of its own."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from domain.ports.models import ChatModel, Message, ModelReply, Tool, UsageSink  # noqa: TID251 - edits what was built
from nodes.context import Models

Schema = TypeVar("Schema", bound=BaseModel)


class _Edited:
    def __init__(self, model: ChatModel, text: str) -> None:
        self.name, self.sees = model.name, model.sees
        self.model, self.text = model, text

    def _edit(self, messages: Sequence[Message]) -> list[Message]:
        return [replace(each, content=self.text) if each.role == "system" else each for each in messages]

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        return await self.model.judge(self._edit(messages), schema, sink)

    async def act(
        self, messages: Sequence[Message], tools: Sequence[Tool], sink: UsageSink, *, max_tokens: int
    ) -> ModelReply:
        return await self.model.act(self._edit(messages), tools, sink, max_tokens=max_tokens)

    def stream(
        self,
        messages: Sequence[Message],
        sink: UsageSink,
        *,
        temperature: float,
        max_tokens: int,
        timeout: float | None = None,
    ) -> AsyncIterator[str]:
        return self.model.stream(
            self._edit(messages), sink, temperature=temperature, max_tokens=max_tokens, timeout=timeout
        )


def edit_prompt(models: Models, text: str) -> Models:
    """Return the models so that each gets `text` as its system prompt, whatever the step says."""
    return models.map(lambda model: _Edited(model, text))
