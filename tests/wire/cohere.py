"""A loopback server that speaks the second version of Cohere's rerank API, with faults on demand.

The protocol is that of https://docs.cohere.com/v2/reference/rerank and https://docs.cohere.com/reference/errors; how
relevant a document is comes from the words that it shares with the question. In a test::

    async with serve_cohere(faults=["rate_limit"]) as server:
        ...  # server.base_url, server.requests, server.behaviour
"""

import asyncio
import json
import math
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from domain.text.terms import content_words
from tests.wire import faults
from tests.wire.faults import Json, serve

Fault = Literal[
    "rate_limit",  # 429
    "server_error",  # 500
    "overloaded",  # 503
    "no_billing",  # 402
    "stall",  # nothing at all for `stall` seconds
    "cut",  # the socket closes in the middle of the reply
    "malformed",  # not JSON
    "misfit",  # JSON of another shape
    "nan",  # a score that is no number
    "some",  # only the best document, as a server that ignores what it has no window for
    "strange",  # logits, repeated results, and one for a document that was not sent
]

TOKENS_A_DOCUMENT = 500
DOCUMENTS_A_SEARCH = 100
"""A search unit is one question with up to 100 documents; a longer document counts once for each 500 tokens."""


@dataclass(kw_only=True)
class Behaviour(faults.Behaviour):
    """Behaviour of the server. Times are in seconds."""

    models: tuple[str, ...] = ("rerank-v3.5", "rerank-v4.0-fast", "rerank-v4.0-pro")
    """Others are 404."""
    bills: bool = True
    """False: no `meta`, as on servers of one's own."""
    path: str = "/v2/rerank"
    form: Literal["cohere", "voyage", "tei"] = "cohere"
    """How replies are written; TEI's requests have other fields, too."""
    is_logit: bool = False
    """Scores are logits, as from llama.cpp."""
    most: int = 1000
    """Documents that a request may hold."""


class CohereServer(faults.ModelServer):
    """The running server."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.app = Starlette(
            routes=[Route(behaviour.path, self._rerank, methods=["POST"]), Route("/v1/models/{model}", self._describe)]
        )

    async def _describe(self, request: Request) -> Response:
        name = request.path_params["model"]
        if refusal := self._check_key(request) or self._check_model(name):
            return refusal
        return JSONResponse({"name": name, "endpoints": ["rerank"], "finetuned": False, "context_length": 4096})

    def _check_key(self, request: Request) -> Response | None:
        return None if self.behaviour.accepts(request) else _refuse(401, "invalid api token")

    def _check_model(self, name: Any) -> Response | None:
        if name not in self.behaviour.models:
            return _refuse(404, f"model '{name}' not found, make sure the correct model ID was used.")
        return None

    async def _rerank(self, request: Request) -> Response:
        behaviour = self.behaviour
        body: Json = json.loads(await request.body())
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if behaviour.form == "tei" and "texts" not in body:
            return Response("Failed to deserialize the JSON body: missing field `texts` at line 1 column 99", 422)
        body.setdefault("documents", body.get("texts"))
        if len(body["documents"] or ()) > behaviour.most:
            message = f"batch size {len(body['documents'])} > maximum allowed batch size {behaviour.most}"
            return JSONResponse({"error": message, "error_type": "Validation"}, 413)
        fault = behaviour.take_fault()
        if fault == "stall":
            await asyncio.sleep(behaviour.stall)
        refusal = self._check_key(request) or self._refuse_for(fault) or self._check_model(body.get("model"))
        if refusal := refusal or self._check(body):
            return refusal
        if fault == "cut":
            return StreamingResponse(_cut_off(), media_type="application/json")
        if fault == "malformed":
            return Response("<html>Bad gateway</html>", media_type="text/html")
        if fault == "misfit":
            return JSONResponse({"data": [{"document": 0, "score": 1.0}]})
        return self._answer(body, fault)

    def _refuse_for(self, fault: Fault | None) -> Response | None:
        match fault:
            case "rate_limit":
                # In milliseconds, which the SDK reads first, so that tests need not wait for seconds.
                headers = {"retry-after-ms": str(self.behaviour.retry_after * 1000)}
                return _refuse(
                    429, "You are past the per minute request limit, please wait and try again later.", headers
                )
            case "server_error" | "overloaded":
                headers = {"retry-after-ms": str(self.behaviour.retry_after * 1000)}
                return _refuse(500 if fault == "server_error" else 503, "internal server error", headers)
            case "no_billing":
                return _refuse(402, "Please add or update your payment method.")
        return None

    def _check(self, body: Json) -> Response | None:
        if not body.get("documents"):
            return _refuse(400, "invalid request: list of documents must not be empty")
        if not str(body.get("query") or "").strip():
            return _refuse(400, "invalid request: query must not be empty or be only whitespace")
        if not all(isinstance(document, str) for document in body["documents"]):
            return _refuse(422, "invalid type: documents must be strings")
        return None

    def _answer(self, body: Json, fault: Fault | None) -> Response:
        documents: list[str] = body["documents"]
        results = [
            {"index": index, "relevance_score": _judge(body["query"], document)}
            for index, document in enumerate(documents)
        ]
        results.sort(key=lambda result: (-result["relevance_score"], result["index"]))
        results = results[: body.get("top_n") or len(results)]
        if fault == "some":
            results = results[:1]
        if fault == "strange":
            results = [{"index": 0, "relevance_score": 7.5}, {"index": 1, "relevance_score": -3.0}]
            results += [{"index": len(documents) + 4, "relevance_score": 0.9}]
        if self.behaviour.is_logit:
            results = [{**each, "relevance_score": 9 * each["relevance_score"] - 5} for each in results]
        if self.behaviour.form == "tei":
            return JSONResponse([{"index": each["index"], "score": each["relevance_score"]} for each in results])
        if self.behaviour.form == "voyage":
            return JSONResponse({"object": "list", "data": results})
        reply: Json = {"id": str(uuid.uuid4()), "results": results}
        if self.behaviour.bills:
            lengths = [len(f"{body['query']}{document}") / 4 for document in documents]
            pieces = sum(max(1, math.ceil(length / TOKENS_A_DOCUMENT)) for length in lengths)
            units = math.ceil(pieces / DOCUMENTS_A_SEARCH)
            reply["meta"] = {"api_version": {"version": "2"}, "billed_units": {"search_units": units}}
        if fault == "nan":
            results[0]["relevance_score"] = math.nan
            # Starlette's own response refuses what Python's json module, and so many a server, writes.
            return Response(json.dumps(reply), media_type="application/json")
        return JSONResponse(reply)


def _judge(question: str, document: str) -> float:
    """The share of the question's content words that the document has, as a probability that is never certain."""
    wanted, held = set(content_words(question)), set(content_words(document))
    share = len(wanted & held) / len(wanted) if wanted else 0.0
    return round(0.01 + 0.97 * share, 6)


async def _cut_off() -> AsyncIterator[bytes]:
    yield b'{"id": "'
    raise ConnectionAbortedError


def _refuse(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return JSONResponse({"id": str(uuid.uuid4()), "message": message}, status_code=status, headers=headers)


def serve_cohere(**behaviour: Any) -> AbstractAsyncContextManager[CohereServer]:
    """A server for one test. Keyword arguments are fields of `Behaviour`."""
    return serve(CohereServer(Behaviour(**behaviour)))
