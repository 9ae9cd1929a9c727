"""Runs a command: opens what it needs, turns errors into one line and an exit code."""

import json
import logging
import sys
from collections.abc import Coroutine
from typing import Any, NoReturn

import typer
import uvloop

from domain.errors import AskgraphError, InputError, NotFound


def run(work: Coroutine[Any, Any, int], *, log_level: int = logging.WARNING) -> NoReturn:
    """Run a command to its end and exit with the code that it returns.

    An error of ours is printed in one line. The exit code is 2 if the request was wrong, 130 after Ctrl-C, else 1.
    """
    _configure_logging(log_level)
    try:
        code = uvloop.run(work)
    except AskgraphError as error:
        fail(error)
    except KeyboardInterrupt:
        code = 130
    raise typer.Exit(code)


def fail(error: AskgraphError) -> NoReturn:
    """Print the error and exit."""
    print(f"askgraph: {error.message}", file=sys.stderr)
    raise typer.Exit(2 if isinstance(error, InputError | NotFound) else 1)


def print_json(value: Any, **options: Any) -> None:
    """Print the value as JSON."""
    print(json.dumps(value, ensure_ascii=False, **options))


def _configure_logging(level: int) -> None:
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("askgraph").setLevel(level)
