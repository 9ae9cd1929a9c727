"""Opens runs for the commands that explain them: on the running server, here, or from a file."""

import re
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich import markup

from app.cli.support.running import fail, print_json, run, run_on_server
from domain.errors import AskgraphError, InputError

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient
    from app.workbench.replay.bundle import Bundle
    from app.workbench.replay.saved_run import SavedRun


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def run_on_saved(
    target: str, workspace: str, what: str, describe: "Callable[[SavedRun], Any]", show: Callable[[Any], int]
) -> NoReturn:
    """Show what `describe` makes of a run, which is a file or an id. A running server describes it at
    `/api/runs/RUN/WHAT`."""
    if is_file(target):
        raise typer.Exit(show(describe(open_file(Path(target)).run)))

    async def work() -> int:
        return show(describe(await read_here(target, workspace)))

    run_there_or_here(lambda server: show(server.get("runs", target, what, workspace=workspace)), work)


def run_there_or_here(there: "Callable[[ServerClient], int]", here: Callable[[], Coroutine[Any, Any, int]]) -> NoReturn:
    """Run a command on the running server, or here where there is none."""
    run_on_server(there)
    run(here())


async def read_here(run_id: str, workspace: str) -> "SavedRun":
    """Read a run from the database."""
    from app.settings import read_settings
    from app.wiring.services import open_services
    from domain.scope import Scope

    async with open_services(read_settings()) as services:
        return await services.make_debugger().read(Scope(workspace), run_id)


def choose_output(print_text: Callable[[Any], None], *, as_json: bool) -> Callable[[Any], int]:
    """Return what prints a command's result, as JSON or for people, and returns its exit code."""

    def show(found: Any) -> int:
        (print_json if as_json else print_text)(found)
        return 0

    return show


def is_file(target: str) -> bool:
    """Return True where a run is named by a file."""
    return "/" in target or target.endswith(".askgraph")


def open_file(path: Path) -> "Bundle":
    """Read a file, or end the command where it cannot be read."""
    from app.workbench.replay.bundle import MAX_FILE, read_bundle

    try:
        if not path.is_file():
            raise InputError(f"There is no file {str(path)!r}.")
        with path.open("rb") as file:
            return read_bundle(file.read(MAX_FILE + 1))
    except OSError as error:
        fail(InputError(f"{str(path)!r} cannot be read: {error.strerror}."))
    except AskgraphError as error:
        fail(error)


def escape(text: str) -> str:
    """Return text from outside such that neither markup nor control sequences of terminals in it take effect: a file
    may come from anybody."""
    return markup.escape(_CONTROL.sub("�", text))


def shorten(text: str, longest: int) -> str:
    """Return the text on one line, cut where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def show_ms(ms: float | None) -> str:
    """Return milliseconds for people."""
    return "" if ms is None else f"{ms:.1f} ms"


def show_cost(part: Mapping[str, Any]) -> str:
    """Return the cost of a call or a run for people."""
    return "cost unknown" if part["cost"] is None else f"${part['cost']:.4f}"
