"""Server-sent events, read."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream."""

    id: str
    """Empty where the event has none."""
    type: str
    data: bytes
    """JSON."""

    @property
    def event(self) -> dict[str, Any]:
        """Return the event with its `type`."""
        return {"type": self.type, **json.loads(self.data)}

    @property
    def is_end(self) -> bool:
        """Return True for the event that ends a run's stream."""
        return self.type in ("done", "error")


class FrameReader:
    """Reads frames from the pieces in which a response arrives. Skips comments, and a frame that is cut off."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """Yield the frames that end in this piece."""
        # Lines are split here, at line feeds alone: JSON may hold what Unicode calls a line separator.
        *ended, self._rest = (self._rest + piece).replace(b"\r\n", b"\n").split(b"\n\n")
        for frame in ended:
            fields = dict(_read_field(line) for line in frame.split(b"\n") if not line.startswith(b":"))
            if "event" in fields and "data" in fields:
                yield Frame(fields.get("id", b"").decode(), fields["event"].decode(), fields["data"])


def _read_field(line: bytes) -> tuple[str, bytes]:
    name, _, value = line.partition(b": ")
    return name.decode(), value


def read_frames(pieces: Iterable[bytes]) -> Iterator[Frame]:
    """Read the events of a stream from the pieces in which it arrives."""
    reader = FrameReader()
    for piece in pieces:
        yield from reader.feed(piece)
