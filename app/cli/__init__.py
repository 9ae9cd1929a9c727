"""The `askgraph` command. Each command is a module of its own, and is imported only when it is run."""

import gc
import os
from typing import Annotated

import typer

from app.cli import asking, library, operating
from app.cli.support.lazy_group import make_group
from app.workbench import cli as explaining

ROOMS = {"Ask": asking, "Documents": library, "Find out why": explaining, "Run the service": operating}
"""The commands in the groups of the help."""

cli = typer.Typer(
    name="askgraph",
    cls=make_group(ROOMS),
    help="Answer questions from your documents, with sources. Everything runs on this machine unless you configure "
    "it otherwise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain help: formatting it with rich takes longer than everything else that --help does.
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"askgraph {version('askgraph')}")
        raise typer.Exit


@cli.callback()
def askgraph(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="Ask this server, with the key in ASKGRAPH_API_KEY, in place of this machine. [env: ASKGRAPH_SERVER]",
        ),
    ] = None,
) -> None:
    """Hold the options that come before the command."""
    if server is not None:
        os.environ["ASKGRAPH_SERVER"] = server


def main() -> None:
    """Run the command line."""
    # Imports make many objects and no garbage: collecting during them costs a tenth of their time. `run` enables it.
    gc.disable()
    cli()
