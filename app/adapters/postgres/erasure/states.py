"""Rewrites saved states that name a document without it, so that history still opens."""

from collections.abc import Mapping, Sequence
from typing import Any, LiteralString

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from app.adapters.postgres.checkpoints.packs import Blob, Owner, Pack, PackedCheckpoint
from app.adapters.postgres.pool import Session
from domain.history.erasure import ERASED

_LIST: LiteralString = """
    SELECT thread_id, number, pack FROM state_packs
    WHERE workspace_id = %(workspace_id)s AND thread_id = ANY(%(thread_ids)s)
"""

_UPDATE: LiteralString = """
    UPDATE state_packs SET pack = %(pack)s
    WHERE workspace_id = %(workspace_id)s AND thread_id = %(thread_id)s AND number = %(number)s
"""

_serde = JsonPlusSerializer()


async def unname_in_states(session: Session, thread_ids: Sequence[str], document_id: str) -> int:
    """Erase the document from the states of these threads, which only found or read it. Returns the number of changed
    packs."""
    changed = 0
    for row in await session.fetch(_LIST, thread_ids=thread_ids):
        pack, names = Pack.decode(Owner("", None, 1), bytes(row["pack"])), 0

        def unname(blob: Blob) -> Blob:
            nonlocal names
            value = _serde.loads_typed(blob)
            new = _unname(value, document_id)
            names += new is not value
            return blob if new is value else _serde.dumps_typed(new)

        pack.values = {place: unname(blob) for place, blob in pack.values.items()}
        pack.checkpoints = {
            name: PackedCheckpoint(parent, unname(metadata), unname(content))
            for name, (parent, metadata, content) in pack.checkpoints.items()
        }
        pack.writes = {
            name: [(task_id, path, unname(blob)) for task_id, path, blob in writes]
            for name, writes in pack.writes.items()
        }
        if names:
            await session.execute(_UPDATE, **row | {"pack": pack.encode()})
            changed += 1
    return changed


def _unname(value: Any, document_id: str) -> Any:
    """Return the value without the document; the same object where it does not name it."""
    match value:
        case str():
            return value.replace(document_id, ERASED) if document_id in value else value
        case Mapping() if value.get("document_id") == document_id:
            return _blank(value)
        case Mapping():
            changed = {_unname(name, document_id): _unname(each, document_id) for name, each in value.items()}
            return value if changed == value else changed
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
