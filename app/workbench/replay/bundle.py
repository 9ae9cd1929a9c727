"""A run in one file, which opens on any machine: its record, its states, its tape, and what it cited.

The file is msgpack, compressed with zstandard. A file is read whoever made it, so its size, its version and its shape
are checked first.
"""

import dataclasses
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import zstandard
from pydantic import TypeAdapter, ValidationError

from app.history.states import complete_state
from app.workbench.replay.saved_run import SavedRun, SavedStep
from app.workbench.tapes.tape_codec import pack, unpack
from app.workbench.tapes.tapes import describe_tape, restore_tape
from domain.documents import Passage
from domain.errors import StateError
from domain.runs import RunRecord
from domain.state import STATE_VERSION

FORMAT = "askgraph run"
VERSION = 1
"""Version of the format. A reader knows all earlier ones."""
SUFFIX = ".askgraph"
MAX_FILE = 20_000_000
"""Bytes of a file. One of an ordinary run has 20,000 to 60,000."""
MAX_CONTENT = 200_000_000
"""Bytes of what is in it."""

_LEVEL = 9
_RECORD = TypeAdapter(RunRecord)
_STEP = TypeAdapter(SavedStep)
_PASSAGES = TypeAdapter(list[Passage])


def write_bundle(run: SavedRun) -> bytes:
    """Write a run as a file."""
    described = {
        "format": FORMAT,
        "version": VERSION,
        "made_with": version("askgraph"),
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "record": asdict(run.record),
        "steps": [asdict(step) | {"version": STATE_VERSION} for step in run.steps],
        "unread": list(run.unread.values()),
        "tape": None if run.tape is None else describe_tape(run.tape),
        "untaped": run.untaped,
    }
    return zstandard.ZstdCompressor(_LEVEL).compress(pack(described))


def read_bundle(data: bytes, *, most: int = MAX_CONTENT) -> SavedRun:
    """Read the run in a file that holds at most so many bytes. Raises `StateError` where it is none, or one of a newer
    askgraph."""
    held = _unpack(data, most)
    if held.get("format") != FORMAT:
        raise StateError("This file is no run of askgraph: `askgraph export` writes them.")
    number = held.get("version")
    if type(number) is not int or not 1 <= number <= VERSION:
        raise StateError(f"This file has version {number!r} of the format, and this askgraph knows {VERSION}.")
    try:
        record = _RECORD.validate_python(held["record"])
        steps = [
            dataclasses.replace(step, values=complete_state(step.values))
            for step in map(_STEP.validate_python, held["steps"])
        ]
        tape = None if held["tape"] is None else restore_tape(held["tape"])
        if not steps:
            raise StateError("This file holds no saved state.")
        unread = {each.chunk_id: asdict(each) for each in _PASSAGES.validate_python(held["unread"])}
        return SavedRun(record, steps, tape, str(held["untaped"]), unread)
    except (ValidationError, KeyError, TypeError, ValueError, AttributeError, zstandard.ZstdError) as error:
        raise StateError(f"This file is damaged: {type(error).__name__}.") from error


def _unpack(data: bytes, most: int) -> dict[str, Any]:
    if len(data) > MAX_FILE:
        raise StateError(f"This file has {len(data) / 1e6:.0f} MB, and {MAX_FILE / 1e6:.0f} are the limit.")
    try:
        if zstandard.frame_content_size(data) > most:
            raise StateError(f"This file holds more than {most / 1e6:.0f} MB.")
        held = unpack(zstandard.ZstdDecompressor().decompress(data, max_output_size=most))
    except (zstandard.ZstdError, ValueError, TypeError, IndexError) as error:
        raise StateError("This file is no run of askgraph, or it is damaged.") from error
    return held if isinstance(held, dict) else {}
