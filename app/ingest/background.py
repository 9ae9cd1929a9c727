"""Files of this machine that are handed to the workers, to be read later."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from app.ingest.files import describe_failure, find_files, load, report_bad_name, report_failure
from app.ingest.metadata.sidecars import read_sidecar
from app.ingest.parser_workers import ParserWorkers
from app.ingest.reading import check_file
from domain.documents import DocumentReport
from domain.errors import DocumentError, MetadataError, UnreadableDocument
from domain.library.ingestions import IngestionStatus
from domain.library.metadata import Metadata
from domain.people.names import spell_name
from domain.ports.connectors import Content
from domain.ports.ingestions import IngestionQueue


@dataclass(slots=True)
class HandedOver:
    """The result of queueing files."""

    ingestions: list[IngestionStatus] = field(default_factory=list)
    refused: list[DocumentReport] = field(default_factory=list)
    """Those that can be seen at once to be no documents."""
    passed_over: list[Path] = field(default_factory=list)
    """Files in folders that are of no supported type."""


Take = Callable[[Path], Awaitable[IngestionStatus | DocumentReport]]
"""Takes a file to be read later, or refuses it with a report. May raise `DocumentError` and `MetadataError`."""


async def hand_over(paths: Sequence[Path | str], take: Take) -> HandedOver:
    """Have files, and folders with all that is in them, taken. Raises what `take` raises besides."""
    handed = HandedOver()
    files: dict[Path | DocumentReport, None] = {}
    for path in paths:
        found, others = await asyncio.to_thread(find_files, Path(path))
        files |= dict.fromkeys(found)
        handed.passed_over += others
    for file in files:
        try:
            outcome = file if isinstance(file, DocumentReport) else await take(file)
        except (DocumentError, MetadataError) as error:
            outcome = report_failure(str(file), error)
        except OSError as error:
            outcome = report_failure(str(file), UnreadableDocument(describe_failure(error)))
        if isinstance(outcome, DocumentReport):
            handed.refused.append(outcome)
        else:
            handed.ingestions.append(outcome)
    return handed


def into_queue(
    queue: IngestionQueue,
    workers: ParserWorkers,
    workspace_id: str,
    *,
    max_bytes: int,
    metadata: Metadata | None = None,
    groups: Sequence[str] | None = None,
) -> Take:
    """Return what has files read by whichever worker has time. They are copied: what becomes of the files themselves
    does not matter any more. It raises `DatabaseUnavailable`; what was handed over before that is read all the same."""

    async def take(file: Path) -> IngestionStatus | DocumentReport:
        data = await asyncio.to_thread(load, file, max_bytes)
        content = Content(data, metadata=await asyncio.to_thread(read_sidecar, file))
        return await hand_over_content(
            queue, workers, workspace_id, str(file), content, max_bytes=max_bytes, metadata=metadata, groups=groups
        )

    return take


async def hand_over_content(
    queue: IngestionQueue,
    workers: ParserWorkers,
    workspace_id: str,
    source: str,
    content: Content,
    *,
    max_bytes: int,
    metadata: Metadata | None = None,
    groups: Sequence[str] | None = None,
    moved_from: str | None = None,
) -> IngestionStatus | DocumentReport:
    """Have a file read by whichever worker has time; where it can be seen at once to be no document, return the report
    that says so. Raises `DatabaseUnavailable`."""
    source = spell_name(source)
    if refused := report_bad_name(source):
        return refused
    data, media_type = content.data, content.media_type
    check = partial(check_file, source, data, media_type=media_type, max_bytes=max_bytes)
    try:
        await workers.run(check, len(data), is_short=True)
    except DocumentError as error:
        return report_failure(source, error)
    return await queue.accept(
        workspace_id, source, data, media_type,
        metadata=metadata, sidecar=content.metadata, groups=groups, moved_from=moved_from,
    )  # fmt: skip
