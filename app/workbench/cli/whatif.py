from collections.abc import Mapping
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli, parse_changes
from app.cli.support.running import ask_server, print_result
from app.cli.support.server_client import ServerClient
from app.support.terminal import count, escape, new_table, out, print_table, shorten

cli = new_cli()


@cli.command()
def whatif(
    run_id: Annotated[str, typer.Argument(help="The run's id.", metavar="RUN")],
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Try this as well: key=value, for example profile.rerank.keep=3; repeatable."),
    ] = None,
    models: Annotated[
        bool, typer.Option("--models", help="Ask language models what the run's tape does not know. It costs.")
    ] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Try what would have changed a run's end: sources, grade, knobs, mode.

    Nothing is stored. Calls that the run made come from its tape.
    """

    def work(server: ServerClient) -> int:
        body = {"sets": [parse_changes([change]) for change in changes or []], "models": models}
        tried = server.post("runs", run_id, "whatif", body=body, workspace=workspace)
        return print_result(print_whatif, tried, as_json=as_json)

    ask_server(work)


def print_whatif(tried: Mapping[str, Any]) -> None:
    """Print a row per variant, those that flip something first."""
    recorded = tried["recorded"]
    out.print(
        f"As it was: {recorded['error'] or recorded['outcome']}, confidence {recorded['confidence']:.2f}, "
        f"{count(len(recorded['citations']), 'citation')}, verification {escape(recorded['verdict'])}"
    )
    if not tried["taped"]:
        out.print("[yellow]The run has no tape: every call was made anew, on the documents of today.[/yellow]")
    headings = ("what if", "first step", "flips", "outcome", "confidence", "citations", "calls", "answer")
    table = new_table(*headings, right=["confidence"])
    for each in tried["outcomes"]:
        ending, compared = each["ending"], each["compared"]
        if ending is None:
            table.add_row(
                escape(each["label"]), each["begins"], "[dim]?[/dim]", f"[dim]{escape(each['problem'])}[/dim]"
            )
            continue
        gained, lost = len(compared["gained"]), len(compared["lost"])
        table.add_row(
            escape(each["label"]),
            each["begins"],
            f"[yellow]{', '.join(compared['flipped'])}[/yellow]" if compared["flipped"] else "-",
            escape(ending["error"] or ending["outcome"] or "-"),
            f"{ending['confidence']:.2f}",
            f"+{gained} -{lost}" if gained or lost else "=",
            f"{each['taped']} taped, {each['made']} made",
            escape(shorten(each["problem"] or ending["answer"], 60)) if "answer" in compared["flipped"] else "",
        )
    print_table(table)
    more = f", {tried['left_out']} more were left out" if tried["left_out"] else ""
    total = count(len(tried["outcomes"]), "variant")
    out.print(f"Of {total} {tried['flipping']} flip something, {tried['not_tried']} could not be tried{more}.")
    if tried["tokens"] or tried["cost"] != 0:
        cost = "their price is not known" if tried["cost"] is None else f"${tried['cost']:.4f}"
        out.print(f"New calls used {count(tried['tokens'], 'token')}: {cost}.")
    commands = [each["replay"] for each in tried["outcomes"] if each["compared"] and each["compared"]["flipped"]]
    for command in [command for command in commands if command][:5]:
        out.print(f"[dim]{escape(command)}[/dim]")
