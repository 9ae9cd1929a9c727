"""Reads the runs that commands name, by id or by file, and spells their figures."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import InputError
from domain.scope import Scope

if TYPE_CHECKING:
    from app.workbench.replay.saved_run import SavedRun


def is_file(target: str) -> bool:
    """Return True where a run is named by a file."""
    return "/" in target or target.endswith(".askgraph")


async def read_run(target: str, workspace: str) -> "SavedRun":
    """Read a run on this machine. Raises what `read_file` and `Debugger.read` raise."""
    if is_file(target):
        return read_file(Path(target))
    # It needs LangGraph and every adapter. A command that asks a server starts a second sooner without them.
    from app.settings import read_settings
    from app.wiring.services import open_services

    async with open_services(read_settings()) as services:
        return await services.make_debugger().read(Scope(workspace), target)


def read_file(path: Path) -> "SavedRun":
    """Read a file that `askgraph export` wrote. Raises `InputError` and `StateError`."""
    from app.workbench.replay.bundle import MAX_FILE, read_bundle

    try:
        if not path.is_file():
            raise InputError(f"There is no file {str(path)!r}.")
        with path.open("rb") as file:
            return read_bundle(file.read(MAX_FILE + 1))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}.") from error


def show_ms(ms: float | None) -> str:
    """Return milliseconds for people."""
    return "" if ms is None else f"{ms:.1f} ms"


def show_cost(part: Mapping[str, Any]) -> str:
    """Return the cost of a call or a run for people."""
    return "cost unknown" if part["cost"] is None else f"${part['cost']:.4f}"
