"""Runs a command: opens what it needs, turns errors into one line and an exit code."""

import gc
import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing
from dataclasses import asdict, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec

import typer

from app.support.logs import configure_logs
from domain.errors import AskgraphError, InputError, NotFound
from domain.text.controls import show_controls

if TYPE_CHECKING:
    from app.cli.support.server_client import ServerClient

Given = ParamSpec("Given")
"""The options of a command."""


def run(work: Coroutine[Any, Any, int], *, log_level: int = logging.WARNING, needs_data: bool = True) -> NoReturn:
    """Run a command to its end and exit with the code that it returns.

    An error of ours is printed in one line. The exit code is 2 if the request was wrong, 130 after Ctrl-C, else 1. One
    that needs the data of this machine is refused where a server is named.
    """
    import uvloop

    if needs_data and (server := os.environ.get("ASKGRAPH_SERVER")):
        work.close()
        fail(
            InputError(
                f"This command works on the data of this machine, and cannot be sent to {server}. Run it where the "
                "server runs, or leave out --server and ASKGRAPH_SERVER."
            )
        )

    _configure_logging(log_level)
    gc.enable()
    try:
        code = uvloop.run(work)
    except AskgraphError as error:
        fail(error)
    except (FileNotFoundError, NotADirectoryError, FileExistsError, PermissionError) as error:
        # Of a path that was given.
        fail(InputError(f"{str(error.filename)!r} cannot be used: {error.strerror}."))
    except KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def as_command(work: Callable[Given, Coroutine[Any, Any, int]]) -> Callable[Given, None]:
    """Make a command of work that needs the data of this machine: `run` it with the command's options."""

    @wraps(work)
    def begin(*arguments: Given.args, **options: Given.kwargs) -> None:
        run(work(*arguments, **options))

    return begin


def run_on_server(work: Callable[["ServerClient"], int], *, only_named: bool = False) -> None:
    """Run a command on the server that is named, or runs in this home, and exit; return if there is none. If
    `only_named`, a server of this home does not count, because the command is quicker here.

    The server has its models loaded, which takes longer than the work of most commands.
    """
    from app.cli.support.server_client import ServerClient
    from app.settings import read_settings

    try:
        settings = read_settings()
        if only_named and settings.server is None:
            return
        server = ServerClient.find(settings)
        if server is None:
            return
        with closing(server):
            code = work(server)
    except AskgraphError as error:
        fail(error)
    except KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def show_there_or_here(
    show: Callable[[Any], int],
    there: "Callable[[ServerClient], Any]",
    here: Callable[[], Awaitable[Any]],
    *,
    only_named: bool = False,
    of_files: bool = False,
) -> NoReturn:
    """Show what a running server finds, or what is found on this machine where there is none; see `run_on_server`. A
    command `of_files` needs neither a server nor the data of this machine."""
    if not of_files:
        run_on_server(lambda server: show(there(server)), only_named=only_named)

    async def work() -> int:
        return show(await here())

    run(work(), needs_data=not of_files)


def write_file(file: Path, data: bytes) -> None:
    """Write a file that the user named, or end the command."""
    try:
        file.write_bytes(data)
    except OSError as error:
        fail(InputError(f"{str(file)!r} cannot be written: {error.strerror}."))


def fail(error: AskgraphError) -> NoReturn:
    """Print the error and exit."""
    print(f"askgraph: {show_controls(error.message, lines=True)}", file=sys.stderr)
    raise typer.Exit(2 if isinstance(error, InputError | NotFound) else 1)


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


def _configure_logging(level: int) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    configure_logs("text")
    logging.getLogger("askgraph").setLevel(level)
