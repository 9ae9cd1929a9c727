"""Moves the rows of 1.0.0, the only earlier version whose databases are upgraded.

It kept packs of states in rows of `checkpoint_blobs`. A checkpoint was a row of `checkpoints` that named its packs, and
values that had not changed were in the packs of earlier checkpoints.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import ormsgpack
import zstandard
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import AsyncConnection
from psycopg.rows import dict_row, tuple_row

from app.adapters.postgres.documents.frequencies import CHUNKS, number_audience
from domain.people.names import fold_name
from domain.text.sketch import sketch

_LIST_THREADS = "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
_LIST_PACKS = """
    SELECT channel AS name, blob FROM checkpoint_blobs WHERE (thread_id, checkpoint_ns, version) = (%s, %s, '')
"""
_LIST_CHECKPOINTS = """
    SELECT checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints
    WHERE (thread_id, checkpoint_ns) = (%s, %s) ORDER BY checkpoint_id
"""
_INSERT_STATES = """
    INSERT INTO state_packs (workspace_id, thread_id, namespace, run_id, saved_at, checkpoints, written, pack)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_DROP_STATES = "DROP TABLE checkpoints, checkpoint_blobs, checkpoint_writes, checkpoint_migrations"

_LIST_ASSISTANTS = """
    SELECT workspace_id, assistant_id, version, current, name FROM assistants
    ORDER BY current DESC, updated_at
"""
_NAME = """
    UPDATE assistants SET name = %s, key = %s WHERE (workspace_id, assistant_id, version) = (%s, %s, %s)
"""
_NAME_INDEX = """
ALTER TABLE assistants ALTER key SET NOT NULL;
CREATE UNIQUE INDEX assistants_by_name ON assistants (workspace_id, key) WHERE current;
"""
_LIST_AUDIENCES = "SELECT DISTINCT workspace_id, groups FROM documents WHERE groups != '{}'"
_MOVE_TERMS = f"""
    WITH counted AS (
        SELECT term, count(*)::int AS chunks
        FROM chunk_terms JOIN documents USING (workspace_id, document_id), unnest(terms || {CHUNKS}) AS term
        WHERE workspace_id = %(workspace_id)s AND groups = %(groups)s GROUP BY term
    ), taken AS (
        UPDATE term_frequencies AS f SET chunks = f.chunks - counted.chunks FROM counted
        WHERE f.workspace_id = %(workspace_id)s AND f.term = counted.term AND f.audience = 0
    )
    INSERT INTO term_frequencies (workspace_id, term, audience, groups, chunks)
    SELECT %(workspace_id)s, term, %(audience)s, %(groups)s, chunks FROM counted
"""

_SKETCHED = ("documents", "document_revisions", "document_marks")
"""The tables of texts, of which the last has no text any more."""
_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
_serde = JsonPlusSerializer()
_compress = zstandard.ZstdCompressor(level=3, write_checksum=True)

_Converted = tuple[list[str], list[str], str | None, bytes]
"""The ids of a pack's checkpoints and of those that it only holds writes of, its run, and the pack."""


async def move_rows(connection: AsyncConnection[Any]) -> None:
    await _move_states(connection)
    await _name_assistants(connection)
    await _part_terms(connection)
    await _sketch_texts(connection)


async def _move_states(connection: AsyncConnection[Any]) -> None:
    """Move the states of 1.0.0, a thread at a time, and drop its tables."""
    cursor = connection.cursor(row_factory=dict_row)
    row = await (await cursor.execute("SELECT to_regclass('checkpoints') AS found")).fetchone()
    if row is None or row["found"] is None:
        return
    for thread in await (await cursor.execute(_LIST_THREADS)).fetchall():
        key, namespace = thread["thread_id"], thread["checkpoint_ns"]
        bodies = await (await cursor.execute(_LIST_PACKS, [key, namespace])).fetchall()
        rows = await (await cursor.execute(_LIST_CHECKPOINTS, [key, namespace])).fetchall()
        packs = _convert({row["name"]: bytes(row["blob"]) for row in bodies}, rows)
        # In the order of 1.0.0, which was that of the checkpoints' ids.
        for ids, written, run_id, body in sorted(packs, key=lambda pack: max(pack[0] + pack[1])):
            place = key.rpartition("/")[::2]
            saved_at = _find_time(max(ids + written))
            await cursor.execute(_INSERT_STATES, [*place, namespace, run_id, saved_at, ids, written, body])
    await cursor.execute(_DROP_STATES)


async def _name_assistants(connection: AsyncConnection[Any]) -> None:
    """Note the keys. Of assistants whose names are the same by now, the later ones get a number."""
    cursor = connection.cursor(row_factory=tuple_row)
    taken: dict[str, set[str]] = defaultdict(set)
    for workspace_id, assistant_id, version, current, name in await (await cursor.execute(_LIST_ASSISTANTS)).fetchall():
        number, wanted = 1, name
        while current and fold_name(name) in taken[workspace_id]:
            number += 1
            name = f"{wanted[:50]} ({number})"
        if current:
            taken[workspace_id].add(fold_name(name))
        await cursor.execute(_NAME, [name, fold_name(name), workspace_id, assistant_id, version])
    await cursor.execute(_NAME_INDEX)


async def _part_terms(connection: AsyncConnection[Any]) -> None:
    """Take what documents of groups have from the numbers of those without."""
    cursor = connection.cursor(row_factory=tuple_row)
    for workspace_id, groups in await (await cursor.execute(_LIST_AUDIENCES)).fetchall():
        moved = {"workspace_id": workspace_id, "groups": groups, "audience": number_audience(groups)}
        await cursor.execute(_MOVE_TERMS, moved)


async def _sketch_texts(connection: AsyncConnection[Any]) -> None:
    """Sketch the texts that are there, one at a time."""
    cursor = connection.cursor(row_factory=tuple_row)
    for table in _SKETCHED[:2]:
        listed = await cursor.execute(f"SELECT workspace_id, document_id, revision FROM {table}")
        for key in await listed.fetchall():
            at = f"{table} WHERE (workspace_id, document_id, revision) = (%s, %s, %s)"
            [(text,)] = await (await cursor.execute(f"SELECT text FROM {at}", key)).fetchall()
            changed = at.replace(" WHERE", " SET sketch = %s WHERE")
            await cursor.execute(f"UPDATE {changed}", [sketch(text), *key])
    for table in _SKETCHED:
        await cursor.execute(f"CREATE INDEX {table}_by_sketch ON {table} USING gin (workspace_id, sketch)")


def _convert(bodies: dict[str, bytes], rows: list[dict[str, Any]]) -> Iterator[_Converted]:
    """Yield the packs with all values that their checkpoints have."""
    packs = {name: _unpack(body) for name, body in bodies.items()}
    held = {
        (channel, version): (kind, value)
        for pack in packs.values()
        if pack is not None
        for channel, version, kind, value in pack[0]
    }
    known = {row["checkpoint_id"] for row in rows}
    for name, pack in packs.items():
        mine = [row for row in rows if row["checkpoint"].get("pack") == name]
        ids = [row["checkpoint_id"] for row in mine]
        needed = {each for row in mine for each in row["checkpoint"]["channel_versions"]}
        body, written = b"", []
        # What was damaged stays so, and its thread says it.
        if pack is not None and all(packs.get(each) is not None for each in needed):
            contents = {row["checkpoint_id"]: pack[1][row["checkpoint_id"]] for row in mine}
            versions = {place for content in contents.values() for place in _read_versions(content)}
            values = [(*place, *held[place]) for place in versions if place in held]
            checkpoints = {
                row["checkpoint_id"]: (row["parent_checkpoint_id"], _serde.dumps_typed(row["metadata"]), content)
                for row, content in zip(mine, contents.values(), strict=True)
            }
            writes = {
                checkpoint_id: [(task, path, blob) for task, path, _, blob in each]
                for checkpoint_id, each in pack[2].items()
                if checkpoint_id in known
            }
            written = [checkpoint_id for checkpoint_id in writes if checkpoint_id not in checkpoints]
            body = _compress.compress(ormsgpack.packb((values, checkpoints, writes)))
        if ids or written:
            yield ids, written, mine[-1]["metadata"].get("run_id") if mine else None, body


def _unpack(body: bytes) -> Any:
    """Return values, checkpoints and writes; None where the pack is damaged."""
    try:
        return ormsgpack.unpackb(zstandard.ZstdDecompressor().decompress(body))
    except (zstandard.ZstdError, ValueError):
        return None


def _read_versions(content: Any) -> Iterable[tuple[str, Any]]:
    """Return the channels of a checkpoint and their versions."""
    versions: dict[str, Any] = _serde.loads_typed(content)["channel_versions"]
    return versions.items()


def _find_time(checkpoint_id: str) -> datetime:
    """Return when the checkpoint was made. Its id is a UUID of version 6 (RFC 9562, section 5.6), which counts steps of
    100 ns since 15 October 1582."""
    bits = UUID(checkpoint_id).int
    return _EPOCH + timedelta(microseconds=(bits >> 80 << 12 | bits >> 64 & 0xFFF) // 10)
