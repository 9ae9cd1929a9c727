"""ONNX cross-encoders, which read question and passage together, as a team's own reranker.

A folder holds `model.onnx` and `tokenizer.json`, as Hugging Face exports both (sentence-transformers CrossEncoder, or a
sequence classifier with one label). Nothing is downloaded.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import cast

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnxruntime.capi.onnxruntime_pybind11_state import (  # type: ignore[import-untyped]
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    NoSuchFile,
    NotImplemented,
    RuntimeException,
)
from tokenizers import Encoding, Tokenizer

from app.adapters.onnx_options import make_session_options
from domain.documents import Passage, embedding_text
from domain.errors import ConfigurationError, EmbedderUnavailable
from domain.ports.models import UsageSink
from domain.scope import Scope
from domain.text.surrogates import replace_surrogates

WINDOW = 512
"""Tokens per pair, if the tokenizer names no smaller limit. The longer text is cut: in practice the passage."""

BATCH = 8
"""Pairs per run, of similar length."""

_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}


class OnnxCrossEncoder:
    """A `Reranker` that runs in its own worker thread."""

    def __init__(self, name: str, session: ort.InferenceSession, tokenizer: Tokenizer) -> None:
        self.name = name
        self._session = session
        self._tokenizer = tokenizer
        self._inputs = {given.name for given in session.get_inputs()}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="cross-encoder")

    @classmethod
    def load(cls, folder: Path, threads: int | None = None) -> "OnnxCrossEncoder":
        """Load the model and try it on one pair.

        Raises `ConfigurationError` if a file is missing or cannot be read, or the model is not a cross-encoder with one
        score per pair.
        """
        unusable = f"The cross-encoder {folder} cannot be used: "
        for file in ("model.onnx", "tokenizer.json"):
            if not (folder / file).is_file():
                raise ConfigurationError(
                    f"{unusable}there is no file {file}. ASKGRAPH_CROSS_ENCODER names a folder that holds model.onnx "
                    "and tokenizer.json."
                )
        try:
            session = _open_session(folder / "model.onnx", threads)
        except (Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented) as error:
            raise ConfigurationError(f"{unusable}model.onnx is not a model that can be run ({error}).") from error
        inputs = {given.name for given in session.get_inputs()}
        if not {"input_ids", "attention_mask"} <= inputs <= _INPUTS:
            raise ConfigurationError(
                f"{unusable}it takes {', '.join(sorted(inputs))}; a cross-encoder takes input_ids, attention_mask and "
                "perhaps token_type_ids. Export it as a sequence classifier."
            )
        tokenizer = _read_tokenizer(folder / "tokenizer.json", unusable)
        reranker = cls(f"cross-encoder/{_digest(folder)}", session, tokenizer)
        try:
            shape = reranker._run(tokenizer.encode_batch([("a question", "a passage")])).shape
        except EmbedderUnavailable as error:
            raise ConfigurationError(f"{unusable}it fails on a first pair ({error.message}).") from error
        if shape != (1, 1):
            raise ConfigurationError(
                f"{unusable}for one pair it returns scores of shape {shape} in place of (1, 1). It must be a "
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
        ids = np.zeros((len(batch), max(len(encoding.ids) for encoding in batch)), dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, encoding in enumerate(batch):
            length = len(encoding.ids)
            ids[row, :length] = encoding.ids
            mask[row, :length] = 1
            types[row, :length] = encoding.type_ids
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        try:
            outputs = self._session.run(None, {name: given[name] for name in self._inputs})
        except (EPFail, Fail, InvalidArgument, RuntimeException) as error:
            raise EmbedderUnavailable(f"The cross-encoder failed: {error}") from error
        logits = cast(NDArray[np.float32], outputs[0])
        if not np.isfinite(logits).all():
            raise EmbedderUnavailable("The cross-encoder failed: it returned scores that are no numbers.")
        return logits


def _read_tokenizer(path: Path, unusable: str) -> Tokenizer:
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise ConfigurationError(f"{unusable}tokenizer.json cannot be read ({error}).") from error
    named = tokenizer.truncation
    tokenizer.enable_truncation(min(WINDOW, named["max_length"]) if named else WINDOW, strategy="longest_first")
    tokenizer.no_padding()
    return tokenizer


def _open_session(path: Path, threads: int | None) -> ort.InferenceSession:
    options = make_session_options(threads)
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _digest(folder: Path) -> str:
    """Identify the model by its content: cached answers of another model must not be reused, wherever the folder
    lies."""
    digest = sha256((folder / "tokenizer.json").read_bytes())
    with (folder / "model.onnx").open("rb") as model:
        while block := model.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()[:16]
