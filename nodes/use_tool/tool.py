"""What a tool of the research agent is: a function of the library, within the caller's scope."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import BaseModel

from domain.documents import Source
from domain.scope import Scope
from nodes.context import Context


class Finding(NamedTuple):
    """What a tool call came to. The step numbers the sources; the model reads `text` first, then these."""

    text: str = ""
    sources: Sequence[Source] = ()
    listed: Sequence[str] = ()
    """Ids of the documents that the text speaks of."""
    failed: bool = False
    """True where the text says why nothing could be done."""


class ToolProblem(Exception):
    """A call that cannot be done as it was written. The message tells the model what to do otherwise; `listed` are the
    ids of the documents that it speaks of."""

    def __init__(self, message: str, listed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.listed = listed


@dataclass(frozen=True, kw_only=True)
class ResearchTool:
    """A tool that a model may call."""

    name: str
    description: str
    """For the model: what the tool does, and when to use it."""
    arguments: type[BaseModel]
    """Checks the call's arguments; its JSON schema is shown to the model."""
    run: Callable[[Any, Scope, Context], Awaitable[Finding]]
    """Gets the checked arguments. Raises `ToolProblem`, and the errors of the ports that it uses."""
