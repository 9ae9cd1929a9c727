"""A loopback server that speaks Anthropic's Messages API, with faults on demand.

The protocol is that of https://docs.claude.com/en/api/messages and its pages on streaming and errors; what the model
says comes from `tests/wire/answers.py`.
"""

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.wire import faults
from tests.wire.answers import act_on, reply_to
from tests.wire.faults import Json, serve

Fault = Literal[
    "rate_limit",  # 429 with Retry-After
    "server_error",  # 500
    "overloaded",  # 529
    "unauthorized",  # 401
    "forbidden",  # 403
    "context_length",  # 400, prompt is too long
    "invalid",  # 400
    "refusal",  # the reply ends with stop_reason refusal
    "length",  # the reply ends with stop_reason max_tokens
    "silent_length",  # the same, without a word
    "stall_before",  # nothing at all for `stall` seconds
    "stall_within",  # the message's start and one delta, then nothing for `stall` seconds
    "cut",  # the socket closes in the middle of the reply
    "no_finish",  # the stream ends in good order, but stop_reason never came
    "stream_error",  # an error event in the middle of the stream
    "early_stream_error",  # an error event as the first of the stream
    "malformed",  # not JSON
    "empty",  # no content
    "prose",  # words where a tool's input was asked for
    "misfit",  # input that does not fit the tool's schema
]

_REFUSALS: dict[str, tuple[int, str, str]] = {
    "rate_limit": (429, "rate_limit_error", "Number of requests has exceeded your rate limit."),
    "server_error": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
    "unauthorized": (401, "authentication_error", "invalid x-api-key"),
    "forbidden": (403, "permission_error", "Your API key does not have permission to use the specified resource."),
    "context_length": (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    "invalid": (400, "invalid_request_error", "messages.0.content: Input should be a valid list"),
}


@dataclass(kw_only=True)
class Behaviour(faults.Behaviour):
    """Behaviour of the server. Times are in seconds."""

    rate: float = 0.0
    """Tokens a second; 0 is as fast as the socket takes them."""
    replies: list[str] = field(default_factory=list)
    """Literal replies to the next messages, one each; afterwards `answers` replies."""


class AnthropicServer(faults.ModelServer):
    """The running server."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.app = Starlette(
            routes=[
                Route("/v1/messages", self._write, methods=["POST"]),
                Route("/v1/models/{name}", self._describe_model),
            ]
        )

    async def _describe_model(self, request: Request) -> Response:
        name = request.path_params["name"]
        refusal = self._check_headers(request) or self._check_model(name)
        return refusal or JSONResponse({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01"})

    def _check_headers(self, request: Request) -> Response | None:
        if "anthropic-version" not in request.headers:
            return _refuse(400, "invalid_request_error", "anthropic-version: header is required")
        return None if self.behaviour.accepts(request, "x-api-key", "") else _refuse(*_REFUSALS["unauthorized"])

    def _check_model(self, name: str) -> Response | None:
        if self.behaviour.models and name not in self.behaviour.models:
            return _refuse(404, "not_found_error", f"model: {name}")
        return None

    def _check_body(self, body: Json) -> Response | None:
        for required in ("model", "messages", "max_tokens"):
            if required not in body:
                return _refuse(400, "invalid_request_error", f"{required}: Field required")
        if any(message["role"] not in ("user", "assistant") for message in body["messages"]):
            return _refuse(400, "invalid_request_error", "messages: Input should be 'user' or 'assistant'")
        return self._check_model(body["model"])

    async def _write(self, request: Request) -> Response:
        body = await request.json()
        self.requests.append(body)
        behaviour = self.behaviour
        fault = behaviour.take_fault()
        if refusal := self._check_headers(request) or self._check_body(body):
            return refusal
        if fault == "stall_before":
            await asyncio.sleep(behaviour.stall)
        if fault == "malformed":
            return Response('{"content": [{"te', media_type="application/json")
        if fault in _REFUSALS:
            wait = {"retry-after": str(behaviour.retry_after)} if fault in ("rate_limit", "server_error") else {}
            return _refuse(*_REFUSALS[fault], headers=wait)
        reply = _Reply(body, self._say(body, fault), fault)
        if body.get("stream"):
            return StreamingResponse(self._stream(reply, fault), media_type="text/event-stream")
        return JSONResponse({**reply.opening(), "content": reply.content(), "stop_reason": reply.stop_reason()})

    def _say(self, body: Json, fault: Fault | None) -> str:
        if self.behaviour.replies:
            return self.behaviour.replies.pop(0)
        if fault == "prose":
            return "Certainly! Here you are."
        tools = body.get("tools")
        if _may_choose(body):
            offered = [{"name": tool["name"], "parameters": tool["input_schema"]} for tool in tools or []]
            calls = act_on(_flatten(body), offered)
            return json.dumps(calls[0]["arguments"]) if calls else reply_to(_flatten(body), None)
        if tools and fault == "misfit":
            return json.dumps({"unexpected": True})
        return reply_to(_flatten(body), tools[0]["input_schema"] if tools else None)

    async def _stream(self, reply: "_Reply", fault: Fault | None) -> AsyncIterator[bytes]:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        try:
            if fault == "early_stream_error":
                yield _event(error)
                return
            yield _event({"type": "message_start", "message": reply.opening()})
            block = {"type": "text", "text": ""}
            yield _event({"type": "content_block_start", "index": 0, "content_block": block})
            yield _event({"type": "ping"})
            for position, token in enumerate(reply.tokens):
                if self.behaviour.rate:
                    await asyncio.sleep(1 / self.behaviour.rate)
                delta = {"type": "text_delta", "text": token}
                yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
                if fault == "stall_within":
                    await asyncio.sleep(self.behaviour.stall)
                if position == len(reply.tokens) // 2:
                    if fault == "cut":
                        raise ConnectionAbortedError
                    if fault == "stream_error":
                        yield _event(error)
                        return
            yield _event({"type": "content_block_stop", "index": 0})
            if fault != "no_finish":
                delta = {"stop_reason": reply.stop_reason(), "stop_sequence": None}
                yield _event({"type": "message_delta", "delta": delta, "usage": reply.usage()})
            yield _event({"type": "message_stop"})
        except (asyncio.CancelledError, GeneratorExit):
            self.abandoned.set()
            raise


class _Reply:
    def __init__(self, body: Json, text: str, fault: Fault | None) -> None:
        self._body = body
        self._fault = fault
        # Words instead of a tool's input come where the choice of a tool is the model's, as with some gateways.
        self._uses_tool = "tools" in body and text.startswith("{")
        if fault in ("length", "refusal"):
            text = text[: len(text) // 2]
        self._text = "" if fault in ("silent_length", "empty") else text
        self.tokens = re.findall(r"\s*\S{1,5}|\s+", self._text)

    def opening(self) -> Json:
        return {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": self._body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self.usage(),
        }

    def content(self) -> list[Json]:
        if not self._text:
            return []
        if self._uses_tool and self._fault not in ("length", "refusal"):
            tool = self._body["tools"][0]["name"]
            return [{"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.loads(self._text)}]
        return [{"type": "text", "text": self._text}]

    def stop_reason(self) -> str:
        if self._fault in ("length", "silent_length"):
            return "max_tokens"
        if self._fault == "refusal":
            return "refusal"
        return "tool_use" if self._uses_tool else "end_turn"

    def usage(self) -> Json:
        sent = sum(len(message["content"]) // 4 + 4 for message in _flatten(self._body))
        return {
            "input_tokens": sent,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": len(self.tokens),
        }


def _may_choose(body: Json) -> bool:
    """Return True where tools are offered and none of them is demanded."""
    return "tools" in body and body.get("tool_choice", {}).get("type", "auto") == "auto"


def _flatten(body: Json) -> list[Json]:
    """The messages with plain text for content, the system's first."""
    spoken = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    return [
        {
            **message,
            "role": "tool" if _holds_results(message) else message["role"],
            "content": _join(message["content"]),
        }
        for message in [*spoken, *body["messages"]]
    ]


def _holds_results(message: Json) -> bool:
    return isinstance(message["content"], list) and any(b["type"] == "tool_result" for b in message["content"])


def _join(content: str | list[Json]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text") or _join(block.get("content", "")) for block in content)


def _event(data: Json) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _refuse(status: int, kind: str, message: str, *, headers: dict[str, str] | None = None) -> Response:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return JSONResponse(error, status_code=status, headers=headers)


def serve_anthropic(**behaviour: Any) -> AbstractAsyncContextManager[AnthropicServer]:
    """A server for one test. Keyword arguments are fields of `Behaviour`."""
    return serve(AnthropicServer(Behaviour(**behaviour)))
