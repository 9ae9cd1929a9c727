"""Reranks through Cohere's API or any server that implements its second version (vLLM, LiteLLM and others).
https://docs.cohere.com/v2/reference/rerank

The client of OpenAI's SDK makes the requests: it knows nothing of reranking, but when to try again.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2
import openai
from pydantic import BaseModel, Field, ValidationError

from app.adapters.chat.providers import CHECK_SECONDS
from app.adapters.circuit import Circuit
from app.adapters.prices import PriceTable
from app.adapters.rerankers.registry import Opening
from app.adapters.sdk_errors import explain_silence, translate
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


class _Result(BaseModel):
    index: int = Field(ge=0)
    relevance_score: float = Field(allow_inf_nan=False)


class _Units(BaseModel):
    search_units: float | None = None


class _Meta(BaseModel):
    billed_units: _Units | None = None


class _Reply(BaseModel):
    results: list[_Result]
    meta: _Meta | None = None


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
        self._server = openai.AsyncOpenAI(
            # The SDK does not start without a key; local servers ignore it.
            api_key=api_key or "none",
            base_url=(base_url or ADDRESS).rstrip("/"),
            timeout=seconds,
            max_retries=RETRIES,
        )

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """Return the server's relevance of each passage, clipped to 0-1; 0 for a passage that it left out.

        Raises `ModelUnavailable`, `ModelTimeout`, `ModelRejectedKey` or `ModelError`.
        """
        if not passages:
            return []
        texts = [replace_surrogates(embedding_text(p.title, p.heading_path, p.text)[:LONGEST]) for p in passages]
        body = {"model": self._model, "query": replace_surrogates(question), "documents": texts}
        with self.circuit.guard():
            try:
                async with asyncio.timeout(self._seconds):
                    response = await self._server.post("/v2/rerank", cast_to=httpx2.Response, body=body)
                reply = _Reply.model_validate_json(response.content)
            except asyncio.CancelledError:
                self._estimate(sink)
                raise
            except (openai.OpenAIError, httpx2.HTTPError, TimeoutError, ValidationError) as error:
                if isinstance(error, TimeoutError | openai.APITimeoutError):
                    self._estimate(sink)
                raise self._translate(error) from error
        self._record(reply, sink)
        judged = {result.index: min(1.0, max(0.0, result.relevance_score)) for result in reply.results}
        return [judged.get(index, 0.0) for index in range(len(passages))]

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
