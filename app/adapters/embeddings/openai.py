"""Embedding models that speak OpenAI's API: OpenAI itself and compatible servers.

https://platform.openai.com/docs/api-reference/embeddings. Importing this module loads the SDK.

Servers differ in whether a model accepts `dimensions`, how many texts a request may hold and how long a text may be.
The adapter learns this from their refusals and remembers it.
"""

import asyncio
import base64
import logging
import re
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx2
import numpy as np
import openai
from openai.types import CreateEmbeddingResponse

from app.adapters.bounded_http import DIRECT, keep_home
from app.adapters.chat.providers import CHECK_SECONDS, Access
from app.adapters.circuit import Circuit
from app.adapters.prices import PriceTable
from app.adapters.sdk_errors import find_words, translate
from app.settings import Settings, reveal
from app.support.addresses import read_api_address
from domain.errors import ConfigurationError, EmbedderUnavailable, ModelError, ModelUnavailable, explain
from domain.library.similarity import Scale
from domain.ports.embedding import Vector
from domain.ports.models import ModelUsage, UsageSink
from domain.text.storable import replace_surrogates

logger = logging.getLogger("askgraph.embeddings")

MAX_DIMENSION = 4_000
"""Largest dimension of a vector index in half precision (pgvector)."""

REQUEST_TEXTS = 128
"""Texts per request. OpenAI accepts 2,048; smaller requests run in parallel, and a failed one costs less."""
REQUEST_BYTES = 300_000
"""UTF-8 bytes per request. OpenAI accepts 300,000 tokens, and no token is shorter than a byte."""
AT_ONCE = 4
"""Concurrent requests for passages. Queries do not wait for them."""

QUERY_SECONDS = 5.0
"""Seconds that a question waits for its embedding, one retry included, before it is searched by words alone."""
PASSAGE_SECONDS = 60.0
"""Time limit of one request for passages, in seconds."""
PASSAGE_RETRIES = 6
"""Retries after 429, 5xx and time-outs. The SDK waits as `Retry-After` says, or 0.5 to 8 s with jitter."""

REMEMBERED_QUERIES = 256
_SHORTEST = 200
"""Characters below which a text that is refused for its length is not cut."""

_NATIVE = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""Dimensions of OpenAI's models. https://platform.openai.com/docs/models"""

_KEYS = "ASKGRAPH_EMBEDDINGS_API_KEY, or OPENAI_API_KEY"
_KINDS_PATH = Path(__file__).with_name("kinds.toml")
_SPEC = re.compile(r"openai:(?P<model>\S+?)(?:@(?P<dimension>\d+))?")
_DIMENSIONS_REFUSED = re.compile(r"dimensions|matryoshka", re.IGNORECASE)
_FORMAT_REFUSED = re.compile(r"encoding.?format|base64", re.IGNORECASE)
_OF_A_TEXT = (400, 413, 422, 500)
"""Statuses with which a server refuses a text, or fails at it."""
_TOO_MANY = re.compile(
    r"(?<!physical )batch.?size|in one batch|too many inputs|array|at most \d+ (item|string)", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context.?(length|size|window)|(input|sequence).?length|too (large|long)|than \d+ tokens|tokens.{0,30}exceed"
    r"|max.?(seq|model|input)",
    re.IGNORECASE,
)
_UNUSABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError)
"""Exceptions that the SDK or NumPy raise for a reply that violates the protocol."""


class _Kind(NamedTuple):
    """How a request tells the model whether a text is a query or a passage."""

    prefix: str
    fields: Mapping[str, str]
    """Fields of the request's body."""


def _find_kinds(model: str) -> tuple[_Kind, _Kind]:
    """Return how the model is told of queries and of passages: nothing, unless its family is in `kinds.toml`."""
    families = tomllib.loads(_KINDS_PATH.read_text("utf-8"))["families"]
    family: dict[str, Any] = next((each for each in families if re.search(each["names"], model.lower())), {})
    query, passage = (
        _Kind(family.get(f"{kind}_prefix", ""), family.get(f"{kind}_fields", {})) for kind in ("query", "passage")
    )
    return query, passage


@asynccontextmanager
async def open_embedder(embeddings: str, settings: Settings, prices: PriceTable) -> AsyncIterator["OpenAIEmbedder"]:
    """Open the model of `openai:MODEL@DIMENSION` on its server. One that does not answer is only reported.

    Raises `ConfigurationError` where no server is known, and where its vectors have another dimension.
    """
    own, general = Access(reveal(settings.embeddings_api_key), settings.embeddings_base_url), settings.openai
    access = own if own.base_url else replace(general, api_key=own.api_key, key_file=None) if own else general
    if not access:
        raise ConfigurationError(
            f"The embeddings are {embeddings!r}, and no server of them is known. Set OPENAI_API_KEY, or "
            "ASKGRAPH_EMBEDDINGS_BASE_URL for a server that wants no key."
        )
    embedder = OpenAIEmbedder(
        embeddings, api_key=access.key, base_url=access.base_url, prices=prices, headers=access.headers
    )
    try:
        problem = await embedder.check()
        if embedder.is_misfit:
            raise ConfigurationError(problem)
        yield embedder
    finally:
        await embedder.aclose()


class OpenAIEmbedder:
    """An `Embedder`. Construct it once and keep it: its client holds the connections."""

    is_local = False
    scale: Scale | None = None

    def __init__(
        self,
        spec: str,
        *,
        api_key: str | Callable[[], Awaitable[str]],
        base_url: str | None,
        prices: PriceTable,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """`spec` is `openai:MODEL` or `openai:MODEL@DIMENSION`. `api_key` may be empty if `base_url` names a server
        that needs none. No request is made yet.

        Raises `ConfigurationError` if the dimension is neither stated nor known, or cannot be indexed.
        """
        match = _SPEC.fullmatch(spec)
        if match is None:
            raise ConfigurationError(f"{spec!r} names no embedding model; it is local, or like openai:MODEL@DIMENSION.")
        self.model = match["model"]
        native = _NATIVE.get(self.model)
        dimension = int(match["dimension"]) if match["dimension"] else native
        if dimension is None:
            raise ConfigurationError(
                f"The dimension of {self.model!r} is unknown. State it, as in openai:{self.model}@768."
            )
        if not 1 <= dimension <= MAX_DIMENSION:
            raise ConfigurationError(f"Vectors of {dimension} dimensions cannot be indexed; 1 to {MAX_DIMENSION} can.")
        self.dimension = dimension
        self.name = f"openai:{self.model}@{dimension}"
        self.problem: str | None = None
        """Problem of the most recent call; None if it was answered."""
        self.is_misfit = False
        """True where the server's vectors have another dimension, which no waiting cures."""
        self._prices = prices
        self._circuit = Circuit(f"The embedding model {self.model}")
        address, query = read_api_address(base_url, "/embeddings")
        self._server = openai.AsyncOpenAI(
            api_key=api_key or "none",
            base_url=address,
            default_query=query,
            timeout=PASSAGE_SECONDS,
            max_retries=PASSAGE_RETRIES,
            # Azure takes a key there only, at addresses with a version.
            default_headers={**(headers or {}), **({"api-key": api_key} if query and isinstance(api_key, str) else {})},
            http_client=openai.DefaultAsyncHttpxClient(mounts=DIRECT, event_hooks={"response": [keep_home, _refuse]}),
        )
        self._query, self._passage = _find_kinds(self.model)
        self._sends_dimensions = dimension != native
        self._sends_format = True
        self._texts = REQUEST_TEXTS
        self._characters: int | None = None
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._recent: dict[str, Vector] = {}

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        if (known := self._recent.pop(text, None)) is None:
            known = await self._embed_query(text, sink, seconds=QUERY_SECONDS, retries=1)
            if len(self._recent) >= REMEMBERED_QUERIES:
                del self._recent[next(iter(self._recent))]
        self._recent[text] = known
        return known

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        async def request(batch: Sequence[str]) -> Vector:
            async with self._at_once:
                return await self._request(self._server, batch, self._passage, sink)

        with self._guarded():
            # A failed request cancels the others: their vectors would be discarded.
            requests = [asyncio.create_task(request(batch)) for batch in _make_batches(texts)]
            try:
                vectors = await asyncio.gather(*requests)
            finally:
                for each in requests:
                    each.cancel()
        return np.concatenate([np.empty((0, self.dimension), dtype=np.float32), *vectors])

    async def check(self) -> str | None:
        """Return a problem with the key, the address, the model or its dimension; None if there is none. Embeds one
        word; takes at most 3 seconds."""
        with suppress(EmbedderUnavailable):
            await self._embed_query("word", None, seconds=CHECK_SECONDS, retries=0)
        return self.problem

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.close()

    async def _embed_query(self, text: str, sink: UsageSink | None, *, seconds: float, retries: int) -> Vector:
        server = self._server.with_options(max_retries=retries)
        with self._guarded():
            async with asyncio.timeout(seconds):
                [vector] = await self._request(server, [text], self._query, sink)
        vector.setflags(write=False)
        return cast(Vector, vector)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Translate errors of the SDK and its transport to `EmbedderUnavailable`, which is also raised without a call
        while the circuit is open."""
        try:
            with self._circuit.guard():
                try:
                    yield
                except (openai.OpenAIError, httpx2.HTTPError, TimeoutError, *_UNUSABLE) as error:
                    model = f"The embedding model {self.model} at {self._server.base_url.copy_with(userinfo=b'')}"
                    raise translate(error, model, keys=_KEYS, names="ASKGRAPH_EMBEDDINGS and its base URL") from error
        except (ModelUnavailable, ModelError, EmbedderUnavailable) as error:
            self.problem = explain(error)
            raise EmbedderUnavailable(error.message) from error
        self.problem = None

    async def _request(
        self, server: openai.AsyncOpenAI, texts: Sequence[str], kind: _Kind, sink: UsageSink | None
    ) -> Vector:
        """Request the vectors of the texts: in one request, or in several if the server accepts fewer texts at once, or
        fails at one of them or refuses it, which is then cut, and at last has the vector of an empty text."""
        limit: int | None = None
        while len(texts) <= self._texts:
            # A lone surrogate cannot be sent, and an empty text is refused.
            inputs = [kind.prefix + (replace_surrogates(text)[: limit or self._characters] or " ") for text in texts]
            sends_dimensions = self._sends_dimensions
            try:
                reply = await server.embeddings.create(
                    model=self.model,
                    input=inputs,
                    dimensions=self.dimension if sends_dimensions else openai.omit,
                    # Without this the SDK creates a Python list for every vector.
                    encoding_format="base64" if self._sends_format else openai.omit,
                    extra_body=kind.fields,
                )
            except openai.APIStatusError as error:
                if error.status_code in (404, 405) and server.base_url.path == "/":
                    # Most servers answer below /v1, which is easily forgotten.
                    self._server.base_url = server.base_url = server.base_url.copy_with(path="/v1/")
                    continue
                if self._learn(error, inputs, sent_dimensions=sends_dimensions):
                    continue
                if error.status_code not in _OF_A_TEXT or not any(texts):
                    raise
                # One text may be what it fails at. All attempts were made for it: the parts need no more.
                server = server.with_options(max_retries=0)
                if len(texts) > 1:
                    break
                if error.status_code != 500 and len(inputs[0]) > _SHORTEST:
                    # It may be too long in words that nobody knows.
                    limit = len(inputs[0]) // 2
                    continue
                vector = await self._request(server, [""], kind, sink)
                logger.warning("%s fails at a passage, which is found by words only: %s", self.name, texts[0][:80])
                return vector
            if sink is not None:
                sink.record(self._measure(reply))
            return self._read(reply, len(texts))
        half = (len(texts) + 1) // 2
        parts = [await self._request(server, part, kind, sink) for part in (texts[:half], texts[half:])]
        return np.concatenate(parts)

    def _learn(self, error: openai.APIStatusError, inputs: Sequence[str], *, sent_dimensions: bool) -> bool:
        """Learn from a refusal. Returns True if the request can be changed so that the server may accept it."""
        if error.status_code not in _OF_A_TEXT:
            return False
        said = find_words(error.body)
        if self._sends_format and _FORMAT_REFUSED.search(said):
            self._sends_format = False
            return True
        if sent_dimensions and error.status_code != 500 and _DIMENSIONS_REFUSED.search(said):
            self._sends_dimensions = False
            return True
        if len(inputs) > 1 and _TOO_MANY.search(said):
            self._texts = min(self._texts, len(inputs) // 2)
            return True
        longest = max(map(len, inputs))
        if longest > _SHORTEST and _TOO_LONG.search(said):
            self._characters = min(self._characters or longest, longest // 2)
            return True
        return False

    def _measure(self, reply: CreateEmbeddingResponse) -> ModelUsage:
        """Measure a reply. A server that reports no usage is recorded with zero tokens of unknown cost, so that the
        call itself shows."""
        tokens = reply.usage.prompt_tokens if reply.usage else 0
        cost = self._prices.price_embedding(self.model, tokens) if tokens else None
        return ModelUsage(self.model, tokens, 0, cost)

    def _read(self, reply: CreateEmbeddingResponse, count: int) -> Vector:
        vectors = [_decode(each.embedding) for each in sorted(reply.data or (), key=lambda each: each.index)]
        if len(vectors) != count:
            # Some gateways say what went wrong in a reply with status 200.
            said = f" It says: {str(reply.model_extra)[:200]}" if reply.model_extra else ""
            message = f"{len(vectors)} vectors came from the model {self.model} for {count} texts.{said}"
            raise EmbedderUnavailable(message)
        if wrong := {len(vector) for vector in vectors} - {self.dimension}:
            self.is_misfit = True
            raise EmbedderUnavailable(
                f"The embedding model {self.model} makes vectors of {min(wrong)} dimensions, not of {self.dimension}. "
                f"Set ASKGRAPH_EMBEDDINGS=openai:{self.model}@{min(wrong)}."
            )
        rows = np.stack(vectors)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise EmbedderUnavailable(f"The embedding model {self.model} sent an invalid vector.")
        return cast(Vector, rows / lengths)


async def _refuse(response: httpx2.Response) -> None:
    """Keep the SDK from asking again where a 500 says that a text is too long, which no waiting cures."""
    if response.status_code == 500 and _TOO_LONG.search((await response.aread()).decode("utf-8", "replace")[:2000]):
        response.headers["x-should-retry"] = "false"


def _make_batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    first, size = 0, 0
    for position, text in enumerate(texts):
        added = len(text.encode("utf-8", "replace"))
        if position > first and (position - first == REQUEST_TEXTS or size + added > REQUEST_BYTES):
            yield texts[first:position]
            first, size = position, 0
        size += added
    if texts:
        yield texts[first:]


def _decode(sent: Any) -> Vector:
    """Decode a vector: base64 of little-endian floats, or a list from servers that know only that."""
    if isinstance(sent, str):
        return np.frombuffer(base64.b64decode(sent), dtype="<f4").astype(np.float32)
    return np.array(sent, dtype=np.float32)
