"""How ONNX Runtime is opened: for every model that this process runs on the CPU."""

import os

import onnxruntime as ort  # type: ignore[import-untyped]


def make_session_options(threads: int | None = None) -> ort.SessionOptions:
    """Return options for a session in which `threads` compute one run; by default two, or one if there is one core."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads or min(2, os.cpu_count() or 1)
    options.inter_op_num_threads = 1
    # Spinning threads would take the cores from the database and the event loop without a measurable gain.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # On x86 processors without VNNI, sums of unsigned and signed 8-bit products overflow: the cosine of an embedding
    # with the right one is .96 there, at worst .78. With this entry the factors are unsigned on these processors, and
    # nothing changes on others (docs/measurements/embeddings.md).
    options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    return options
