"""Functions of MCP servers, which a mode names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from domain.scope import Scope


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called. All but its name is the server's word for it."""

    name: str
    """SERVER.FUNCTION."""
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class FunctionList:
    """The functions that may be called now, and why others may not."""

    functions: tuple[Function, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionResult:
    """What a function returned."""

    text: str
    called_at: str
    """In ISO 8601, UTC."""
    failed: bool = False
    """True where the function itself says that it failed; then `text` says why."""


class Functions(Protocol):
    """Calls functions of servers outside, as far as the deployment allows them in the workspace. Names are
    SERVER.FUNCTION."""

    async def list_functions(self, scope: Scope, names: Sequence[str]) -> FunctionList:
        """Those of the named functions that may be called. Raises nothing for a server that does not answer."""

    async def call(
        self, scope: Scope, name: str, arguments: Mapping[str, Any], seconds: float, characters: int
    ) -> FunctionResult:
        """Call a function. Raises `FunctionError` where it may not be called, and where its server does not answer in
        time and form. Of the result at most so many characters are kept."""
