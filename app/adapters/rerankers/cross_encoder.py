"""ONNX cross-encoders, which read question and passage together, as a team's own reranker.

A folder holds `model.onnx` and `tokenizer.json`, as Hugging Face exports both (sentence-transformers CrossEncoder, or a
sequence classifier with one label). Nothing is downloaded.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from app.adapters.onnx_models import load_folder, make_inputs, run
from app.adapters.rerankers.registry import Opening
from domain.documents import Passage, embedding_text
from domain.errors import ConfigurationError, EmbedderUnavailable
from domain.ports.models import UsageSink
from domain.scope import Scope
from domain.text.storable import replace_surrogates

WINDOW = 512
"""Tokens per pair, if the tokenizer names no smaller limit. The longer text is cut: in practice the passage."""

BATCH = 8
"""Pairs per run, of similar length."""


@asynccontextmanager
async def open_reranker(opening: Opening) -> AsyncIterator["OnnxCrossEncoder"]:
    """Open the model in the folder that `ASKGRAPH_CROSS_ENCODER` names."""
    assert opening.settings.cross_encoder is not None, "modes without it rerank locally"
    cross_encoder = await asyncio.to_thread(OnnxCrossEncoder.load, opening.settings.cross_encoder)
    try:
        yield cross_encoder
    finally:
        cross_encoder.close()


class OnnxCrossEncoder:
    """A `Reranker` that runs in its own worker thread."""

    def __init__(self, name: str, session: ort.InferenceSession, tokenizer: Tokenizer) -> None:
        self.name = name
        self._session = session
        self._tokenizer = tokenizer
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cross-encoder")

    @classmethod
    def load(cls, folder: Path, threads: int | None = None) -> "OnnxCrossEncoder":
        """Load the model and try it on one pair.

        Raises `ConfigurationError` if a file is missing or cannot be read, or the model is not a cross-encoder with one
        score per pair.
        """
        about = f"The cross-encoder {folder}, which ASKGRAPH_CROSS_ENCODER names, cannot be used: "
        session, tokenizer = load_folder(folder, about, threads)
        named = tokenizer.truncation
        tokenizer.enable_truncation(min(WINDOW, named["max_length"]) if named else WINDOW, strategy="longest_first")
        reranker = cls(f"cross-encoder/{_digest(folder)}", session, tokenizer)
        try:
            shape = reranker._run(tokenizer.encode_batch([("a question", "a passage")])).shape
        except EmbedderUnavailable as error:
            raise ConfigurationError(f"{about}it fails on a first pair ({error.message}).") from error
        if shape != (1, 1):
            raise ConfigurationError(
                f"{about}for one pair it returns scores of shape {shape} in place of (1, 1). It must be a "
                "cross-encoder with one label, not an embedding model or a classifier of several labels."
            )
        return reranker

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """Return the model's scores as probabilities: the logistic function of its single logit."""
        texts = [embedding_text(p.title, p.heading_path, p.text) for p in passages]
        return await asyncio.get_running_loop().run_in_executor(self._worker, self._score, question, texts)

    def close(self) -> None:
        """End the worker thread."""
        self._worker.shutdown(cancel_futures=True)

    def _score(self, question: str, texts: list[str]) -> list[float]:
        # Extracted text contains lone surrogates, which the tokenizer refuses.
        pairs = [(replace_surrogates(question), replace_surrogates(text)) for text in texts]
        encodings = self._tokenizer.encode_batch(pairs)
        order = sorted(range(len(pairs)), key=lambda position: len(encodings[position].ids))
        scores = np.zeros(len(pairs))
        for first in range(0, len(order), BATCH):
            positions = order[first : first + BATCH]
            logits = self._run([encodings[position] for position in positions])
            scores[positions] = 1 / (1 + np.exp(-logits[:, 0].astype(np.float64).clip(-50, 50)))
        listed: list[float] = scores.tolist()
        return listed

    def _run(self, batch: list[Encoding]) -> NDArray[np.float32]:
        logits = run(self._session, make_inputs(self._session, batch), "cross-encoder")
        if not np.isfinite(logits).all():
            raise EmbedderUnavailable("The cross-encoder failed: it returned scores that are no numbers.")
        return logits


def _digest(folder: Path) -> str:
    """Identify the model by its content: cached answers of another model must not be reused, wherever the folder
    lies."""
    digest = sha256((folder / "tokenizer.json").read_bytes())
    with (folder / "model.onnx").open("rb") as model:
        while block := model.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]
