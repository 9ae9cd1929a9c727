"""Opens and runs the models in ONNX that this process computes on the CPU."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from domain.errors import ConfigurationError, EmbedderUnavailable

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
        # worst .78. With unsigned factors none does. Elsewhere these only take twice the time.
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 4
    return options


def open_session(graph: bytes | Path, options: ort.SessionOptions) -> ort.InferenceSession:
    """Open a model."""
    return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def load_folder(folder: Path, about: str, threads: int | None = None) -> tuple[ort.InferenceSession, Tokenizer]:
    """Open the `model.onnx` and `tokenizer.json` of a folder, as Hugging Face exports both.

    Raises `ConfigurationError`, which begins with `about`, if one is missing or cannot be read, or the model takes
    something else than text.
    """
    for file in ("model.onnx", "tokenizer.json"):
        if not (folder / file).is_file():
            raise ConfigurationError(f"{about}there is no file {file} in {folder}.")
    # Neither library has a class of its own for what it raises.
    try:
        session = open_session(folder / "model.onnx", make_session_options(threads))
    except Exception as error:
        raise ConfigurationError(f"{about}model.onnx is not a model that can be run ({error}).") from error
    try:
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:
        raise ConfigurationError(f"{about}tokenizer.json cannot be read ({error}).") from error
    inputs = {each.name for each in session.get_inputs()}
    if not {"input_ids"} <= inputs <= {"input_ids", "attention_mask", "token_type_ids"}:
        raise ConfigurationError(
            f"{about}it takes {', '.join(sorted(inputs))}, and not input_ids, attention_mask or token_type_ids."
        )
    tokenizer.no_padding()
    return session, tokenizer


def make_inputs(session: ort.InferenceSession, batch: Sequence[Encoding]) -> dict[str, NDArray[np.int64]]:
    """Return the inputs of the model for these texts, by name."""
    ids = np.zeros((len(batch), max(len(encoding.ids) for encoding in batch)), dtype=np.int64)
    mask, types = np.zeros_like(ids), np.zeros_like(ids)
    for row, encoding in enumerate(batch):
        length = len(encoding.ids)
        ids[row, :length] = encoding.ids
        mask[row, :length] = 1
        types[row, :length] = encoding.type_ids
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    return {each.name: given[each.name] for each in session.get_inputs()}


def run(session: ort.InferenceSession, inputs: Mapping[str, NDArray[Any]], model: str) -> NDArray[np.float32]:
    """Return the first output. Raises `EmbedderUnavailable`, which names the `model`."""
    try:
        return cast(NDArray[np.float32], session.run(None, dict(inputs))[0])
    except Exception as error:  # ONNX Runtime's exceptions have no base class but this one
        raise EmbedderUnavailable(f"The {model} failed: {error}") from error


def _adds_in_32_bits() -> bool:
    """Return True where the processor has instructions of `_EXACT`, False where that is not known."""
    with suppress(OSError):
        return not _EXACT.isdisjoint(_PROCESSOR.read_text(encoding="utf-8", errors="replace").split())
    return False
