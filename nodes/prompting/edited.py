"""Language models that get a step's edited system prompt in the place of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from domain.ports.models import ChatModel, Message  # noqa: TID251 - edits what was built
from nodes.context import Models


class _Edited:
    """A model whose calls all begin with their messages."""

    def __init__(self, model: ChatModel, text: str) -> None:
        self._model, self._text = model, text

    def __getattr__(self, name: str) -> Any:
        held = getattr(self._model, name)

        def call(messages: Sequence[Message], *others: Any, **options: Any) -> Any:
            edited = [replace(each, content=self._text) if each.role == "system" else each for each in messages]
            return held(edited, *others, **options)

        return call if callable(held) else held


def edit_prompt(models: Models, text: str) -> Models:
    """Return the models so that each gets `text` as its system prompt, whatever the step says."""
    return models.map(lambda model: cast(ChatModel, _Edited(model, text)))
