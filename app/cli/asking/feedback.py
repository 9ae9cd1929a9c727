from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from app.cli.support.options import AnyWorkspaceOption, JsonOption, new_cli
from app.cli.support.running import as_command, print_result
from app.history.costs import parse_since
from app.settings import Settings, read_settings
from app.support.terminal import count, new_table, out, print_table
from app.wiring.stores import open_catalog, open_stores
from domain.history.feedback import RatedRun, Rating

if TYPE_CHECKING:
    from app.evaluation.feedback_set import Exported

cli = new_cli()


@cli.command()
@as_command
async def feedback(
    since: Annotated[str, typer.Option(help="A span such as 24h, 7d or 2w, or a date.")] = "30d",
    rating: Annotated[Rating | None, typer.Option(help="Only thumbs of this kind.")] = None,
    limit: Annotated[int, typer.Option(help="Only this many of the latest.", min=1)] = 200,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write the questions and the library's files to a new set, or add them to one."
        ),
    ] = None,
    workspace: AnyWorkspaceOption = None,
    as_json: JsonOption = False,
) -> int:
    """Show what readers say of answers, or make an evaluation set of it."""
    settings = read_settings()
    async with open_stores(settings) as stores:
        rated = await stores.feedback.list(workspace, parse_since(since), limit, rating)
    if export is not None and not rated:
        out.print("There is no feedback to export.")
    elif export is not None:
        print_export(export, await _export(settings, export, rated))
    else:
        print_result(print_feedback, rated, as_json=as_json)
    return 0


async def _export(settings: Settings, folder: Path, rated: Sequence[RatedRun]) -> "Exported":
    from app.evaluation.feedback_set import FeedbackSet

    async with open_stores(settings) as stores, open_catalog(settings) as catalog:
        written = FeedbackSet(folder, stores.originals.read)
        for workspace_id in dict.fromkeys(each.workspace_id for each in rated):
            await written.add_library(workspace_id, await catalog.list(workspace_id))
    written.add_questions(rated)
    return written.exported


def print_export(folder: Path, exported: "Exported") -> None:
    """Say what was written, and what is missing."""
    out.print(f"{count(exported.questions, 'question')} and {count(exported.files, 'file')} are in {folder}.")
    if exported.left_out:
        out.print(f"Left out: {count(exported.left_out, 'question')} that were answered by asking back.")
    if exported.known:
        out.print(f"There already, and left as they are: {count(exported.known, 'question')}.")
    for source in exported.without_file:
        out.print(f"Not kept, so not in the set: {escape(source)}")
    out.print("Add the facts that answers have to hold (`must`), then: askgraph eval", escape(str(folder)))


def print_feedback(rated: Sequence[RatedRun]) -> None:
    """Print a row per rated answer."""
    table = new_table("time", "workspace", "", "reason", "question", "comment", "run", overflow="fold")
    for each in rated:
        said = each.feedback
        table.add_row(
            f"{said.given_at:%Y-%m-%d %H:%M}",
            each.workspace_id,
            said.rating,
            said.reason or "",
            escape(each.question),
            escape(said.comment),
            each.run_id,
        )
    print_table(table)
