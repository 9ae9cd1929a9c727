"""Reranks through Cohere's API or any server that implements its second version (vLLM, LiteLLM and others).
https://docs.cohere.com/v2/reference/rerank

Needs the package `cohere` (``pip install 'askgraph[cohere]'``) and costs 0.6 s to import: import it where a mode uses
it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from app.adapters.chat.providers import CHECK_SECONDS
from app.adapters.circuit import Circuit
from app.adapters.prices import PriceTable
from domain.documents import Passage, embedding_text
from domain.errors import (
    AskgraphError,
    ConfigurationError,
    ModelError,
    ModelRejectedKey,
    ModelTimeout,
    ModelUnavailable,
)
from domain.ports.models import ModelUsage, UsageSink
from domain.scope import Scope
from domain.text.surrogates import replace_surrogates

try:
    import cohere
    from cohere.core.api_error import ApiError
    from cohere.core.parse_error import ParsingError
except ModuleNotFoundError as error:
    raise ConfigurationError(
        "A mode reranks with Cohere, and its package is not installed. Run: pip install 'askgraph[cohere]'"
    ) from error

SECONDS = 5.0
"""Time limit of one call with its retries; after that, the order of the search stands."""

RETRIES = 2
"""Retries after 408, 409, 429, 5xx and a refused connection; the SDK waits as `Retry-After` says, or 1 and then 2
seconds."""

LONGEST = 8000
"""Characters sent of a passage, about 2,000 tokens. Each 500 tokens of a document are billed as one."""

_PASSING = (408, 409, 429, 498, 499)
"""Statuses below 500 after which asking again later may help."""


class _Result(BaseModel):
    index: int = Field(ge=0)
    relevance_score: float = Field(allow_inf_nan=False)


_RESULTS = TypeAdapter(list[_Result])


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
        self._http = httpx.AsyncClient(timeout=seconds)
        self._client = cohere.AsyncClientV2(
            api_key, base_url=base_url, timeout=seconds, max_retries=RETRIES, httpx_client=self._http
        )

    async def score(self, scope: Scope, question: str, passages: Sequence[Passage], sink: UsageSink) -> list[float]:
        """Return the server's relevance of each passage, clipped to 0-1; 0 for a passage that it left out.

        Raises `ModelUnavailable`, `ModelTimeout`, `ModelRejectedKey` or `ModelError`.
        """
        if not passages:
            return []
        texts = [replace_surrogates(embedding_text(p.title, p.heading_path, p.text)[:LONGEST]) for p in passages]
        with self.circuit.guard():
            try:
                async with asyncio.timeout(self._seconds):
                    reply = await self._client.rerank(
                        model=self._model, query=replace_surrogates(question), documents=texts
                    )
            except asyncio.CancelledError:
                self._estimate(sink)
                raise
            except (ApiError, ParsingError, httpx.HTTPError, TimeoutError, ValueError) as error:
                if isinstance(error, TimeoutError | httpx.ReadTimeout):
                    self._estimate(sink)
                raise _translate(error, self._model) from error
        self._record(reply, sink)
        try:
            results = _RESULTS.validate_python(getattr(reply, "results", None), from_attributes=True)
        except ValidationError as error:
            raise ModelError(f"The reranker {self._model} sent a reply that violates its protocol.") from error
        judged = {result.index: min(1.0, max(0.0, result.relevance_score)) for result in results}
        return [judged.get(index, 0.0) for index in range(len(passages))]

    async def check(self) -> str | None:
        """Return a problem with the key or the address, as far as the server's description of the model tells; None if
        there is none, or the server has no description. Takes at most 3 seconds and is not billed."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self._client.models.get(self._model, request_options={"max_retries": 0})
        except ApiError as error:
            return _translate(error, self._model).message if error.status_code in (401, 403) else None
        except (httpx.TransportError, TimeoutError):
            return f"The server of the reranker {self._model} does not answer. Check COHERE_BASE_URL."
        except (ParsingError, ValueError):
            pass
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _record(self, reply: Any, sink: UsageSink) -> None:
        """Record the cost: searches are billed, not tokens. A server that does not bill is recorded at an unknown
        price."""
        billed = getattr(getattr(reply, "meta", None), "billed_units", None)
        units = getattr(billed, "search_units", None)
        cost = self._prices.price_rerank(self._model, units) if isinstance(units, int | float) else None
        sink.record(ModelUsage(self._model, 0, 0, cost))

    def _estimate(self, sink: UsageSink) -> None:
        """Record one search for a call that was given up, which is billed."""
        sink.record(ModelUsage(self._model, 0, 0, self._prices.price_rerank(self._model, 1), estimated=True))


def _translate(error: Exception, model: str) -> AskgraphError:
    match error:
        case TimeoutError() | httpx.TimeoutException():
            return ModelTimeout(f"The reranker {model} took too long.")
        case ApiError(status_code=401 | 403):
            return ModelRejectedKey("The reranker's provider did not accept the API key. Check COHERE_API_KEY.")
        case ApiError(status_code=404):
            return ModelError(
                f"There is no reranker {model} at this address. Check ASKGRAPH_RERANK_MODEL and COHERE_BASE_URL."
            )
        case ApiError(status_code=int(status)) if 400 <= status < 500 and status not in _PASSING:
            return ModelError(f"The reranker {model} did not accept the request: {_read_message(error.body)}")
        case ApiError(status_code=int(status)) if status < 400:
            return ModelError(f"The reranker {model} sent a reply that violates its protocol.")
        case ApiError() | httpx.HTTPError():
            return ModelUnavailable(f"The reranker {model} did not answer.")
        case _:
            return ModelError(f"The reranker {model} sent a reply that violates its protocol.")


def _read_message(body: Any) -> str:
    return str(body.get("message", body) if isinstance(body, dict) else body)
