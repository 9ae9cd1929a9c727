"""Rewrites saved states without a document. Their steps, times and settings stay, so that history still opens."""

from collections.abc import Callable
from typing import Any, LiteralString

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.types.json import Jsonb

from app.adapters.postgres.checkpoints.packs import PACKED, Pack, unpack
from app.adapters.postgres.erasure.redaction import Redactor
from app.adapters.postgres.pool import Session
from domain.history.erasure import ERASED
from domain.threads import split_key

_OF_WORKSPACE: LiteralString = "starts_with(thread_id, %(workspace_id)s || '/')"

_LIST_CHECKPOINTS: LiteralString = f"""
    SELECT thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata FROM checkpoints WHERE {_OF_WORKSPACE}
"""

_UPDATE_CHECKPOINT: LiteralString = """
    UPDATE checkpoints SET checkpoint = %(checkpoint)s, metadata = %(metadata)s
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND checkpoint_id = %(checkpoint_id)s
"""

_LIST_BLOBS: LiteralString = f"""
    SELECT thread_id, checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs
    WHERE {_OF_WORKSPACE} AND blob IS NOT NULL
"""

_UPDATE_BLOB: LiteralString = """
    UPDATE checkpoint_blobs SET blob = %(blob)s
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND channel = %(channel)s
        AND version = %(version)s
"""

# The rows of packed writes only refer to packs.
_LIST_WRITES: LiteralString = f"""
    SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, type, blob FROM checkpoint_writes
    WHERE {_OF_WORKSPACE} AND type <> '{PACKED}'
"""

_UPDATE_WRITE: LiteralString = """
    UPDATE checkpoint_writes SET blob = %(blob)s
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND checkpoint_id = %(checkpoint_id)s
        AND task_id = %(task_id)s AND idx = %(idx)s
"""

_serde = JsonPlusSerializer()


async def redact_states(session: Session, pick: Callable[[str], Redactor], run_ids: frozenset[str]) -> dict[str, int]:
    """Redact all states of the workspace; `pick` has the redactor for a thread. The answers of the runs `run_ids` go
    whole. Returns the changed rows by table."""
    changed = dict.fromkeys(("checkpoints", "checkpoint_blobs", "checkpoint_writes"), 0)
    runs: dict[str, str | None] = {}
    for row in await session.fetch(_LIST_CHECKPOINTS):
        redactor = pick(split_key(row["thread_id"])[1])
        runs[row["checkpoint_id"]] = row["metadata"].get("run_id")
        checkpoint = redactor.redact(row["checkpoint"])
        checkpoint = _clear_answer(checkpoint, runs[row["checkpoint_id"]] in run_ids)
        metadata = redactor.redact(row["metadata"])
        if checkpoint is not row["checkpoint"] or metadata is not row["metadata"]:
            await session.execute(
                _UPDATE_CHECKPOINT, **row | {"checkpoint": Jsonb(checkpoint), "metadata": Jsonb(metadata)}
            )
            changed["checkpoints"] += 1
    clears = {checkpoint_id for checkpoint_id, run_id in runs.items() if run_id in run_ids}
    for row in await session.fetch(_LIST_BLOBS):
        body = bytes(row["blob"])
        if row["type"] == PACKED:
            redacted = _redact_pack(body, pick(split_key(row["thread_id"])[1]), clears)
        else:
            redacted = _redact_blob((row["type"], body), pick(split_key(row["thread_id"])[1]))[1]
        if redacted != body:
            await session.execute(_UPDATE_BLOB, **row | {"blob": redacted})
            changed["checkpoint_blobs"] += 1
    for row in await session.fetch(_LIST_WRITES):
        body = bytes(row["blob"])
        redacted = _redact_blob((row["type"], body), pick(split_key(row["thread_id"])[1]))[1]
        if redacted != body:
            await session.execute(_UPDATE_WRITE, **row | {"blob": redacted})
            changed["checkpoint_writes"] += 1
    return changed


def _redact_pack(body: bytes, redactor: Redactor, clears: set[str]) -> bytes:
    """Return the pack without the document; the answers of the checkpoints in `clears` go whole."""
    unpacked = unpack(body)
    pack = Pack()
    pack.blobs = {place: _redact_blob(blob, redactor) for place, blob in unpacked.blobs.items()}
    pack.checkpoints = {
        checkpoint_id: _redact_blob(held, redactor, clear=checkpoint_id in clears)
        for checkpoint_id, held in unpacked.checkpoints.items()
    }
    pack.writes = {
        checkpoint_id: [
            (task, path, replaces, _redact_blob(blob, redactor, clear=checkpoint_id in clears))
            for task, path, replaces, blob in writes
        ]
        for checkpoint_id, writes in unpacked.writes.items()
    }
    same = (pack.blobs, pack.checkpoints) == (unpacked.blobs, unpacked.checkpoints) and all(
        [tuple(write) for write in pack.writes[name]] == [(*write[:3], tuple(write[3])) for write in writes]
        for name, writes in unpacked.writes.items()
    )
    return body if same else pack.encode()


def _redact_blob(blob: Any, redactor: Redactor, *, clear: bool = False) -> tuple[str, bytes]:
    kind, body = blob
    value = _serde.loads_typed((kind, body))
    redacted = _clear_answer(redactor.redact(value), clear)
    return (kind, body) if redacted is value else _serde.dumps_typed(redacted)


def _clear_answer(value: Any, clear: bool) -> Any:
    """Return a checkpoint, or the writes of a task, with the answer erased."""
    if not clear:
        return value
    if isinstance(value, dict) and value.get("channel_values", {}).get("answer"):
        return {**value, "channel_values": {**value["channel_values"], "answer": ERASED}}
    if isinstance(value, list) and any(_is_answer(each) for each in value):
        return [(*each[:2], ERASED) if _is_answer(each) else each for each in value]
    return value


def _is_answer(write: Any) -> bool:
    return isinstance(write, list | tuple) and len(write) == 3 and write[1] == "answer" and bool(write[2])
