from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import print_json
from app.cli.support.terminal import out
from app.workbench.cli.reading_runs import escape, open_file
from app.workbench.cli.show import print_trace
from app.workbench.cli.why import print_facts

cli = new_cli()


@cli.command(name="open")
def open_bundle(
    file: Annotated[Path, typer.Argument(help="A file that `askgraph export` wrote.")], as_json: JsonOption = False
) -> None:
    """Show the run in a file: why it ended as it did, and every step. Needs no service."""
    from app.workbench.explain.trace import trace
    from app.workbench.explain.why import explain_run

    bundle = open_file(file)
    described = {
        "exported_at": bundle.exported_at,
        "made_with": bundle.made_with,
        "configuration": bundle.configuration,
        "prompts": bundle.run.record.prompts,
        "redacted": bundle.redacted,
    }
    if as_json:
        print_json({**described, "why": explain_run(bundle.run), "trace": trace(bundle.run)})
        return
    out.print(
        f"[dim]exported {escape(bundle.exported_at)} by askgraph {escape(bundle.made_with)}, configuration "
        f"{escape(bundle.configuration)}{', redacted' if bundle.redacted else ''}[/dim]"
    )
    print_facts(explain_run(bundle.run))
    out.print()
    print_trace(trace(bundle.run))
