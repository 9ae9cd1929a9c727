"""Makes a cross-encoder of a few operations: its logit counts how often a token of the question is one of the passage.

ONNX files are protocol buffers. Writing the dozen fields that are needed is smaller than the package that knows all.
"""

import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

import app.adapters

_INT64, _FLOAT = 7, 1
_IR_VERSION, _OPSET = 8, 17


def write_cross_encoder(
    folder: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    labels: int = 1,
    bias: float = -6.0,
) -> Path:
    """`folder` with `model.onnx` and `tokenizer.json`. Other `inputs` or `labels` make models that must be refused."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(app.adapters.__file__).parent / "data" / "minilm_tokenizer.json", folder / "tokenizer.json")
    ids, mask, types = inputs
    nodes = [
        _node("Mul", [types, mask], "passage"),
        _node("Sub", [mask, "passage"], "question"),
        _node("Unsqueeze", [ids, "two"], "down"),
        _node("Unsqueeze", [ids, "one"], "across"),
        _node("Equal", ["down", "across"], "same"),
        _node("Cast", ["same"], "same_number", to=_INT64),
        _node("Unsqueeze", ["question", "two"], "question_down"),
        _node("Unsqueeze", ["passage", "one"], "passage_across"),
        _node("Mul", ["same_number", "question_down"], "in_question"),
        _node("Mul", ["in_question", "passage_across"], "in_both"),
        _node("ReduceSum", ["in_both", "both"], "count", keepdims=0),
        _node("Unsqueeze", ["count", "one"], "column"),
        _node("Cast", ["column"], "number", to=_FLOAT),
        _node("Add", ["number", "bias"], "logits"),
    ]
    constants = [
        _tensor("one", np.array([1])),
        _tensor("two", np.array([2])),
        _tensor("both", np.array([1, 2])),
        _tensor("bias", np.full(labels, bias, dtype=np.float32)),
    ]
    graph = b"".join(
        [
            *(_bytes(1, node) for node in nodes),
            _bytes(2, b"overlap"),
            *(_bytes(5, constant) for constant in constants),
            *(_bytes(11, _value(name, _INT64)) for name in dict.fromkeys(inputs)),
            _bytes(12, _value("logits", _FLOAT)),
        ]
    )
    opset = _bytes(1, b"") + _number(2, _OPSET)
    (folder / "model.onnx").write_bytes(_number(1, _IR_VERSION) + _bytes(8, opset) + _bytes(7, graph))
    return folder


def _node(operator: str, inputs: Sequence[str], output: str, **attributes: int) -> bytes:
    return b"".join(
        [
            *(_bytes(1, name.encode()) for name in inputs),
            _bytes(2, output.encode()),
            _bytes(4, operator.encode()),
            # 20 is the attribute's type, 2 says integer.
            *(_bytes(5, _bytes(1, k.encode()) + _number(3, v) + _number(20, 2)) for k, v in attributes.items()),
        ]
    )


def write_embedder(folder: Path, *, dimension: int = 96) -> Path:
    """`folder` with a model that embeds a text as the sum of its words, each at a random place of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Path(app.adapters.__file__).parent / "data" / "minilm_tokenizer.json"
    shutil.copy(tokenizer, folder / "tokenizer.json")
    words = np.random.default_rng(1).standard_normal((30522, dimension)).astype(np.float32)
    words[:1996] *= 0.1  # marks, single letters and the most frequent words
    graph = _bytes(1, _node("Gather", ["words", "input_ids"], "hidden")) + _bytes(2, b"words")
    graph += _bytes(5, _tensor("words", words))
    graph += _bytes(11, _value("input_ids", _INT64)) + _bytes(12, _value("hidden", _FLOAT, dimensions=3))
    opset = _bytes(1, b"") + _number(2, _OPSET)
    (folder / "model.onnx").write_bytes(_number(1, _IR_VERSION) + _bytes(8, opset) + _bytes(7, graph))
    digest = sha256((folder / "model.onnx").read_bytes()).hexdigest()
    (folder / "model.toml").write_text(
        f"""name = "words"
dimension = {dimension}
sha256 = "{digest}"
query_prefix = "the "
[similarity]
unrelated = 0.2
related = 0.7
"""
    )
    return folder


def _tensor(name: str, values: np.ndarray) -> bytes:
    kind = _FLOAT if values.dtype == np.float32 else _INT64
    return (
        b"".join(_number(1, size) for size in values.shape)
        + _number(2, kind)
        + _bytes(8, name.encode())
        + _bytes(9, values.tobytes())
    )


def _value(name: str, kind: int, dimensions: int = 2) -> bytes:
    """An array of any size."""
    shape = b"".join(_bytes(1, _bytes(2, f"{name}_{place}".encode())) for place in range(dimensions))
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
