from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import ask_server, fail, finish, print_result
from app.cli.support.server_client import ServerClient
from app.support.terminal import escape, new_table, out, print_table
from app.workbench.cli.targets import is_file, read_file, show_cost
from domain.errors import InputError

cli = new_cli()


@cli.command()
def diff(
    one: Annotated[str, typer.Argument(help="A run's id, or a file.", metavar="RUN_A")],
    other: Annotated[str, typer.Argument(help="Another one.", metavar="RUN_B")],
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Compare two runs: the first step where they part, and how both ended."""

    def work(server: ServerClient) -> int:
        return show(server.get("runs", one, "diff", other, workspace=workspace))

    def compare_files() -> int:
        from app.workbench.compare import difference

        return show(difference.diff(*(read_file(Path(target)) for target in (one, other))))

    show = partial(print_result, print_difference, as_json=as_json)
    files = [is_file(target) for target in (one, other)]
    if all(files):
        finish(compare_files)
    if any(files):
        fail(InputError("A file is compared with a file: write the other run to one with `askgraph export`."))
    ask_server(work)


def print_difference(found: Mapping[str, Any]) -> None:
    """Print where two runs part, and both ends side by side."""
    for change in found["given"]:
        out.print(f"given [bold]{escape(change['field'])}[/bold]: {escape(change['text'])}")
    first = found["first"]
    if first is None:
        out.print(f"All {found['same_steps']} steps are alike.")
    else:
        out.print(f"{found['same_steps']} steps are alike, then [bold]{escape(first['text'])}[/bold]:")
        for change in first["changed"]:
            out.print(f"  {escape(change['field'])}: {escape(change['text'])}")
        if first["changed"] and not first["call"]:
            out.print("  no call differs: the step made something else of the same replies")
        if call := first["call"]:
            said = {"request": "asked otherwise", "reply": "answered otherwise", "only": "made by one of them alone"}
            out.print(f"  the call that differs: {escape(call['port'])}, {call['method']}, {said[call['kind']]}")
            for line in call["lines"]:
                out.print(f"    {escape(line)}")
    table = new_table("", found["one"]["run_id"], found["other"]["run_id"])
    sides = found["one"], found["other"]
    endings = [side["ending"] for side in sides]
    rows: dict[str, list[str]] = {
        "outcome": [ending["error"] or ending["outcome"] or "-" for ending in endings],
        "confidence": [f"{ending['confidence']:.2f}" for ending in endings],
        "path": [" → ".join(ending["path"]) for ending in endings],
        "verification": [ending["verdict"] for ending in endings],
        "citations": ["; ".join(place["name"] for place in ending["citations"]) or "-" for ending in endings],
        "steps took": [f"{side['costs']['ms']:.1f} ms" for side in sides],
        "cost": [f"{side['costs']['tokens']} tokens, {show_cost(side['costs'])}" for side in sides],
    }
    for name, values in rows.items():
        style = "yellow" if values[0] != values[1] and name in ("outcome", "citations", "verification") else None
        table.add_row(name, *(escape(value) for value in values), style=style)
    print_table(table)
    marks = {"same": "{}", "removed": "[red]{}[/red]", "added": "[green]{}[/green]"}
    signs = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    # Marked by signs, as git does, because colours are not seen by everybody, nor in a pipe.
    words = [marks[part["kind"]].format(escape(_sign(part["text"], signs[part["kind"]]))) for part in found["answer"]]
    out.print(f"answer: {''.join(words) or '-'}")
    flipped = found["compared"]["flipped"]
    out.print(f"Differs in {', '.join(flipped)}." if flipped else "Both ended alike.")


def _sign(text: str, sign: str) -> str:
    """Put the text into its sign; white space before it stays outside."""
    said = text.lstrip()
    return text[: len(text) - len(said)] + sign.format(said) if said else text
