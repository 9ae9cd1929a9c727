from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import fail, print_json
from app.support.terminal import escape, out
from app.workbench.cli.here import open_file
from app.workbench.cli.show import print_trace
from app.workbench.cli.why import print_facts
from app.workbench.explain.trace import trace
from app.workbench.explain.why import explain_run
from domain.errors import AskgraphError

cli = new_cli()


@cli.command(name="open")
def open_bundle(
    file: Annotated[Path, typer.Argument(help="A file that `askgraph export` wrote.")], as_json: JsonOption = False
) -> None:
    """Show the run in a file: why it ended as it did, and every step. Needs no service."""
    try:
        bundle = open_file(file)
    except AskgraphError as error:
        fail(error)
    described = {
        "exported_at": bundle.exported_at,
        "made_with": bundle.made_with,
        "configuration": bundle.configuration,
        "prompts": bundle.run.record.prompts,
        "redacted": bundle.redacted,
        "why": explain_run(bundle.run),
        "trace": trace(bundle.run),
    }
    if as_json:
        print_json(described)
        return
    out.print(
        f"[dim]exported {escape(bundle.exported_at)} by askgraph {escape(bundle.made_with)}, configuration "
        f"{escape(bundle.configuration)}{', redacted' if bundle.redacted else ''}[/dim]"
    )
    print_facts(explain_run(bundle.run))
    out.print()
    print_trace(trace(bundle.run))
