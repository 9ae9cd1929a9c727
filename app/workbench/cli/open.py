from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import new_cli
from app.cli.support.running import fail
from app.support.terminal import escape, out
from app.workbench.cli.here import open_file
from app.workbench.cli.show import print_trace
from app.workbench.cli.why import print_facts
from app.workbench.explain.trace import trace
from app.workbench.explain.why import explain_run
from domain.errors import AskgraphError

cli = new_cli()


@cli.command(name="open")
def open_bundle(file: Annotated[Path, typer.Argument(help="A file that `askgraph export` wrote.")]) -> None:
    """Show the run in a file: why it ended as it did, and every step. Needs no service."""
    try:
        bundle = open_file(file)
    except AskgraphError as error:
        fail(error)
    out.print(f"[dim]exported {escape(bundle.exported_at)} by askgraph {escape(bundle.made_with)}[/dim]")
    print_facts(explain_run(bundle.run))
    out.print()
    print_trace(trace(bundle.run))
