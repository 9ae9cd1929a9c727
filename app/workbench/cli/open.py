from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import fail, print_json
from app.support.terminal import escape, out
from app.workbench.cli.here import open_file
from app.workbench.cli.show import print_trace
from app.workbench.cli.why import print_facts
from app.workbench.explain.bundle_view import describe_bundle
from domain.errors import AskgraphError

cli = new_cli()


@cli.command(name="open")
def open_bundle(
    file: Annotated[Path, typer.Argument(help="A file that `askgraph export` wrote.")], as_json: JsonOption = False
) -> None:
    """Show the run in a file: why it ended as it did, and every step. Needs no service."""
    try:
        described = describe_bundle(open_file(file))
    except AskgraphError as error:
        fail(error)
    if as_json:
        print_json(described)
        return
    out.print(
        f"[dim]exported {escape(described['exported_at'])} by askgraph {escape(described['made_with'])}, configuration "
        f"{escape(described['configuration'])}{', redacted' if described['redacted'] else ''}[/dim]"
    )
    print_facts(described["why"])
    out.print()
    print_trace(described["trace"])
