"""Reads the runs that commands name, by id or by file, and spells their figures."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from app.cli.support.running import ask_server, finish
from domain.errors import InputError

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient
    from app.workbench.replay.saved_run import SavedRun


def is_file(target: str) -> bool:
    """Return True where a run is named by a file."""
    return "/" in target or target.endswith(".askgraph")


def show_run(
    target: str,
    of_server: "Callable[[ServerClient], Any]",
    of_file: "Callable[[SavedRun], Any]",
    show: Callable[[Any], int],
) -> NoReturn:
    """Show what a server says of a run, or what is found in its file, and exit."""
    if is_file(target):
        finish(lambda: show(of_file(read_file(Path(target)))))
    ask_server(lambda server: show(of_server(server)))


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
