import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from app.api.schema.descriptions import describe_ingest, describe_ingestion
from app.cli.support.auditing import record_command
from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import ask_server, fail, print_json, print_result, run
from app.cli.support.server_client import ServerClient
from app.ingest.background import HandedOver, hand_over, into_queue
from app.ingest.formats import list_formats
from app.ingest.metadata.sidecars import read_sidecar
from app.ingest.parser_workers import ParserWorkers
from app.settings import Settings, read_settings
from app.support.terminal import Progress, count, err, escape, out, show_progress
from app.wiring.stores import open_stores
from domain.documents import DocumentReport, IngestReport, check_groups
from domain.errors import AskgraphError, InputError, UnreadableDocument
from domain.library.ingestions import IngestionStatus
from domain.library.metadata import Metadata, read_pairs

POLL_SECONDS = 0.2
"""Interval between two looks at a queued file."""

PATIENCE_SECONDS = 60.0
"""Time without a finished file after which one whose embedding model has a problem is not waited for: words find it,
and whichever server or worker runs next goes on."""

MOST_TYPES, MOST_SKIPPED = 5, 100
"""Types of skipped files that are told, and files that are listed as JSON."""

cli = new_cli()


@dataclass(frozen=True, slots=True)
class _Given:
    """What the command says of every file."""

    metadata: Metadata | None
    """None: what was given before."""
    groups: list[str] | None


@cli.command()
def ingest(
    paths: Annotated[
        list[Path] | None, typer.Argument(help=f"Files and folders. Supported formats: {list_formats()}.")
    ] = None,
    background: Annotated[
        bool, typer.Option("--background", help="Only queue the files; a server or worker reads them later.")
    ] = False,
    meta: Annotated[
        list[str] | None,
        typer.Option("--meta", help="Metadata of every file, such as team=legal; repeatable. Unset: as before."),
    ] = None,
    no_meta: Annotated[
        bool, typer.Option("--no-meta", help="Remove the metadata that was given before; the files' own stays.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option("--group", help="Only callers of this group may read the files; repeatable. Unset: as before."),
    ] = None,
    embed_again: Annotated[
        bool,
        typer.Option("--embed-again", help="Embed all documents again, with the model that ASKGRAPH_EMBEDDINGS names."),
    ] = False,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Add documents or update them. The same content and metadata twice change nothing."""
    if embed_again:
        run(_embed_again())
    if not paths:
        raise typer.BadParameter("Name files or folders.")

    def work(server: ServerClient) -> int:
        started = perf_counter()
        if settings.server is None:
            handed = asyncio.run(_hand_over(settings, workspace, paths, given))
        else:
            handed = asyncio.run(_send(server, workspace, paths, given))
        if background:
            return _report_handed_over(handed, workspace, as_json)
        with show_progress(transient=True, log=False) as progress:
            documents = [*handed.refused, *_wait_for_server(server, workspace, handed.ingestions, progress)]
        report = IngestReport(documents, round(perf_counter() - started, 3), handed.passed_over)
        return _report_ingest(report, as_json)

    async def queue() -> int:
        return _report_handed_over(await _hand_over(settings, workspace, paths, given), workspace, as_json)

    try:
        settings, given = read_settings(), _read_given(meta, group, no_meta=no_meta)
    except AskgraphError as error:
        fail(error)
    if background and settings.server is None:
        run(queue())
    ask_server(work)


def _read_given(meta: list[str] | None, group: list[str] | None, *, no_meta: bool) -> _Given:
    """Read what the options say. Raises `InputError` and `MetadataError`."""
    if meta and no_meta:
        raise InputError("--meta gives metadata and --no-meta removes it. Use one of them.")
    return _Given(read_pairs(meta) if meta else {} if no_meta else None, check_groups(group))


async def _send(server: ServerClient, workspace_id: str, paths: Sequence[Path], given: _Given) -> HandedOver:
    """Send files to a server that is not of this home, which knows them by their names alone."""
    taken = set[str]()

    async def take(file: Path) -> IngestionStatus | DocumentReport:
        if file.name in taken:
            raise UnreadableDocument("Another of these files has the same name. Rename one: names identify them.")
        taken.add(file.name)
        return server.upload(file, workspace_id, given.metadata, given.groups, read_sidecar(file))

    return await hand_over(paths, take)


def _wait_for_server(
    server: ServerClient, workspace_id: str, accepted: Sequence[IngestionStatus], progress: Progress
) -> Iterator[DocumentReport]:
    """Yield the report of each file once it is read and embedded, or read, where the model cannot be had. Ctrl-C
    cancels what has not been read yet."""
    problem = "ok"
    try:
        for done, status in enumerate(accepted):
            progress("files", done, len(accepted))
            looked = time.monotonic()
            while True:
                status = server.read_ingestion(workspace_id, status.ingestion_id)
                is_whole = status.state != "done" or status.progress.stage == "done" or problem != "ok"
                if status.report is not None and is_whole:
                    break
                if problem == "ok" and time.monotonic() - looked > PATIENCE_SECONDS:
                    looked, problem = time.monotonic(), server.read_health()["embeddings"]
                time.sleep(POLL_SECONDS)
            yield status.report
        if problem != "ok":
            err.print(f"Some of this is found by its words only until the embedding model works. {escape(problem)}")
    except KeyboardInterrupt:
        for status in accepted:
            server.cancel_ingestion(workspace_id, status.ingestion_id)
        raise


async def _hand_over(settings: Settings, workspace_id: str, paths: Sequence[Path], given: _Given) -> HandedOver:
    """Queue files for the processes of this home, which know them by their paths."""
    max_bytes = settings.max_document_mb * 1_000_000
    async with open_stores(settings) as stores, ParserWorkers() as workers:
        take = into_queue(
            stores.ingestions, workers, workspace_id,
            max_bytes=max_bytes, metadata=given.metadata, groups=given.groups,
        )  # fmt: skip
        handed = await hand_over(paths, take)
        taken = [each.source for each in handed.ingestions]
        refused = [each.source for each in handed.refused]
        await record_command(stores.audit, "ingest", workspace_id, [*taken, *refused], failed=not taken)
    return handed


async def _embed_again() -> int:
    """Embed all documents of all workspaces with the model of the settings. What an earlier run, or a worker, has
    embedded with it is not embedded again."""
    # Loads the embedding models.
    from app.ingest.embedding import embed_backlog
    from app.wiring.library import open_embedding_again

    settings = read_settings()
    async with open_embedding_again(settings) as (backlog, encoder, embedder):
        total = await backlog.count_all()
        with show_progress() as progress:
            while (pause := await embed_backlog(backlog, encoder)) is not None:
                progress(embedder.name, max(0, total - await backlog.count_all()), total)
                await asyncio.sleep(pause)
            progress(embedder.name, total, total)
    out.print(
        f"{count(total, 'chunk')} embedded with {embedder.name}. Running servers search by words only until they are "
        f"restarted with ASKGRAPH_EMBEDDINGS={settings.embeddings}."
    )
    return 0


def _report_handed_over(handed: HandedOver, workspace_id: str, as_json: bool) -> int:
    if as_json:
        failed = {"documents": [asdict(report) for report in handed.refused], "failed": len(handed.refused)}
        queued = {"ingestions": [describe_ingestion(status) for status in handed.ingestions]}
        print_json(failed | _name_skipped(handed.passed_over) | queued)
    else:
        print_handed_over(handed, workspace_id)
    return 1 if handed.refused else 0


def _report_ingest(report: IngestReport, as_json: bool) -> int:
    def describe(report: IngestReport) -> dict[str, Any]:
        return describe_ingest(report) | _name_skipped(report.passed_over)

    print_result(print_ingest, report, as_json=as_json, describe=describe)
    return 1 if report.failed else 0


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
        out.print(f"Check on them: askgraph documents --waiting{option}")


def print_ingest(report: IngestReport) -> None:
    """Print the result of each file, then a summary."""
    for d in report.documents:
        if d.status == "failed":
            _print_failure(d)
        elif d.status in ("superseded", "cancelled"):
            out.print(f"{d.status:<10} {escape(d.source)}: {escape(d.note or '')}")
        else:
            pages = f", {count(d.pages, 'page')}" if d.pages else ""
            note = f" ({escape(d.note)})" if d.note else ""
            # Rows of a table that are the same make chunks with the same text, which is embedded once.
            what = "different" if d.status == "added" and d.embedded < d.chunks else "new"
            out.print(
                f"{d.status:<10} {escape(d.source)}: {count(d.chunks, 'chunk')}, {d.embedded} {what}{pages}{note}"
            )
    taken = len(report.documents) - len(report.failed)
    rate = f" ({report.chunks / report.seconds:.0f} chunks/s)" if report.seconds and report.chunks else ""
    counts = [count(taken, "document"), f"{count(report.chunks, 'chunk')} written", f"{len(report.failed)} failed"]
    if report.passed_over:
        counts.append(_count_skipped(report.passed_over))
    out.print(f"{', '.join(counts)}, {report.seconds:.1f} s{rate}")


def _name_skipped(files: Sequence[Path]) -> dict[str, Any]:
    return {"passed_over": len(files), "skipped": [str(file) for file in files[:MOST_SKIPPED]]}


def _count_skipped(files: Sequence[Path]) -> str:
    """Say how many files were skipped, and how many of the commonest types, with the first of each."""
    types: dict[str, list[str]] = {}
    for file in files:
        types.setdefault(file.suffix, []).append(file.name)
    most = sorted(types.values(), key=len, reverse=True)[:MOST_TYPES]
    told = [f"{len(names)} like {escape(names[0])}" if len(names) > 1 else escape(names[0]) for names in most]
    others = [f"{len(files) - sum(map(len, most))} others"] if len(types) > len(most) else []
    return f"{count(len(files), 'file')} of other types skipped ({', '.join([*told, *others])})"


def _print_failure(report: DocumentReport) -> None:
    err.print(f"[red]failed[/red]     {escape(report.source)}: {escape(report.error or '')}")
