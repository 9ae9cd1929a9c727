"""Embedding models that a team brings: a folder, or a Python package, that holds the model and says all about it.

It holds `model.onnx` and `tokenizer.json`, as Hugging Face exports both, and `model.toml`::

    name = "bge-small-en-v1.5"      # stored with the index
    dimension = 384
    sha256 = "…"                    # of model.onnx
    pooling = "cls"                 # or mean
    query_prefix = "Represent this sentence for searching relevant passages: "

    [similarity]                    # the scale of its cosines, where it is known: domain/library/similarity.py
    unrelated = 0.6
    related = 0.8

Nothing is downloaded. Late interaction and local judgement stay with the model that ships.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import lru_cache
from hashlib import file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import onnxruntime as ort  # type: ignore[import-untyped]
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from tokenizers import Encoding, Tokenizer

from app.adapters.onnx_models import load_folder, make_inputs, run
from app.adapters.prices import PriceTable
from app.settings import Settings
from app.support.toml_files import list_problems, read_toml
from domain.errors import ConfigurationError, EmbedderUnavailable
from domain.library.similarity import Scale
from domain.ports.embedding import Vector
from domain.ports.models import UsageSink
from domain.text.storable import replace_surrogates

REMEMBERED_QUERIES = 256


class Description(BaseModel):
    """The content of `model.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    dimension: int = Field(ge=1, le=4000)
    sha256: str
    pooling: Literal["mean", "cls"] = "mean"
    """How a text's vector is made of its tokens': their mean, or the first."""
    window: int = Field(512, ge=8)
    """Tokens per text; the rest is cut off."""
    query_prefix: str = ""
    passage_prefix: str = ""
    similarity: Scale | None = None


@asynccontextmanager
async def open_embedder(embeddings: str, settings: Settings, prices: PriceTable) -> AsyncIterator["FolderEmbedder"]:
    """Open the model of `folder:PATH` or `package:MODULE`."""
    embedder = await asyncio.to_thread(FolderEmbedder.load, embeddings)
    try:
        yield embedder
    finally:
        embedder.close()


class FolderEmbedder:
    """An `Embedder`. Questions have a thread of their own, so that they do not wait for ingestion."""

    is_local = True
    problem: str | None = None
    """Never: what would be wrong with the model is found when it is loaded."""

    def __init__(self, description: Description, session: ort.InferenceSession, tokenizer: Tokenizer) -> None:
        self.name = description.name
        self.dimension = description.dimension
        self.scale = description.similarity
        self._description = description
        self._session = session
        self._tokenizer = tokenizer
        self._recall = lru_cache(maxsize=REMEMBERED_QUERIES)(self._embed_query)
        self._queries = ThreadPoolExecutor(1, thread_name_prefix="embed-query")
        self._passages = ThreadPoolExecutor(1, thread_name_prefix="embed-passages")

    @classmethod
    def load(cls, place: str) -> "FolderEmbedder":
        """Load the model of `folder:PATH` or `package:MODULE`.

        Raises `ConfigurationError` where a file is missing or is not what `model.toml` says, or the model does not run.
        """
        folder = _find_folder(place)
        about = f"The embedding model {place} cannot be used: "
        try:
            description = Description.model_validate(read_toml(folder / "model.toml", "description"))
        except ValidationError as error:
            raise ConfigurationError(f"{about}{list_problems(error)}") from error
        session, tokenizer = load_folder(folder, about, 1)
        with (folder / "model.onnx").open("rb") as file:
            found = file_digest(file, "sha256").hexdigest()
        if found != description.sha256:
            raise ConfigurationError(f"{about}model.onnx has the SHA-256 {found}, and model.toml names another.")
        tokenizer.enable_truncation(description.window)
        model = cls(description, session, tokenizer)
        try:
            dimension = model._run("words").shape
        except EmbedderUnavailable as error:
            raise ConfigurationError(f"{about}{error.message}") from error
        if dimension != (description.dimension,):
            raise ConfigurationError(f"{about}its vectors have the shape {dimension}, not ({description.dimension},).")
        return model

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        return await asyncio.get_running_loop().run_in_executor(self._queries, self._recall, text)

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        loop, prefix = asyncio.get_running_loop(), self._description.passage_prefix
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for place, text in enumerate(texts):
            vectors[place] = await loop.run_in_executor(self._passages, self._run, prefix + text)
        return vectors

    def close(self) -> None:
        """End the worker threads."""
        self._queries.shutdown(cancel_futures=True)
        self._passages.shutdown(cancel_futures=True)
        # A cached bound method is a reference cycle, which would keep the model in memory.
        del self._recall, self._session

    def _embed_query(self, text: str) -> Vector:
        vector = self._run(self._description.query_prefix + text)
        vector.setflags(write=False)
        return vector

    def _run(self, text: str) -> Vector:
        encoding = self._tokenizer.encode(replace_surrogates(text))
        [hidden] = run(self._session, self._make_inputs(encoding), "embedding model")
        pooled = hidden[0] if self._description.pooling == "cls" else hidden.mean(axis=0)
        return cast(Vector, (pooled / np.linalg.norm(pooled)).astype(np.float32))

    def _make_inputs(self, encoding: Encoding) -> Mapping[str, NDArray[Any]]:
        """Return the inputs of the graph, by name."""
        return make_inputs(self._session, [encoding])


def _find_folder(place: str) -> Path:
    kind, _, where = place.partition(":")
    if kind == "folder":
        return Path(where).expanduser()
    spec = find_spec(where)
    if spec is None or spec.origin is None:
        raise ConfigurationError(f"The embedding model {place} cannot be used: no package {where} is installed.")
    return Path(spec.origin).parent
