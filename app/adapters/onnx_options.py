"""How ONNX Runtime is opened: for every model that this process runs on the CPU."""

import os
from contextlib import suppress
from pathlib import Path

import onnxruntime as ort  # type: ignore[import-untyped]

_PROCESSOR = Path("/proc/cpuinfo")
_EXACT = frozenset({"avx512_vnni", "avx_vnni"})
"""Instructions that add products of 8-bit numbers in 32 bits, as Linux names them."""


def make_session_options(threads: int | None = None) -> ort.SessionOptions:
    """Return options for a session in which `threads` compute one run; by default two, or one if there is one core."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads or min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # It would keep what the longest text has needed, and saves no time.
    options.enable_cpu_mem_arena = False
    # Spinning threads would take the cores from the database and the event loop without a measurable gain.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not _adds_in_32_bits():
        # Sums of unsigned and signed 8-bit products overflow: the cosine of an embedding with the right one is .96, at
        # worst .78. With unsigned factors none does. Elsewhere these only take twice the time
        # (docs/measurements.md).
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    return options


def _adds_in_32_bits() -> bool:
    """Return True where the processor has instructions of `_EXACT`, False where that is not known."""
    with suppress(OSError):
        return not _EXACT.isdisjoint(_PROCESSOR.read_text(encoding="utf-8", errors="replace").split())
    return False
