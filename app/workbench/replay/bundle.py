"""A run in one file, which opens on any machine: its record, its states, its tape, and what it cited.

The file is msgpack, compressed with zstandard. A file is read whoever made it, so its size, its version and its shape
are checked first. Where it is redacted, its structure and its figures are left, and neither text nor vectors.
"""

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
from domain.execution.tapes import Call, Tape
from domain.ports.models import ModelUsage
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

_KEPT = frozenset(
    {
        "run_id", "thread_id", "workspace_id", "checkpoint_id", "parent_checkpoint_id", "document_id", "document_ids",
        "chunk_id", "started_at", "created_at", "updated_at", "mode", "route", "outcome", "node", "next", "level",
        "language", "verdict", "status", "code", "answered_by", "answerer", "given_up", "instead", "model",
        "verification", "error", "forked_as", "forked_to", "until", "changed", "prompts", "port", "method", "kind",
    }
)  # fmt: skip
"""Keys whose text stays in a redacted file: ids, times, names of ours."""
_HIDDEN = frozenset({"system_instructions", "fallback", "tone"})
"""Knobs that hold text."""
_DROPPED = frozenset({"long_forms", "where"})
"""Fields whose keys are text."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a file holds."""

    run: SavedRun
    exported_at: str
    made_with: str
    """The version of askgraph that wrote it."""
    configuration: str
    """A digest of the run's profile."""
    redacted: bool = False


def write_bundle(run: SavedRun, *, redact: bool = False) -> bytes:
    """Write a run as a file."""
    tape = None if run.tape is None or redact else describe_tape(run.tape)
    contents: dict[str, Any] = {
        "record": asdict(run.record),
        "steps": [asdict(step) | {"version": STATE_VERSION} for step in run.steps],
        "unread": list(run.unread.values()),
    }
    if redact:
        contents = _redact(contents)
    described = {
        "format": FORMAT,
        "version": VERSION,
        "made_with": version("askgraph"),
        "exported_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "configuration": hashlib.sha256(pack(run.final["profile"])).hexdigest()[:16],
        "redacted": redact,
        **contents,
        "tape": tape,
        "calls": _outline(run.tape) if redact and run.tape is not None else None,
        "untaped": run.untaped,
    }
    return zstandard.ZstdCompressor(_LEVEL).compress(pack(described))


def read_bundle(data: bytes, *, most: int = MAX_CONTENT) -> Bundle:
    """Read a file that holds at most so many bytes. Raises `StateError` where it is none, or one of a newer
    askgraph."""
    held = _unpack(data, most)
    if held.get("format") != FORMAT:
        raise StateError("This file is no run of askgraph: `askgraph export` writes them.")
    number = held.get("version")
    if type(number) is not int or not 1 <= number <= VERSION:
        raise StateError(f"This file has version {number!r} of the format, and this askgraph knows {VERSION}.")
    try:
        record = _RECORD.validate_python(held["record"])
        steps = [_read_step(step) for step in held["steps"]]
        tape = None if held["tape"] is None else restore_tape(held["tape"])
        if held["calls"] is not None:
            tape = Tape({}, [_read_call(call) for call in held["calls"]], [])
        if not steps:
            raise StateError("This file holds no saved state.")
        return Bundle(
            SavedRun(record, steps, tape, str(held["untaped"]), _read_passages(held["unread"])),
            exported_at=str(held["exported_at"]),
            made_with=str(held["made_with"]),
            configuration=str(held["configuration"]),
            redacted=bool(held["redacted"]),
        )
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


def _read_step(held: Mapping[str, Any]) -> SavedStep:
    step = _STEP.validate_python(held)
    return dataclasses.replace(step, values=complete_state(step.values, step.version))


def _read_passages(held: Any) -> dict[str, Any]:
    passages = [asdict(each) for each in _PASSAGES.validate_python(held)]
    return {passage["chunk_id"]: passage for passage in passages}


def _read_call(held: Mapping[str, Any]) -> Call:
    usage = [ModelUsage(**used) for used in held["usage"]]
    return Call(held["port"], held["method"], {}, held["step"], cut=held["cut"], usage=usage)


def _outline(tape: Tape) -> list[dict[str, Any]]:
    """Return the calls without what was asked and answered."""
    return [
        {
            "port": call.port,
            "method": call.method,
            "step": call.step,
            "cut": call.cut,
            "usage": [asdict(used) for used in call.usage],
        }
        for call in tape.calls
    ]


_MARKER_OR_SAID = re.compile(r"(\[\d{1,3}(?:, ?\d{1,3})*\])|\w")


def _redact(value: Any, *, kept: bool = False) -> Any:
    """Replace every letter and digit of what people or documents said. Lengths, markers, figures and names of ours
    stay."""
    match value:
        case str():
            return value if kept else _MARKER_OR_SAID.sub(lambda found: found[1] or "x", value)
        case dict():
            return {key: _redact_field(key, part) for key, part in value.items() if key not in _DROPPED}
        case list() | tuple():
            return [_redact(part, kept=kept) for part in value]
    return value


def _redact_field(key: str, value: Any) -> Any:
    if key == "profile":
        # Settings are no secret, but for what the team wrote.
        return value | {"generate": _hide(value.get("generate", {}))}
    return _redact(value, kept=key in _KEPT)


def _hide(knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _redact(value) if key in _HIDDEN else value for key, value in knobs.items()}
