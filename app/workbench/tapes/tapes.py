"""Encodes tapes for storage, and reads stored ones."""

from collections.abc import Mapping
from typing import Any

import zstandard

from app.answering.records import STOPPED
from app.workbench.tapes.tape import Call, Tape
from app.workbench.tapes.tape_codec import pack, unpack
from app.workbench.tapes.taping import Ports
from domain.errors import StateError, UnknownTape
from domain.ports.models import FailedAttempt, ModelUsage
from domain.ports.runs import RunLog
from domain.runs import RunRecord

MAX_TAPE = 2_000_000
"""Limit of a stored tape, in bytes. An ordinary run's has 10,000 to 40,000."""

_VERSION = 1
_LEVEL = 1
"""Zstandard's. Level 3 takes twice as long for 3 % less: most of a tape is embeddings, which do not compress."""

_NOT_KEPT = "The tape of this run was not kept"


def encode_tape(tape: Tape) -> tuple[bytes | None, str | None]:
    """Encode the tape for storage. Returns the bytes, or None and the reason why it is not kept.

    Takes 0.4 ms for an ordinary tape, less than handing it to a thread would."""
    try:
        encoded = zstandard.ZstdCompressor(_LEVEL).compress(pack(describe_tape(tape)))
    except TypeError as error:
        return None, f"{_NOT_KEPT}: {error}."
    if len(encoded) > MAX_TAPE:
        return None, f"{_NOT_KEPT}: it has {len(encoded) / 1e6:.1f} MB, and {MAX_TAPE / 1e6:.0f} are the limit."
    return encoded, None


def decode_tape(stored: bytes) -> Tape:
    """Decode a stored tape. Raises `StateError` where another version of askgraph stored it."""
    return restore_tape(unpack(zstandard.ZstdDecompressor().decompress(stored)))


def describe_tape(tape: Tape) -> dict[str, Any]:
    """Describe a tape as it is packed."""
    return {"version": _VERSION, "ports": tape.ports, "calls": tape.calls, "events": tape.events}


def restore_tape(unpacked: Mapping[str, Any]) -> Tape:
    """Restore what `describe_tape` described, from how it was unpacked. Raises `StateError` where another version of
    askgraph recorded it."""
    if unpacked["version"] != _VERSION:
        raise StateError("The tape cannot be replayed: another version of askgraph recorded it.")
    ports: Ports = unpacked["ports"]
    calls = []
    for call in unpacked["calls"]:
        usage = [ModelUsage(**used) for used in call["usage"]]
        failures = [FailedAttempt(**failure) for failure in call.get("failures", [])]
        calls.append(Call(**call | {"usage": usage, "failures": failures}))
    return Tape(ports, calls, unpacked["events"])


async def read_tape(log: RunLog, run: RunRecord) -> Tape:
    """Read the tape of a run.

    Raises `UnknownTape` where it has none, `StateError` where it cannot be read, and `DatabaseUnavailable`.
    """
    stored = await log.get_tape(run.workspace_id, run.run_id)
    if stored is not None:
        return decode_tape(stored)
    if run.cached:
        raise UnknownTape(f"Run {run.run_id} has no tape: its answer came from the cache.")
    if run.error == STOPPED:
        raise UnknownTape(f"Run {run.run_id} has no tape: it was stopped, and a tape is kept at the end alone.")
    reason = next((warning for warning in run.warnings if warning.startswith(_NOT_KEPT)), None)
    raise UnknownTape(
        f"Run {run.run_id} has no tape. "
        + (reason or "Taping is off for its workspace, or was then; or the run is older than tapes.")
    )
