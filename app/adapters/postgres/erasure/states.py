"""Rewrites saved states that name a document without it, so that history still opens."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from psycopg.types.json import Jsonb

from app.adapters.postgres.checkpoints.packs import PACKED, Pack, unpack
from app.adapters.postgres.pool import Session
from domain.history.erasure import ERASED

_LIST_CHECKPOINTS: LiteralString = """
    SELECT thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata FROM checkpoints
    WHERE thread_id = ANY(%(keys)s)
"""

_UPDATE_CHECKPOINT: LiteralString = """
    UPDATE checkpoints SET checkpoint = %(checkpoint)s, metadata = %(metadata)s
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND checkpoint_id = %(checkpoint_id)s
"""

_LIST_BLOBS: LiteralString = """
    SELECT thread_id, checkpoint_ns, channel, version, type, blob FROM checkpoint_blobs
    WHERE thread_id = ANY(%(keys)s) AND blob IS NOT NULL
"""

_UPDATE_BLOB: LiteralString = """
    UPDATE checkpoint_blobs SET blob = %(blob)s
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND channel = %(channel)s
        AND version = %(version)s
"""

# The rows of packed writes only refer to packs.
_LIST_WRITES: LiteralString = f"""
    SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, type, blob FROM checkpoint_writes
    WHERE thread_id = ANY(%(keys)s) AND type <> '{PACKED}'
"""

_UPDATE_WRITE: LiteralString = """
    UPDATE checkpoint_writes SET blob = %(blob)s
    WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s AND checkpoint_id = %(checkpoint_id)s
        AND task_id = %(task_id)s AND idx = %(idx)s
"""

_serde = JsonPlusSerializer()


async def unname_in_states(session: Session, keys: Sequence[str], document_id: str) -> dict[str, int]:
    """Erase the document from the states of these threads, which only found or read it. Returns the changed rows by
    table."""
    changed = dict.fromkeys(("checkpoints", "checkpoint_blobs", "checkpoint_writes"), 0)
    for row in await session.fetch(_LIST_CHECKPOINTS, keys=keys):
        new = {name: _unname(row[name], document_id) for name in ("checkpoint", "metadata")}
        if any(new[name] is not row[name] for name in new):
            await session.execute(_UPDATE_CHECKPOINT, **row | {name: Jsonb(value) for name, value in new.items()})
            changed["checkpoints"] += 1
    for row in await session.fetch(_LIST_BLOBS, keys=keys):
        body = bytes(row["blob"])
        if row["type"] == PACKED:
            new_body = _unname_in_pack(body, document_id)
        else:
            new_body = _unname_in_blob((row["type"], body), document_id)[1]
        if new_body != body:
            await session.execute(_UPDATE_BLOB, **row | {"blob": new_body})
            changed["checkpoint_blobs"] += 1
    for row in await session.fetch(_LIST_WRITES, keys=keys):
        body = bytes(row["blob"])
        new_body = _unname_in_blob((row["type"], body), document_id)[1]
        if new_body != body:
            await session.execute(_UPDATE_WRITE, **row | {"blob": new_body})
            changed["checkpoint_writes"] += 1
    return changed


def _unname_in_pack(body: bytes, document_id: str) -> bytes:
    unpacked = unpack(body)
    pack = Pack()
    pack.blobs = {place: _unname_in_blob(blob, document_id) for place, blob in unpacked.blobs.items()}
    pack.checkpoints = {name: _unname_in_blob(held, document_id) for name, held in unpacked.checkpoints.items()}
    pack.writes = {
        name: [(task, path, replaces, _unname_in_blob(blob, document_id)) for task, path, replaces, blob in writes]
        for name, writes in unpacked.writes.items()
    }
    same = (pack.blobs, pack.checkpoints) == (unpacked.blobs, unpacked.checkpoints) and all(
        [tuple(write) for write in pack.writes[name]] == [(*write[:3], tuple(write[3])) for write in writes]
        for name, writes in unpacked.writes.items()
    )
    return body if same else pack.encode()


def _unname_in_blob(blob: Any, document_id: str) -> tuple[str, bytes]:
    kind, body = blob
    value = _serde.loads_typed((kind, body))
    new = _unname(value, document_id)
    return (kind, body) if new is value else _serde.dumps_typed(new)


def _unname(value: Any, document_id: str) -> Any:
    """Return the value without the document; the same object where it does not name it."""
    match value:
        case str():
            return value.replace(document_id, ERASED) if document_id in value else value
        case Mapping() if value.get("document_id") == document_id:
            return _blank(value)
        case Mapping():
            changed = {name: _unname(each, document_id) for name, each in value.items()}
            return changed if any(changed[name] is not each for name, each in value.items()) else value
        case list() | tuple():
            items = [_unname(each, document_id) for each in value]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _blank(value: Any) -> Any:
    """Return the value with every text in it erased."""
    match value:
        case str():
            return ERASED
        case Mapping():
            return {name: _blank(each) for name, each in value.items()}
        case list() | tuple():
            return [_blank(each) for each in value]
    return value
