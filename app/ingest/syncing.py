"""Keeps a workspace in step with a place that documents come from.

Each file is brought in or removed by itself, and noted right after. So a sync may be cut off at any moment: the library
is whole, and the next one goes on where this one stopped. A document is deleted with its file only by a sync of the
place that saw the file last: places may overlap.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from app.ingest.files import report_bad_name, report_failure
from app.ingest.formats import find_suffix
from app.ingest.identity import Vanished
from app.ingest.parser_workers import ParserWorkers
from domain.documents import DocumentReport
from domain.errors import DocumentError, InputError, MetadataError, NotFound, RestrictedText, UnreadableDocument
from domain.library.synced import SyncAction, SyncedFile, SyncedFiles
from domain.people.names import spell_name
from domain.ports.connectors import Connector, Content, Listing
from domain.ports.documents import DocumentCatalog

_TWIN = UnreadableDocument("Another file beside it has the same name. Rename one.")


class Library(Protocol):
    """Brings files into the library and removes documents, here or on a server."""

    async def add(self, workspace_id: str, source: str, content: Content, moved_from: str | None) -> DocumentReport: ...

    async def delete(self, workspace_id: str, document_id: str) -> None: ...


Report = Callable[[SyncAction, str, str], None]
"""Called with each action, the path, and a remark: where the file was before, or why it could not be read."""


@dataclass(slots=True)
class Synced:
    """The result of a sync."""

    counts: dict[SyncAction, int] = field(
        default_factory=lambda: {"added": 0, "changed": 0, "moved": 0, "removed": 0, "failed": 0}
    )
    unchanged: int = 0
    passed_over: int = 0
    """Files that the place has and that are not for the library."""
    kept: int = 0
    """Documents whose file is gone, and which stay because they are not to be deleted."""
    gap: str | None = None
    """Why the place may hold more than was seen."""


async def sync(
    place: Connector,
    workspace_id: str,
    files: SyncedFiles,
    documents: DocumentCatalog,
    parsers: ParserWorkers,
    library: Library,
    *,
    delete: bool | None = None,
    dry_run: bool = False,
    report: Report = lambda *_: None,
) -> Synced:
    """Bring what was added, changed or moved in `place`, and then delete the documents of files that are gone. A new
    file is the document of one that vanished, if it has its content or most of its text, or alone its name.

    With `delete` False documents stay. With None they go unless that would be more than half of them: then the place
    is probably not mounted, or shows something else for the time being. Where it may hold more than was seen, none
    goes, and what could not be read is reported as failed. With `dry_run` nothing changes.

    Raises `InputError` where there is no such place, or too much of it is gone; `ConfigurationError`; `Unavailable`.
    """
    if bad := report_bad_name(place.address):
        raise InputError(f"{bad.source}: {bad.error}")
    listing = await place.list()
    stored = {document.id: document for document in await documents.list(workspace_id)}
    refused = {entry.source: bad for entry in listing.entries if (bad := report_bad_name(entry.source))}
    written = {entry.source for entry in listing.entries} - refused.keys()
    found = {spell_name(source) for source in written}
    # A folder can hold both forms of a name, which people cannot tell apart.
    refused |= {source: report_failure(source, _TWIN) for source in written - found if spell_name(source) in written}
    known = await files.list(workspace_id, place.address, found)
    gone = {} if listing.gap else {source: file for source, file in known.items() if source not in found}
    unread = {spell_name(part): why for part, why in listing.unread.items()}
    if not delete:
        away = {file.mount for file in gone.values() if file.mount and file.mount not in listing.mounts}
        unread |= dict.fromkeys(sorted(away), "It is not mounted. If it is gone for good, add --delete.")
        for link in map(spell_name, listing.links):
            if any(source.startswith(f"{link}/") for source in gone):
                unread[link] = "It is a link now, which is not followed. To delete what was in it, add --delete."
    for part in unread:
        gone = {source: file for source, file in gone.items() if not f"{source}/".startswith(f"{part}/")}
    gap = listing.gap or ("Some of it could not be read." if unread else None)
    vanished = Vanished(gone, stored, documents, parsers)
    entries, compared, moved, held = list(listing.entries), set[str](), set[str](), set[str]()
    result = Synced(passed_over=listing.passed_over, gap=gap)

    def note(action: SyncAction, source: str, remark: str = "") -> None:
        result.counts[action] += 1
        report(action, source, remark)

    for part, why in unread.items():
        note("failed", part, why)
    for entry in entries:
        if bad := refused.get(entry.source):
            note("failed", bad.source, bad.error or "")
            if vanished:
                # A file that has got a bad name is still there.
                with suppress(DocumentError, MetadataError, NotFound):
                    renamed = await place.read(entry, None)
                    same = renamed and vanished.take_same(await asyncio.to_thread(_hash, renamed.data))
                    held.update({same} if same else ())
            continue
        source = spell_name(entry.source)
        before = known.get(source)
        is_current = before is not None and (before.document_id is None or before.document_id in stored)
        stamp = before.stamp if before and is_current else None
        if stamp is not None and stamp == entry.version:
            result.unchanged += 1
            now = replace(before, folder=place.address, mount=entry.mount) if before else None
            if now and now != before and not dry_run:
                await files.put(workspace_id, now)
            continue
        if dry_run and entry.version is not None and (before or not vanished):
            note("changed" if before else "added", source)
            continue
        try:
            content = await place.read(entry, stamp)
        except NotFound:
            if before:
                gone[source] = before
            continue
        except (DocumentError, MetadataError) as error:
            note("failed", source, error.message)
            continue
        content_hash = "" if content is None else await asyncio.to_thread(_hash, content.data)
        if content is None or (dry_run and before and is_current and before.content_hash == content_hash):
            result.unchanged += 1
            continue
        came_from = None if before else vanished.take_same(content_hash)
        if not before and came_from is None and vanished:
            if source not in compared:
                # Once all that vanished and has the same content is found.
                compared.add(source)
                entries.append(entry)
                continue
            came_from = await vanished.take_alike(source, content)
        was = stored.get(gone[came_from].document_id or "") if came_from else None
        action: SyncAction = "changed" if before else "moved" if was else "added"
        if dry_run:
            note(action, source, came_from or "")
            moved.update({came_from} if came_from else ())
            continue
        moved_from = was.id if was else None if before else await documents.find_deleted(workspace_id, content_hash)
        added = await library.add(workspace_id, source, content, moved_from)
        if added.code == "unsupported_document" and not find_suffix(source):
            result.passed_over += 1
        elif added.status == "failed":
            note("failed", source, added.error or "")
            if added.code == RestrictedText().code:
                continue  # to be tried again, until somebody says who may read it
        elif before and added.status == "unchanged":
            result.unchanged += 1
        else:
            note(action, source, came_from or added.note or "")
            moved.update({came_from} if came_from else ())
        # What a file held before it could not be read any more is still its document.
        document_id = added.document_id or (before.document_id if before else None)
        version = content.version if entry.version is None else entry.version
        now = SyncedFile(place.address, source, content_hash, version, document_id, entry.mount)
        await files.put(workspace_id, now)

    lost = set() if gap else gone.keys() - moved - held
    if delete is None and 2 * len(lost) > len(known):
        raise InputError(
            f"{len(lost)} of {len(known)} documents are not at {place.address} any more, and none of them was deleted. "
            "To delete them, add --delete."
        )
    if delete is False:
        result.kept, lost = len(lost), set()
    left = moved | lost
    for source in [each for each in gone if each in left]:
        if not dry_run:
            document = await documents.get(workspace_id, gone[source].document_id or "")
            # One that has moved is at another place now.
            if document is not None and document.source == source:
                await library.delete(workspace_id, document.id)
            await files.drop(workspace_id, source)
        if source in lost:
            note("removed", source)
    return result


async def watch(work: Callable[[], Awaitable[None]], place: Connector, seconds: float) -> None:
    """Repeat `work` whenever something in the place has changed, for ever. It is looked through every `seconds`, which
    also works for network drives."""
    before: Listing | None = None
    while True:
        listing = await place.list()
        if listing != before:
            await work()
            before = listing
        await asyncio.sleep(seconds)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
