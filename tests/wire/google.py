"""A loopback server that speaks the Gemini API, with faults on demand.

The protocol is that of https://ai.google.dev/api/generate-content, its errors those of
https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto; what the model says comes from
`tests/wire/answers.py`.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.wire import faults
from tests.wire.answers import act_on, reply_to
from tests.wire.faults import Json, serve

Fault = Literal[
    "rate_limit",  # 429 with RetryInfo
    "busy_gateway",  # 429 of something in between: a header, and no JSON
    "server_error",  # 500
    "overloaded",  # 503 with RetryInfo
    "bad_key",  # 400, as Google says of a key that it does not know
    "unauthorized",  # 401
    "forbidden",  # 403
    "unknown_model",  # 404
    "context_length",  # 400, too many tokens
    "invalid",  # 400
    "blocked",  # the prompt is refused: no candidate
    "safety",  # the reply ends with finishReason SAFETY
    "recitation",  # ... RECITATION
    "length",  # ... MAX_TOKENS
    "silent_length",  # the same, without a word
    "stall_before",  # nothing at all for `stall` seconds
    "stall_within",  # one chunk, then nothing for `stall` seconds
    "cut",  # the socket closes in the middle of the reply
    "no_finish",  # the stream ends in good order, but finishReason never came
    "stream_error",  # an error in the middle of the stream
    "early_stream_error",  # an error as the first of the stream
    "malformed",  # not JSON
    "empty",  # no content
    "prose",  # words where a function was to be called
    "misfit",  # arguments that do not fit the function's schema
]

_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_REFUSALS: dict[str, tuple[int, str, str]] = {
    "rate_limit": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan."),
    "server_error": (500, "INTERNAL", "An internal error has occurred."),
    "overloaded": (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "bad_key": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    "unauthorized": (401, "UNAUTHENTICATED", "Request had invalid authentication credentials."),
    "forbidden": (403, "PERMISSION_DENIED", "Your project has been denied access."),
    "unknown_model": (404, "NOT_FOUND", "models/gemini-9 is not found for API version v1beta."),
    "context_length": (
        400,
        "INVALID_ARGUMENT",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    ),
    "invalid": (400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
}
_ENDINGS = {"safety": "SAFETY", "recitation": "RECITATION", "length": "MAX_TOKENS", "silent_length": "MAX_TOKENS"}


@dataclass(kw_only=True)
class Behaviour(faults.Behaviour):
    """Behaviour of the server. Times are in seconds."""

    rate: float = 0.0
    """Tokens a second; 0 is as fast as the socket takes them."""
    thoughts: int = 0
    """Tokens that are thought before the first word."""
    cached: int = 0
    """Tokens of the prompt that were cached."""


class GoogleServer(faults.ModelServer):
    """The running server."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.app = Starlette(
            routes=[
                Route("/v1beta/models/{name}", self._describe_model, methods=["GET"]),
                Route("/v1beta/models/{call}", self._generate, methods=["POST"]),
            ]
        )

    async def _describe_model(self, request: Request) -> Response:
        name = request.path_params["name"]
        model = {"name": f"models/{name}", "version": "001", "displayName": name, "inputTokenLimit": 1048576}
        return self._check_request(request, name) or JSONResponse(model)

    def _check_request(self, request: Request, model: str) -> Response | None:
        expected = self.behaviour.api_key
        if expected is not None and request.headers.get("x-goog-api-key") != expected:
            return self._refuse("bad_key")
        if self.behaviour.models and model not in self.behaviour.models:
            return self._refuse("unknown_model")
        return None

    def _refuse(self, fault: str) -> Response:
        return JSONResponse({"error": self._describe_error(fault)}, status_code=_REFUSALS[fault][0])

    def _describe_error(self, fault: str) -> Json:
        code, status, message = _REFUSALS[fault]
        details: list[Json] = [_KEY] if fault == "bad_key" else []
        if fault in ("rate_limit", "overloaded"):
            delay = f"{self.behaviour.retry_after}s"
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
        return {"code": code, "message": message, "status": status, "details": details}

    async def _generate(self, request: Request) -> Response:
        model, _, method = request.path_params["call"].partition(":")
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        behaviour = self.behaviour
        fault = behaviour.take_fault()
        if refusal := self._check_request(request, model):
            return refusal
        if any(content["role"] not in ("user", "model") or not content["parts"] for content in body["contents"]):
            return self._refuse("invalid")
        if fault == "stall_before":
            await asyncio.sleep(behaviour.stall)
        if fault == "busy_gateway":
            return Response("Slow down!", status_code=429, headers={"retry-after": str(behaviour.retry_after)})
        if fault == "malformed":
            return Response('data: {"candidates": [{"con\n\n', media_type="text/event-stream")
        if fault in _REFUSALS:
            return self._refuse(fault)
        reply = _Reply(body, model, behaviour, fault)
        if method == "streamGenerateContent":
            return StreamingResponse(self._stream(reply, fault), media_type="text/event-stream")
        if fault == "blocked":
            return JSONResponse(reply.blocked())
        return JSONResponse(reply.chunk(reply.parts(), len(reply.tokens), reply.finish()))

    async def _stream(self, reply: "_Reply", fault: Fault | None) -> AsyncIterator[bytes]:
        try:
            if fault == "early_stream_error":
                yield _event({"error": self._describe_error("overloaded")})
                return
            if fault == "blocked":
                yield _event(reply.blocked())
                return
            for position, token in enumerate(reply.tokens, 1):
                if self.behaviour.rate:
                    await asyncio.sleep(1 / self.behaviour.rate)
                yield _event(reply.chunk([{"text": token}], position))
                if fault == "stall_within":
                    await asyncio.sleep(self.behaviour.stall)
                if position > len(reply.tokens) // 2:
                    if fault == "cut":
                        raise ConnectionAbortedError
                    if fault == "stream_error":
                        yield _event({"error": self._describe_error("overloaded")})
                        return
            if fault != "no_finish":
                parts = [{"text": ""}] if reply.tokens else []
                yield _event(reply.chunk(parts, len(reply.tokens), reply.finish()))
        except (asyncio.CancelledError, GeneratorExit):
            self.abandoned.set()
            raise


class _Reply:
    def __init__(self, body: Json, model: str, behaviour: Behaviour, fault: Fault | None) -> None:
        self._model = model
        self._behaviour = behaviour
        self._fault = fault
        self._messages = _flatten(body)
        declared = [tool for tools in body.get("tools", []) for tool in tools["functionDeclarations"]]
        self._function = declared[0] if declared else None
        forced = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode") == "ANY"
        self._calls: list[Json] | None = None
        if declared and not forced:
            offered = [{**tool, "parameters": _lower_types(tool["parameters"])} for tool in declared]
            self._calls = act_on(self._messages, offered)
            self._function = self._function if self._calls else None
        text = self._say()
        if fault in ("length", "safety", "recitation"):
            text = text[: len(text) // 2]
        self._text = "" if fault in ("silent_length", "empty") else text
        self.tokens = re.findall(r"\s*\S{1,5}|\s+", self._text)

    def _say(self) -> str:
        if self._fault == "prose":
            return "Certainly! Here you are."
        if self._function is None:
            return reply_to(self._messages, None)
        if self._calls:
            return json.dumps(self._calls[0]["arguments"])
        if self._fault == "misfit":
            return json.dumps({"unexpected": True})
        return reply_to(self._messages, _lower_types(self._function["parameters"]))

    def parts(self) -> list[Json]:
        if not self._text:
            return []
        if self._function is not None and self._fault not in ("prose", "length", "safety", "recitation"):
            return [{"functionCall": {"name": self._function["name"], "args": json.loads(self._text)}}]
        return [{"text": self._text}]

    def finish(self) -> str:
        return _ENDINGS.get(self._fault or "", "STOP")

    def chunk(self, parts: list[Json], written: int, finish: str | None = None) -> Json:
        """A response. `usageMetadata` is of all that has come so far."""
        candidate: Json = {"index": 0, "content": {"role": "model", **({"parts": parts} if parts else {})}}
        if finish:
            candidate["finishReason"] = finish
        return {**self._frame(written), "candidates": [candidate]}

    def blocked(self) -> Json:
        return {**self._frame(0), "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}

    def _frame(self, written: int) -> Json:
        sent = sum(len(message["content"]) // 4 + 4 for message in self._messages)
        usage = {"promptTokenCount": sent, "totalTokenCount": sent + written + self._behaviour.thoughts}
        counts = {
            "candidatesTokenCount": written,
            "thoughtsTokenCount": self._behaviour.thoughts,
            "cachedContentTokenCount": self._behaviour.cached,
        }
        # Google leaves out zero values.
        usage |= {name: count for name, count in counts.items() if count}
        return {"usageMetadata": usage, "modelVersion": self._model, "responseId": uuid.uuid4().hex}


def _flatten(body: Json) -> list[Json]:
    """The messages as `answers` knows them, the system's first."""
    system = body.get("systemInstruction")
    contents = [{**system, "role": "system"}, *body["contents"]] if system else body["contents"]
    return [
        {
            "role": "tool" if any("functionResponse" in part for part in content["parts"]) else content["role"],
            "content": "\n".join(
                part.get("text") or str(part.get("functionResponse", {}).get("response", {}).get("output", ""))
                for part in content["parts"]
            ),
        }
        for content in contents
    ]


def _lower_types(schema: Json) -> Json:
    """The schema in JSON Schema's words: Google's writes its types in capitals."""
    return json.loads(json.dumps(schema), object_hook=_lower_type)  # type: ignore[no-any-return]


def _lower_type(schema: Json) -> Json:
    return {**schema, "type": schema["type"].lower()} if isinstance(schema.get("type"), str) else schema


def _event(data: Json) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()


def serve_google(**behaviour: Any) -> AbstractAsyncContextManager[GoogleServer]:
    """A server for one test. Keyword arguments are fields of `Behaviour`."""
    return serve(GoogleServer(Behaviour(**behaviour)))
