from functools import partial
from typing import Annotated, Any

import typer

from app.cli.support.options import JsonOption, new_cli
from app.cli.support.running import as_command, print_result
from app.ingest.reindexing import Reindexed
from app.ingest.reindexing import reindex as embed_again
from app.settings import read_settings
from app.support.terminal import count, out, show_progress
from app.wiring.library import open_reindexing

cli = new_cli()


@cli.command()
@as_command
async def reindex(
    embeddings: Annotated[
        str, typer.Option(help="local, multilingual, openai:MODEL[@DIMENSION], folder:PATH or package:MODULE.")
    ],
    as_json: JsonOption = False,
) -> int:
    """Embed all documents again with another model. This covers all workspaces.

    Questions can be asked and documents added meanwhile. An interrupted run continues where it stopped.
    """
    settings = read_settings(embeddings=embeddings)
    async with open_reindexing(settings, settings.embeddings) as (index, embedder):
        with show_progress() as progress:
            report = await embed_again(index, embedder, progress)
    return print_result(partial(print_reindexing, embeddings), report, as_json=as_json, describe=_describe)


def print_reindexing(embeddings: str, report: Reindexed) -> None:
    """Print how much was embedded, its cost, and what to do next."""
    if not report.switched:
        out.print(f"The index already uses {report.model}.")
        return
    spent = f", {count(report.tokens, 'token')}" if report.usage else ""
    cost = f", ${report.cost:.4f}" if report.cost else ""
    out.print(
        f"{count(report.chunks, 'chunk')} embedded with {report.model}{spent}{cost}. Running servers search by words "
        f"only until they are restarted with ASKGRAPH_EMBEDDINGS={embeddings}."
    )


def _describe(report: Reindexed) -> dict[str, Any]:
    return {
        "model": report.model,
        "switched": report.switched,
        "chunks": report.chunks,
        "tokens": report.tokens,
        "cost": report.cost,
    }
