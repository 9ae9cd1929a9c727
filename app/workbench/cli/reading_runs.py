"""Opens runs for the commands that explain them: on the running server, here, or from a file."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from app.cli.support.running import run, run_on_server

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient


def show_there_or_here(
    show: Callable[[Any], int],
    there: "Callable[[ServerClient], Any]",
    here: Callable[[Any], Awaitable[Any]],
    *,
    of_files: bool = False,
) -> NoReturn:
    """Show what a running server finds; or what `here`, which is called with the module of that name, finds where there
    is none, or the command is `of_files` of this machine."""
    if not of_files:
        run_on_server(lambda server: show(there(server)))
    # It needs LangGraph and every adapter. A command that asks a server starts a second sooner without them.
    from app.workbench.cli import here as local

    async def work() -> int:
        return show(await here(local))

    run(work(), needs_data=not of_files)


def is_file(target: str) -> bool:
    """Return True where a run is named by a file."""
    return "/" in target or target.endswith(".askgraph")


def show_ms(ms: float | None) -> str:
    """Return milliseconds for people."""
    return "" if ms is None else f"{ms:.1f} ms"


def show_cost(part: Mapping[str, Any]) -> str:
    """Return the cost of a call or a run for people."""
    return "cost unknown" if part["cost"] is None else f"${part['cost']:.4f}"
