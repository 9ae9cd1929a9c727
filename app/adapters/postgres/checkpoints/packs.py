"""Packs: what one write stores of a namespace of a thread, compressed into one row.

A pack holds values, checkpoints and pending writes. Checkpoints of one write share it, and later checkpoints refer to
values in it.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from secrets import token_hex
from time import time_ns
from typing import Any, NamedTuple

import ormsgpack
import zstandard

PACKED = "msgpack.zst"
"""The type, in the columns `type` of LangGraph's tables, of a pack and of a row that refers to one."""

_LEVEL = 3
"""Compression level of zstd. Level 9 takes five times as long and saves 6 %."""

Blob = tuple[str, bytes]
"""A serialised value: its type and its bytes."""

TaskWrites = tuple[str, str, bool, Blob]
"""Values that a task wrote at once: the task's id and path; True if it replaces what the task wrote before (errors and
interrupts), False if earlier writes count (all others); and a list of (index, channel, value)."""


def _make_name() -> str:
    """Return a unique name that begins with the time, so that the packs of a thread sort by it."""
    return f"{time_ns() // 1000:x}{token_hex(2)}"


@dataclass(slots=True)
class Pack:
    """A pack that is being filled."""

    name: str = field(default_factory=_make_name)
    size: int = 0
    """Bytes put into it, before compression."""
    blobs: dict[tuple[str, Any], Blob] = field(default_factory=dict)
    """Values by channel and version."""
    checkpoints: dict[str, Blob] = field(default_factory=dict)
    """Checkpoints by id, without the values that are in `blobs`."""
    rows: dict[str, str] = field(default_factory=dict)
    """The rows of `checkpoints` by checkpoint id, as JSON."""
    writes: dict[str, list[TaskWrites]] = field(default_factory=dict)
    """Pending writes by the id of their checkpoint, which may be in an earlier pack."""

    def put_blob(self, channel: str, version: Any, blob: Blob) -> None:
        """Add a value."""
        self.blobs[channel, version] = blob
        self.size += len(blob[1])

    def put_checkpoint(self, checkpoint_id: str, held: Blob, row: str) -> None:
        """Add a checkpoint."""
        self.checkpoints[checkpoint_id] = held
        self.rows[checkpoint_id] = row
        self.size += len(held[1]) + len(row)

    def put_writes(self, checkpoint_id: str, writes: TaskWrites) -> None:
        """Add what a task wrote on top of a checkpoint."""
        self.writes.setdefault(checkpoint_id, []).append(writes)
        self.size += len(writes[3][1])

    def encode(self) -> bytes:
        """Return the bytes that `unpack` reads."""
        blobs = [(*place, *blob) for place, blob in self.blobs.items()]
        content = ormsgpack.packb((blobs, self.checkpoints, self.writes))
        return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)


class Unpacked(NamedTuple):
    """A stored pack."""

    blobs: dict[tuple[str, Any], Blob]
    checkpoints: dict[str, Blob]
    writes: dict[str, list[TaskWrites]]


# Cached, because the checkpoints of one write are usually read together.
@lru_cache(maxsize=32)
def unpack(body: bytes) -> Unpacked:
    """Read a stored pack. Raises various errors if it is damaged."""
    blobs, checkpoints, writes = ormsgpack.unpackb(zstandard.ZstdDecompressor().decompress(body))
    return Unpacked(
        {(channel, version): (type_, blob) for channel, version, type_, blob in blobs},
        checkpoints,
        writes,
    )
