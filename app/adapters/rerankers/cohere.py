"""Reranks through Cohere's API (https://docs.cohere.com/v2/reference/rerank) or a server that has something like it.

vLLM, LiteLLM, llama.cpp, Infinity, Jina, Voyage and TEI differ in the path, in how many passages a request may hold, in
what the fields are called and in whether a score is a probability or a logit: it is learnt from what they answer.

The client of OpenAI's SDK makes the requests: it knows nothing of reranking, but when to try again.
"""

import asyncio
import math
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2
import openai
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from app.adapters.bounded_http import keep_home
from app.adapters.chat.providers import CHECK_SECONDS
from app.adapters.circuit import Circuit
from app.adapters.prices import PriceTable
from app.adapters.rerankers.registry import Opening
from app.adapters.sdk_errors import explain_silence, find_words, translate
from app.settings import reveal
from domain.documents import Passage, embedding_text
from domain.errors import AskgraphError, ConfigurationError
from domain.ports.models import ModelUsage, UsageSink
from domain.scope import Scope
from domain.text.storable import replace_surrogates

ADDRESS = "https://api.cohere.com"

SECONDS = 5.0
"""Time limit of one call with its retries; after that, the order of the search stands."""

RETRIES = 2
"""Retries after 408, 409, 429, 5xx and a lost connection; the SDK waits as `Retry-After` says, or half a second and
more."""

LONGEST = 8000
"""Characters sent of a passage, about 2,000 tokens. Each 500 tokens of a document are billed as one."""

_PATHS = ("/v2/rerank", "/v1/rerank", "/rerank")
_BASE = re.compile(r"(?P<base>.*?(?P<version>/v\d+)?)(?P<path>/rerank)?/*")
_TOO_MANY = re.compile(r"batch.?size|too many", re.IGNORECASE)


class _Result(BaseModel):
    index: int = Field(ge=0)
    relevance_score: float = Field(allow_inf_nan=False, validation_alias=AliasChoices("relevance_score", "score"))


class _Units(BaseModel):
    search_units: float | None = None


class _Meta(BaseModel):
    billed_units: _Units | None = None


class _Reply(BaseModel):
    results: list[_Result] = Field(validation_alias=AliasChoices("results", "data"))
    meta: _Meta | None = None


_REPLY: TypeAdapter[_Reply | list[_Result]] = TypeAdapter(_Reply | list[_Result])


@asynccontextmanager
async def open_reranker(opening: Opening) -> AsyncIterator["CohereReranker"]:
    """Open the reranker that `ASKGRAPH_RERANK_MODEL` names. One that does not answer is only reported."""
    settings = opening.settings
    if not (settings.cohere_api_key or settings.cohere_base_url):
        raise ConfigurationError(
            f"The mode {opening.wanted_by[0]!r} reranks with Cohere, and no key is set. Set COHERE_API_KEY, or "
            "COHERE_BASE_URL for a server that wants none, or change the mode's rerank.method."
        )
    reranker = CohereReranker(
        settings.rerank_model,
        api_key=reveal(settings.cohere_api_key),
        base_url=settings.cohere_base_url,
        prices=opening.prices,
    )
    try:
        reranker.circuit.problem = await reranker.check()
        yield reranker
    finally:
        await reranker.aclose()


class CohereReranker:
    """A `Reranker`. Construct it once and keep it: its client holds the connections."""

    def __init__(
        self, model: str, *, api_key: str, base_url: str | None, prices: PriceTable, seconds: float = SECONDS
    ) -> None:
        """`api_key` may be empty if `base_url` names a server that needs none."""
        self.name = f"cohere/{model}{f' at {base_url}' if base_url else ''}"
        self._model = model
        self._seconds = seconds
        self._prices = prices
        self.circuit = Circuit(f"The reranker {model}")
        address = _BASE.fullmatch(base_url or ADDRESS)
        assert address
        self._paths = ("/rerank",) if address["version"] or address["path"] else _PATHS if base_url else _PATHS[:1]
        self._texts = "documents"
        """The field of the passages."""
        self._most: float = math.inf
        """Passages that a request may hold."""
        self._is_logit = False
        self._server = openai.AsyncOpenAI(
            # The SDK does not start without a key; local servers ignore it.
            api_key=api_key or "none",
            base_url=address["base"],
            timeout=seconds,
            max_retries=RETRIES,
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [keep_home]}),
        )

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """Return the server's relevance of each passage, 0-1; 0 for a passage that it left out. Scores of which one is
        beyond are logits.

        Raises `ModelUnavailable`, `ModelTimeout`, `ModelRejectedKey` or `ModelError`.
        """
        if not passages:
            return []
        texts = [replace_surrogates(embedding_text(p.title, p.heading_path, p.text)[:LONGEST]) for p in passages]
        with self.circuit.guard():
            try:
                async with asyncio.timeout(self._seconds):
                    judged = await self._ask(replace_surrogates(question), texts, sink)
            except asyncio.CancelledError:
                self._estimate(sink)
                raise
            except (openai.OpenAIError, httpx2.HTTPError, TimeoutError, ValidationError) as error:
                if isinstance(error, TimeoutError | openai.APITimeoutError):
                    self._estimate(sink)
                raise self._translate(error) from error
        self._is_logit = self._is_logit or any(not 0 <= score <= 1 for score in judged.values())
        if self._is_logit:
            judged = {index: (1 + math.tanh(score / 2)) / 2 for index, score in judged.items()}
        return [judged.get(index, 0.0) for index in range(len(passages))]

    async def _ask(self, question: str, texts: Sequence[str], sink: UsageSink) -> dict[int, float]:
        """Return the score of each text, by its place, as the server gives it."""
        if len(texts) > self._most:
            half = (len(texts) + 1) // 2
            rest = await self._ask(question, texts[half:], sink)
            return await self._ask(question, texts[:half], sink) | {half + at: score for at, score in rest.items()}
        body: dict[str, object] = {"model": self._model, "query": question, self._texts: texts}
        if self._texts == "texts":
            # TEI refuses what is longer than its model reads.
            body["truncate"] = True
        try:
            content = await self._post(body)
        except openai.APIStatusError as error:
            said = find_words(error.body)
            if "documents" in body and "`texts`" in said:
                self._texts = "texts"
            elif len(texts) > 1 and error.status_code in (400, 413, 422) and _TOO_MANY.search(said):
                self._most = len(texts) // 2
            else:
                raise
            return await self._ask(question, texts, sink)
        reply = _REPLY.validate_json(content)
        if isinstance(reply, list):
            reply = _Reply(results=reply)
        self._record(reply, sink)
        return {result.index: result.relevance_score for result in reply.results if result.index < len(texts)}

    async def _post(self, body: dict[str, object]) -> bytes:
        """Send the request to the first path that the server has."""
        missing: openai.APIStatusError | None = None
        for path in self._paths:
            try:
                response = await self._server.post(path, cast_to=httpx2.Response, body=body)
            except openai.APIStatusError as error:
                if error.status_code not in (404, 405):
                    self._paths = (path,)
                    raise
                missing = missing or error
            else:
                self._paths = (path,)
                return response.content
        assert missing
        raise missing

    async def check(self) -> str | None:
        """Return a problem with the key or the address, as far as the server's description of the model tells; None if
        there is none, or the server has no description. Takes at most 3 seconds and is not billed."""
        probe = self._server.with_options(max_retries=0)
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await probe.get(f"/v1/models/{self._model}", cast_to=httpx2.Response)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            return self._translate(error).message
        except (openai.APIConnectionError, TimeoutError) as error:
            return explain_silence(f"The server of the reranker {self._model}", error, "COHERE_BASE_URL")
        except openai.OpenAIError:
            return None
        return None

    async def find_problem(self) -> str | None:
        """Return the problem of the most recent call, or of `check`; None if there is none."""
        return self.circuit.find_problem()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.close()

    def _translate(self, error: Exception) -> AskgraphError:
        names = "ASKGRAPH_RERANK_MODEL and COHERE_BASE_URL"
        return translate(error, f"The reranker {self._model}", keys="COHERE_API_KEY", names=names)

    def _record(self, reply: _Reply, sink: UsageSink) -> None:
        """Record the cost: searches are billed, not tokens. A server that does not bill is recorded at an unknown
        price."""
        units = reply.meta.billed_units.search_units if reply.meta and reply.meta.billed_units else None
        cost = None if units is None else self._prices.price_rerank(self._model, units)
        sink.record(ModelUsage(self._model, 0, 0, cost))

    def _estimate(self, sink: UsageSink) -> None:
        """Record one search for a call that was given up, which is billed."""
        sink.record(ModelUsage(self._model, 0, 0, self._prices.price_rerank(self._model, 1), estimated=True))
