import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.library.ingest import POLL_SECONDS
from app.cli.support.auditing import record_command
from app.cli.support.options import JsonOption, WorkspaceOption, new_cli
from app.cli.support.running import as_command, print_json
from app.cli.support.server_client import ServerClient, open_server
from app.ingest.background import hand_over_content
from app.ingest.folder import Folder
from app.ingest.parser_workers import ParserWorkers
from app.ingest.syncing import Library, Synced
from app.ingest.syncing import sync as sync_place
from app.ingest.syncing import watch as watch_place
from app.settings import Settings, read_settings
from app.support.terminal import count, err, escape, out
from app.wiring.connectors import find_source, open_connector
from app.wiring.stores import open_stores
from askgraph import NotFound
from domain.documents import DocumentReport
from domain.errors import InputError
from domain.library.synced import SyncAction, SyncedFiles
from domain.ports.connectors import Connector, Content
from domain.ports.documents import DocumentCatalog

if TYPE_CHECKING:
    from domain.people.audit import AuditLog
    from domain.ports.ingestions import IngestionQueue

WATCH_SECONDS = 2.0
"""Interval between two looks at a watched folder."""

cli = new_cli()


@cli.command()
@as_command
async def sync(
    place: Annotated[
        str,
        typer.Argument(
            help="A folder, the address of a website (https://), bucket (s3://) or WebDAV folder, or a source's name."
        ),
    ],
    watch: Annotated[bool, typer.Option("--watch", help="Follow what changes in a folder, until Ctrl-C.")] = False,
    delete: Annotated[
        bool | None,
        typer.Option(
            "--delete/--keep",
            help="Delete the documents of files that are gone, or keep them. [default: delete, unless most are gone]",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; report what would change.")] = False,
    pages: Annotated[int, typer.Option("--pages", min=1, help="Read at most this many pages of a website.")] = 1000,
    workspace: WorkspaceOption = "default",
    as_json: JsonOption = False,
) -> int:
    """Keep the documents in step with a folder, website, bucket, WebDAV folder or loader.

    Files that were added, changed, moved or removed are brought up to date; the rest is not even read. It may be
    interrupted at any time, and goes on when it is called again. Only documents that came from this place are deleted.
    """

    async def follow(
        connector: Connector,
        library: Library,
        files: SyncedFiles,
        catalog: DocumentCatalog,
        parsers: ParserWorkers,
    ) -> int:
        failed = False
        shown: list[dict[str, str]] = []

        def report(action: SyncAction, source: str, remark: str) -> None:
            shown.append({"action": action, "source": source, "remark": remark})
            if not as_json:
                _print_action(action, source, remark)

        async def work() -> None:
            nonlocal failed
            shown.clear()
            synced = await sync_place(
                connector, workspace, files, catalog, parsers, library, delete=delete, dry_run=dry_run, report=report
            )
            failed = failed or bool(synced.counts["failed"])
            if not watch and not (sum(synced.counts.values()) or synced.unchanged or synced.kept or synced.passed_over):
                raise InputError(f"There is no file at {connector.address}. Check the address.")
            if as_json:
                counts = {"unchanged": synced.unchanged, "kept": synced.kept, "passed_over": synced.passed_over}
                print_json({"files": [*shown], "dry_run": dry_run, **synced.counts, **counts, "gap": synced.gap})
            elif shown or not watch:
                _print_counts(synced, dry_run=dry_run)

        await (watch_place(work, connector, WATCH_SECONDS) if watch else work())
        return int(failed)

    settings = read_settings()
    source = find_source(place, settings)
    workspace = source.workspace if source else workspace
    async with open_connector(place, settings, max_pages=pages, source=source) as connector:
        if watch and not isinstance(connector, Folder):
            raise InputError("--watch follows a folder. Call this for an address now and then, such as by cron.")
        with open_server(settings) as server:
            async with open_stores(settings) as stores, ParserWorkers() as workers:
                via = _OnServer(settings, server, stores.ingestions, workers, stores.audit)
                return await follow(connector, via, stores.synced, stores.catalog, workers)


@dataclass(frozen=True, slots=True)
class _OnServer:
    """Hands files to the server, and waits until it has read them."""

    settings: Settings
    server: ServerClient
    queue: "IngestionQueue"
    workers: ParserWorkers
    audit: "AuditLog"

    async def add(self, workspace_id: str, source: str, content: Content, moved_from: str | None) -> DocumentReport:
        max_bytes = self.settings.max_document_mb * 1_000_000
        status = await hand_over_content(
            self.queue, self.workers, workspace_id, source, content,
            groups=content.groups, moved_from=moved_from, max_bytes=max_bytes,
        )  # fmt: skip
        is_refused = isinstance(status, DocumentReport)
        await record_command(self.audit, "sync", workspace_id, [source], failed=is_refused)
        if isinstance(status, DocumentReport):
            return status
        while status.report is None:
            await asyncio.sleep(POLL_SECONDS)
            status = await asyncio.to_thread(self.server.read_ingestion, workspace_id, status.ingestion_id)
        return status.report

    async def delete(self, workspace_id: str, document_id: str) -> None:
        with suppress(NotFound):
            await asyncio.to_thread(self.server.delete, "documents", document_id, workspace=workspace_id)


def _print_action(action: SyncAction, source: str, remark: str) -> None:
    said = f" (was {escape(remark)})" if action == "moved" else f": {escape(remark)}" if remark else ""
    (err if action == "failed" else out).print(f"{action:<10} {escape(source)}{said}")


def _print_counts(synced: Synced, *, dry_run: bool) -> None:
    counts = [f"{number} {action}" for action, number in synced.counts.items()]
    counts.append(f"{synced.unchanged} unchanged")
    if synced.kept:
        counts.append(f"{synced.kept} kept although their files are gone")
    if synced.passed_over:
        counts.append(f"{count(synced.passed_over, 'file')} skipped")
    if synced.gap:
        err.print(f"Nothing was deleted, because there may be more. {escape(synced.gap)}")
    out.print(f"{', '.join(counts)}{'. Dry run: nothing was changed' if dry_run else ''}.")
