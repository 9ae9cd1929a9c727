"""A loopback server that speaks OpenAI's embeddings API and misbehaves on request.

From https://platform.openai.com/docs/api-reference/embeddings/create. The vectors are those of the model that ships,
turned and brought to the dimension asked for: texts that are alike are near each other, and none is near the vector
that the local model itself makes of it.
"""

import asyncio
import base64
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.ports.embedding import Vector
from tests.wire import faults
from tests.wire.faults import Json, serve

Fault = Literal["rate_limit", "no_quota", "server_error", "unauthorized", "stall", "malformed", "short", "one_missing"]

DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072}
"""Dimensions of the served models; others have `Behaviour.dimension`."""


@dataclass(kw_only=True)
class Behaviour(faults.Behaviour):
    """Behaviour of the server; tests change it between requests."""

    dimension: int = 384
    """Dimension of models that OpenAI does not have."""
    takes_dimensions: bool = True
    """False: `dimensions` is 400, as on servers whose models know one dimension only."""
    knows_base64: bool = True
    """False: `encoding_format` is ignored, as some local servers do."""
    most_inputs: int = 2048
    longest_input: int | None = None
    """Characters; a longer text is refused."""
    too_long: tuple[int, str] = (413, "`inputs` must have less than 300 tokens.")
    fails_at: str = ""
    """What fails in a text, as some models do."""
    fails_with: int = 500
    seconds: float = 0.0
    """Before a reply."""


class EmbeddingsServer(faults.ModelServer):
    """The route and what it was asked."""

    def __init__(self, behaviour: Behaviour, embedder: OnnxEmbedder | None = None) -> None:
        """Without `embedder`, the model is loaded for the first request."""
        super().__init__()
        self.behaviour = behaviour
        self.served: list[str] = []
        """Every text that was answered with a vector, as often as it was."""
        self.stalled = asyncio.Event()
        """Set when a request is kept waiting."""
        self._embedder = embedder
        self.routes = [Route("/v1/embeddings", self._embed, methods=["POST"])]
        self.app = Starlette(routes=self.routes)

    async def _embed(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        behaviour = self.behaviour
        fault = behaviour.take_fault()
        if not self.behaviour.accepts(request):
            fault = "unauthorized"
        if fault == "stall":
            self.stalled.set()
        await asyncio.sleep(behaviour.stall if fault == "stall" else behaviour.seconds)
        if refusal := fail(fault, behaviour.retry_after) or self._check(body):
            return refusal
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        native = DIMENSIONS.get(body["model"], behaviour.dimension)
        dimension = body.get("dimensions", native) - (fault == "short")
        if self._embedder is None:
            self._embedder = await asyncio.to_thread(_load)
        vectors = await self._embedder.embed_passages(texts) @ _turn(dimension)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        self.served += texts
        as_base64 = behaviour.knows_base64 and body.get("encoding_format", "float") == "base64"
        data = [
            {"object": "embedding", "index": index, "embedding": _encode(vector) if as_base64 else vector.tolist()}
            for index, vector in enumerate(vectors)
        ]
        if fault == "one_missing":
            del data[0]
        tokens = sum(len(text) // 4 + 1 for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return JSONResponse({"object": "list", "data": data[::-1], "model": body["model"], "usage": usage})

    def _check(self, body: Json) -> Response | None:
        texts = [body["input"]] if isinstance(body.get("input"), str) else body.get("input")
        if not isinstance(body.get("model"), str) or not isinstance(texts, list) or not texts:
            return refuse(400, "you must provide a model parameter and an input")
        if any(not isinstance(text, str) or not text for text in texts):
            return refuse(400, "'$.input' is invalid: it cannot hold an empty string.")
        if len(texts) > self.behaviour.most_inputs:
            problem = f"List should have at most {self.behaviour.most_inputs} items after validation"
            return JSONResponse({"detail": [{"loc": ["body", "input"], "msg": problem}]}, 422)
        if self.behaviour.fails_at and any(self.behaviour.fails_at in text for text in texts):
            wait = {"retry-after": str(self.behaviour.retry_after)}
            said = "failed to encode response: json: unsupported value: NaN"
            return refuse(self.behaviour.fails_with, said, headers=wait)
        longest = self.behaviour.longest_input
        if longest is not None and any(len(text) > longest for text in texts):
            status, said = self.behaviour.too_long
            return JSONResponse({"error": said, "error_type": "Validation"}, status)
        if "dimensions" in body:
            if not self.behaviour.takes_dimensions:
                return refuse(400, "This model does not support specifying dimensions.")
            if not 1 <= body["dimensions"] <= DIMENSIONS.get(body["model"], 4096):
                return refuse(400, "Invalid value for 'dimensions'.")
        return None


@cache
def _load() -> OnnxEmbedder:
    return OnnxEmbedder.load()


@cache
def _turn(dimension: int) -> Vector:
    """Shape (384, dimension): spreads the model's values over the dimensions, at random but always the same."""
    drawn = np.random.default_rng(dimension).standard_normal((OnnxEmbedder.dimension, dimension))
    return drawn.astype(np.float32)


def _encode(vector: Vector) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


REFUSALS = {
    "rate_limit": (429, "Rate limit reached for requests.", "rate_limit_exceeded"),
    "no_quota": (429, "You exceeded your current quota.", "insufficient_quota"),
    "server_error": (500, "The server had an error while processing your request.", "server_error"),
    "unauthorized": (401, "Incorrect API key provided.", "invalid_api_key"),
    "forbidden": (403, "You are not allowed to use this model.", "forbidden"),
    "context_length": (400, "This model's maximum context length is 10 tokens.", "context_length_exceeded"),
    "policy": (400, "The prompt triggered the content management policy.", "content_filter"),
}
"""Status, message and code of the faults that are refusals, of chats too."""


def fail(fault: str | None, retry_after: float) -> Response | None:
    """Reply as a server with this fault does before it looks at what it is asked; None: it looks."""
    if fault == "malformed":
        return Response('{"data": [{"emb', media_type="application/json")
    if fault not in REFUSALS:
        return None
    status, message, code = REFUSALS[fault]
    return refuse(status, message, code, headers={"retry-after": str(retry_after)})


def refuse(
    status: int,
    message: str,
    code: str | None = None,
    *,
    param: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Make an error of OpenAI's API."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def serve_embeddings(embedder: OnnxEmbedder, **behaviour: Any) -> AbstractAsyncContextManager[EmbeddingsServer]:
    """A server for one test. Keyword arguments are fields of `Behaviour`."""
    return serve(EmbeddingsServer(Behaviour(**behaviour), embedder), "/v1")
