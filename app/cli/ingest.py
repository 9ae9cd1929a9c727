from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from app.api.descriptions import describe_handed_over, describe_ingest
from app.cli.options import JsonOption, WorkspaceOption, new_cli
from app.cli.running import print_json, run
from app.cli.terminal import count, err, out, show_progress
from app.ingest.background import HandedOver, hand_over
from app.ingest.formats import list_formats
from app.settings import read_settings
from app.wiring.services import open_services
from domain.documents import DocumentReport, IngestReport

cli = new_cli()


@cli.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help=f"Files and folders. Supported formats: {list_formats()}.")],
    background: Annotated[
        bool, typer.Option("--background", help="Only queue the files; a server or worker reads them later.")
    ] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Add documents or update them. The same content twice changes nothing."""

    async def queue_files() -> int:
        async with open_services(read_settings()) as services:
            max_bytes = services.settings.max_document_mb * 1_000_000
            handed = await hand_over(services.library.ingestions, workspace, paths, max_bytes=max_bytes)
            if as_json:
                print_json(describe_handed_over(handed))
            else:
                print_handed_over(handed, workspace)
            return 1 if handed.refused else 0

    async def read_files() -> int:
        async with open_services(read_settings()) as services:
            with show_progress(transient=True, log=False) as progress:
                report = await services.library.ingestion.add_paths(workspace, paths, progress=progress)
                await services.library.wait_for_indexes()
            if as_json:
                print_json(describe_ingest(report))
            else:
                print_ingest(report)
            return 1 if report.failed else 0

    run(queue_files() if background else read_files())


def print_handed_over(handed: HandedOver, workspace_id: str) -> None:
    """Print the queued files and how to follow them, and the refused ones."""
    for report in handed.refused:
        _print_failure(report)
    for status in handed.ingestions:
        out.print(f"{status.state:<10} {status.ingestion_id} {escape(status.source)}")
    counts = [f"{count(len(handed.ingestions), 'file')} queued", f"{len(handed.refused)} failed"]
    if handed.passed_over:
        counts.append(_count_skipped(handed.passed_over))
    out.print(", ".join(counts))
    if handed.ingestions:
        option = "" if workspace_id == "default" else f" -w {workspace_id}"
        out.print("A running `askgraph serve` or `askgraph worker` reads them, or the next one that starts.")
        out.print(f"Check on them: askgraph ingestions{option}")


def print_ingest(report: IngestReport) -> None:
    """Print the result of each file, then a summary."""
    for d in report.documents:
        if d.status == "failed":
            _print_failure(d)
        elif d.status == "superseded":
            out.print(f"superseded {escape(d.source)}: {escape(d.note or '')}")
        else:
            pages = f", {count(d.pages, 'page')}" if d.pages else ""
            note = f" ({escape(d.note)})" if d.note else ""
            out.print(f"{d.status:<10} {escape(d.source)}: {count(d.chunks, 'chunk')}, {d.embedded} new{pages}{note}")
    taken = len(report.documents) - len(report.failed)
    rate = f" ({report.chunks / report.seconds:.0f} chunks/s)" if report.seconds and report.chunks else ""
    counts = [count(taken, "document"), f"{count(report.chunks, 'chunk')} written", f"{len(report.failed)} failed"]
    if report.passed_over:
        counts.append(_count_skipped(report.passed_over))
    out.print(f"{', '.join(counts)}, {report.seconds:.1f} s{rate}")


def _count_skipped(files: int) -> str:
    return f"{count(files, 'file')} of other types skipped"


def _print_failure(report: DocumentReport) -> None:
    err.print(f"[red]failed[/red]     {escape(report.source)}: {escape(report.error or '')}")
