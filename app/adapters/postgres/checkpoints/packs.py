"""Packs: what one write stores of a thread, compressed into one row of `state_packs`.

A pack holds checkpoints with all of their values, and what tasks wrote on top of checkpoints. It refers to no other
pack, so that each can be deleted by itself.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import ormsgpack
import zstandard

_LEVEL = 3
"""Compression level of zstd. Level 9 takes five times as long and saves 6 %."""

Blob = tuple[str, bytes]
"""A serialised value: its type and its bytes."""

TaskWrites = tuple[str, str, Blob]
"""Values that a task wrote at once: the task's id and path, and a list of (index, channel, value)."""


class PackedCheckpoint(NamedTuple):
    """A checkpoint in a pack."""

    parent: str | None
    """The id of the checkpoint before it."""
    metadata: Blob
    content: Blob
    """The checkpoint without its values."""


class Owner(NamedTuple):
    """What all checkpoints of a pack have in common."""

    namespace: str
    """Empty, or the place of a subgraph within the graph."""
    run_id: str | None
    """None where no run has saved them."""
    attempt: int


@dataclass(slots=True)
class Pack:
    """A pack that is being filled, or that was read."""

    owner: Owner
    size: int = 0
    """Bytes put into it, before compression."""
    values: dict[tuple[str, Any], Blob] = field(default_factory=dict)
    """Values by channel and version."""
    checkpoints: dict[str, PackedCheckpoint] = field(default_factory=dict)
    """Checkpoints by id, in the order in which they were put."""
    writes: dict[str, list[TaskWrites]] = field(default_factory=dict)
    """What tasks wrote, by the id of the checkpoint, which may be in an earlier pack."""

    def put_value(self, channel: str, version: Any, value: Blob) -> None:
        """Add a value."""
        self.values[channel, version] = value
        self.size += len(value[1])

    def put_checkpoint(self, checkpoint_id: str, checkpoint: PackedCheckpoint) -> None:
        """Add a checkpoint."""
        self.checkpoints[checkpoint_id] = checkpoint
        self.size += len(checkpoint.metadata[1]) + len(checkpoint.content[1])

    def put_writes(self, checkpoint_id: str, writes: TaskWrites) -> None:
        """Add what a task wrote on top of a checkpoint."""
        self.writes.setdefault(checkpoint_id, []).append(writes)
        self.size += len(writes[2][1])

    @property
    def written(self) -> list[str]:
        """The checkpoints of earlier packs that tasks have written on top of."""
        return [checkpoint_id for checkpoint_id in self.writes if checkpoint_id not in self.checkpoints]

    def encode(self) -> bytes:
        """Return the bytes that `decode` reads."""
        values = [(*place, *value) for place, value in self.values.items()]
        checkpoints = {name: tuple(checkpoint) for name, checkpoint in self.checkpoints.items()}
        content = ormsgpack.packb((values, checkpoints, self.writes))
        return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(content)

    @classmethod
    def decode(cls, owner: Owner, body: bytes) -> "Pack":
        """Read a stored pack. Raises various errors if it is damaged."""
        values, checkpoints, writes = ormsgpack.unpackb(zstandard.ZstdDecompressor().decompress(body))
        return cls(
            owner,
            len(body),
            {(channel, version): (kind, value) for channel, version, kind, value in values},
            {name: PackedCheckpoint(*checkpoint) for name, checkpoint in checkpoints.items()},
            writes,
        )
