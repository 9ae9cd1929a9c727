"""Runs a command: on a server or on the data of this machine, and turns errors into one line and an exit code."""

import gc
import json
import logging
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer

import askgraph
from app.support.logs import configure_logs
from domain.errors import AskgraphError, InputError, NotFound
from domain.text.controls import show_controls

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

Given = ParamSpec("Given")
"""The options of a command."""

_WRONG = (InputError, NotFound, askgraph.InputError, askgraph.NotFound)
"""Errors of a wrong request."""


def run(work: Coroutine[Any, Any, int], *, log_level: int = logging.WARNING, needs_data: bool = True) -> NoReturn:
    """Run a command to its end and exit with the code that it returns; see `finish`. One that needs the data of this
    machine is refused where a server is named."""
    import uvloop

    if needs_data and (server := os.environ.get("ASKGRAPH_SERVER")):
        work.close()
        fail(
            InputError(
                f"This command works on the data of this machine, and cannot be sent to {server}. Run it where the "
                "server runs, or leave out --server and ASKGRAPH_SERVER."
            )
        )

    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    configure_logs("text")
    logging.getLogger("askgraph").setLevel(log_level)
    gc.enable()
    finish(lambda: uvloop.run(work))


def as_command(work: Callable[Given, Coroutine[Any, Any, int]]) -> Callable[Given, None]:
    """Make a command of work that needs the data of this machine: `run` it with the command's options."""

    @wraps(work)
    def begin(*arguments: Given.args, **options: Given.kwargs) -> None:
        run(work(*arguments, **options))

    return begin


def ask_server(work: "Callable[[ServerClient], int]") -> NoReturn:
    """Run a command on the server that is named, else on the one that runs in this home, else on one that is started
    for it; then exit. See `finish`."""
    from app.cli.support.server_client import open_server
    from app.settings import read_settings

    def ask() -> int:
        with open_server(read_settings()) as server:
            return work(server)

    finish(ask)


def finish(work: Callable[[], int]) -> NoReturn:
    """Do a command's work, and exit with the code that it returns.

    An error of ours, or of the client, is printed in one line. The exit code is 2 if the request was wrong, 130 after
    Ctrl-C, else 1.
    """
    try:
        code = work()
    except (AskgraphError, askgraph.AskgraphError) as error:
        fail(error)
    except (FileNotFoundError, NotADirectoryError, FileExistsError, PermissionError) as error:
        # Of a path that was given. Where certificates are read, the error names none.
        path = error.filename or f"SSL_CERT_FILE={os.environ.get('SSL_CERT_FILE')}"
        fail(InputError(f"{str(path)!r} cannot be used: {error.strerror}."))
    except KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def fail(error: AskgraphError | askgraph.AskgraphError) -> NoReturn:
    """Print the error and exit."""
    print(f"askgraph: {show_controls(error.message, lines=True)}", file=sys.stderr)
    raise typer.Exit(2 if isinstance(error, _WRONG) else 1)


def print_json(value: Any) -> None:
    """Print the value as JSON: data classes as objects, sets as sorted lists, and times as text."""
    # JSON itself escapes some control characters only.
    print(show_controls(json.dumps(value, ensure_ascii=False, default=_spell)))


def print_result(
    print_text: Callable[[Any], None], found: Any, *, as_json: bool, describe: Callable[[Any], Any] | None = None
) -> int:
    """Print what a command has found, for people, or as the JSON that `describe` makes of it. Returns the exit code."""
    if as_json:
        print_json(found if describe is None else describe(found))
    else:
        print_text(found)
    return 0


def _spell(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return sorted(value) if isinstance(value, frozenset) else str(value)
