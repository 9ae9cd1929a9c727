"""Saved states have a table of their own instead of the three of LangGraph's `AsyncPostgresSaver`.

Version 1.0.0 kept packs of states in rows of `checkpoint_blobs`. A checkpoint was a row of `checkpoints` that named its
packs, and values that had not changed were in the packs of earlier checkpoints.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import ormsgpack
import zstandard
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg import AsyncConnection
from psycopg.rows import dict_row

PACKS = """
-- What one write stores of a thread's states (checkpoints/packs.py): a run has one row, or several if it takes long.
-- `written` are checkpoints of earlier rows that this one holds writes of. The thread's latest state is the last one of
-- the last row that has any.
CREATE TABLE state_packs (
    workspace_id text NOT NULL,
    thread_id text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    namespace text NOT NULL,
    run_id text,
    saved_at timestamptz NOT NULL DEFAULT now(),
    checkpoints text[] NOT NULL,
    written text[] NOT NULL,
    pack bytea NOT NULL,
    PRIMARY KEY (workspace_id, thread_id, number)
);
-- Packs are compressed already: the server need not try again.
ALTER TABLE state_packs ALTER COLUMN pack SET STORAGE EXTERNAL;
CREATE INDEX state_packs_by_time ON state_packs (saved_at);

-- Steps are deleted by their age alone.
DROP VIEW threads_of_workspace;
ALTER TABLE threads DROP COLUMN thinned_until;
CREATE VIEW threads_of_workspace AS SELECT * FROM threads
    WHERE (workspace_id = (SELECT current_setting('askgraph.workspace', true))) IS TRUE;
"""

_LIST_THREADS = "SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints"
_LIST_PACKS = """
    SELECT channel AS name, blob FROM checkpoint_blobs WHERE (thread_id, checkpoint_ns, version) = (%s, %s, '')
"""
_LIST_CHECKPOINTS = """
    SELECT checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints
    WHERE (thread_id, checkpoint_ns) = (%s, %s) ORDER BY checkpoint_id
"""
_INSERT = """
    INSERT INTO state_packs (workspace_id, thread_id, namespace, run_id, saved_at, checkpoints, written, pack)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
"""
_DROP = "DROP TABLE checkpoints, checkpoint_blobs, checkpoint_writes, checkpoint_migrations"

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
_serde = JsonPlusSerializer()
_compress = zstandard.ZstdCompressor(level=3, write_checksum=True)

_Converted = tuple[list[str], list[str], str | None, bytes]
"""The ids of a pack's checkpoints and of those that it only holds writes of, its run, and the pack."""


def list_statements() -> list[str]:
    return [PACKS]


async def move_rows(connection: AsyncConnection[Any]) -> None:
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
            await cursor.execute(_INSERT, [*place, namespace, run_id, saved_at, ids, written, body])
    await cursor.execute(_DROP)


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
