"""Tapes as they are stored, and when a run has one."""

import zstandard

from app.runs.taping import Ports, pack, unpack
from app.services import Services
from app.settings import Settings
from domain.errors import StateError, UnknownTape
from domain.ports.models import ModelUsage
from domain.runs import RunRecord
from domain.tapes import Call, Tape

MAX_TAPE = 2_000_000
"""Bytes of a tape as stored. An ordinary run has 10 to 40 thousand."""

_VERSION = 1
_LEVEL = 1
"""Of zstd. Level 3 takes twice as long for 3 % less: most of a tape is embeddings, which do not compress."""


_NOT_KEPT = "The tape of this run was not kept"


def is_taped(settings: Settings, workspace_id: str) -> bool:
    """Whether runs of the workspace have tapes."""
    return settings.tapes and workspace_id not in settings.untaped_workspaces


def encode_tape(tape: Tape) -> tuple[bytes | None, str | None]:
    """The tape as it is stored; or None, and why it is not. Takes 0.4 ms for an ordinary one, which is less than to
    hand it to a thread."""
    contents = {"version": _VERSION, "ports": tape.ports, "calls": tape.calls, "events": tape.events}
    try:
        encoded = zstandard.ZstdCompressor(_LEVEL).compress(pack(contents))
    except TypeError as error:
        return None, f"{_NOT_KEPT}: {error}."
    if len(encoded) > MAX_TAPE:
        return None, f"{_NOT_KEPT}: it has {len(encoded) / 1e6:.1f} MB, and {MAX_TAPE / 1e6:.0f} are the limit."
    return encoded, None


def decode_tape(stored: bytes) -> Tape:
    """The tape that was stored. Raises `StateError` where another version of askgraph stored it."""
    unpacked = unpack(zstandard.ZstdDecompressor().decompress(stored))
    if unpacked["version"] != _VERSION:
        raise StateError("The tape cannot be replayed: another version of askgraph recorded it.")
    ports: Ports = unpacked["ports"]
    calls = [Call(**call | {"usage": [ModelUsage(**used) for used in call["usage"]]}) for call in unpacked["calls"]]
    return Tape(ports, calls, unpacked["events"])


async def read_tape(services: Services, run: RunRecord) -> Tape:
    """The tape of a run.

    Raises `UnknownTape` where it has none, `StateError` where it cannot be read, and `DatabaseUnavailable`.
    """
    stored = await services.runs.get_tape(run.workspace_id, run.run_id)
    if stored is not None:
        return decode_tape(stored)
    if run.cached:
        raise UnknownTape(f"Run {run.run_id} has no tape: its answer came from the cache.")
    reason = next((warning for warning in run.warnings if warning.startswith(_NOT_KEPT)), None)
    raise UnknownTape(
        f"Run {run.run_id} has no tape. "
        + (reason or "Taping is off for its workspace, or was then; or the run is older than tapes.")
    )
