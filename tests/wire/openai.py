"""A loopback server that speaks OpenAI's chat completions protocol, with faults on demand, and its embeddings
(`tests/wire/embeddings.py`).

The protocol is that of https://platform.openai.com/docs/api-reference/chat; what the model says comes from
`tests/wire/answers.py`. In a test::

    async with serve_openai(faults=["rate_limit"]) as server:
        ...  # server.base_url, server.requests, server.behaviour

As a process: ``python -m tests.wire.openai --port 8100 --ttft 200ms --rate 50``; `PUT /behaviour` changes fields of
`Behaviour` while it runs, `GET /requests` returns what it has received and `GET /spoke` when it replied.
"""

import argparse
import asyncio
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from app.adapters.chat.tokens import O200kCounter
from tests.wire import embeddings, faults
from tests.wire.answers import act_on, reply_to
from tests.wire.embeddings import REFUSALS, EmbeddingsServer, fail, refuse
from tests.wire.faults import Json, serve
from tests.wire.habits import Habit

Fault = Literal[
    "rate_limit",  # 429 with Retry-After
    "no_quota",  # 429 that no retry will cure
    "server_error",  # 500
    "unauthorized",  # 401
    "forbidden",  # 403
    "context_length",  # 400 context_length_exceeded
    "policy",  # 400 content_filter, as Azure sends it
    "content_filter",  # the reply ends with finish_reason content_filter
    "refusal",  # a message with `refusal` and no content
    "length",  # the reply ends with finish_reason length
    "silent_length",  # the same, without a word: a reasoning model that thought too long
    "stall_before",  # nothing at all for `stall` seconds
    "stall_within",  # headers and one delta, then nothing for `stall` seconds
    "cut",  # the socket closes in the middle of the reply
    "no_finish",  # the stream ends in good order, but finish_reason never came
    "early_stream_error",  # an error object as the first of the stream
    "stream_error",  # an error object in the middle of the stream
    "malformed",  # not JSON
    "empty",  # no choices
    "prose",  # words where JSON was asked for
    "misfit",  # JSON that does not fit the schema
    "misfit_call",  # a tool call whose arguments are no JSON
]

# Keywords that strict structured outputs refuse. https://platform.openai.com/docs/guides/structured-outputs
_REFUSED_KEYWORDS = ("default", "minLength", "maxLength")
_STREAM_ERROR = {"error": {"message": "The server had an error.", "type": "server_error"}}


@dataclass(kw_only=True)
class Behaviour(faults.Behaviour):
    """Behaviour of the server. Times are in seconds."""

    ttft: float = 0.0
    """Before the first token."""
    rate: float = 0.0
    """Tokens a second; 0 is as fast as the socket takes them."""
    length: int = 0
    """Streamed replies are repeated, or cut, to so many tokens; 0: they are as long as they are."""
    models: tuple[str, ...] = ()
    """Models that `/models` lists and the server has; empty: nothing is listed and any name is served."""
    lists_models: bool = True
    """False: `/models` is 404, as on some local servers."""
    formats: tuple[str, ...] = ("json_schema", "json_object")
    """The response formats that are understood; others are 400."""
    ignores_format: bool = False
    """Response formats are accepted and ignored, as some local servers do."""
    fixed_temperature: bool = False
    """Refuse any temperature except 1 with status 400, as reasoning models do."""
    knows_completion_tokens: bool = True
    """False: `max_completion_tokens` is 422, as on servers that only know its old name."""
    sees: bool = True
    """False: messages with pictures are 400."""
    sends_usage: bool = True
    counts_in_every_chunk: bool = False
    """Usage comes with each chunk, of the whole and not of the chunk, as from Gemini's compatible endpoint."""
    model_faults: dict[str, Fault] = field(default_factory=dict)
    """Fault of every chat request to the model of this name."""
    window: int = 0
    """Prompts of more tokens are 400 context_length_exceeded; 0: any fits."""
    model_replies: dict[str, str] = field(default_factory=dict)
    """Reply of the model of this name to everything."""
    tool_calls: list[list[Json]] | None = None
    """Calls of tools that it makes in the next requests that offer any; then it is done. None: as `act_on` says."""
    send: Callable[[Json], AsyncIterator[bytes] | None] | None = None
    """Returns the body of the reply to a request, however odd; None: the usual one."""
    habit: Habit | None = None
    """How chat requests are refused and answered; None: as OpenAI does."""
    replies: list[str] = field(default_factory=list)
    """Literal replies to the next chat requests, one each; afterwards `answers` replies."""


class OpenAIServer(faults.ModelServer):
    """The running server."""

    def __init__(self, behaviour: Behaviour) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.spoke: list[float | None] = []
        """When each of them had its reply, or the first token of its stream; seconds of the monotonic clock."""
        self.hold: Callable[[Json], Awaitable[None]] | None = None
        """Awaited with each chat request before it is answered."""
        self.embeddings = EmbeddingsServer(embeddings.Behaviour(api_key=behaviour.api_key))
        self.app = Starlette(
            routes=[
                *self.embeddings.routes,
                Route("/v1/chat/completions", self._complete, methods=["POST"]),
                Route("/v1/models", self._list_models),
                Route("/behaviour", self._behave, methods=["PUT"]),
                Route("/requests", self._report),
                Route("/spoke", self._report_times),
            ]
        )

    async def _behave(self, request: Request) -> Response:
        for name, value in (await request.json()).items():
            if name not in {f.name for f in fields(Behaviour)}:
                return refuse(400, f"There is no behaviour {name!r}.")
            setattr(self.behaviour, name, value)
        return JSONResponse({})

    async def _report(self, request: Request) -> Response:
        return JSONResponse(self.requests)

    async def _report_times(self, request: Request) -> Response:
        return JSONResponse(self.spoke)

    async def _list_models(self, request: Request) -> Response:
        if refusal := self._check_key(request):
            return refusal
        if self.behaviour.fault == "stall_before":
            await asyncio.sleep(self.behaviour.stall)
        if not self.behaviour.lists_models:
            return refuse(404, "Not found.")
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in self.behaviour.models]
        return JSONResponse({"object": "list", "data": listed})

    def _check_key(self, request: Request) -> Response | None:
        return None if self.behaviour.accepts(request) else refuse(*REFUSALS["unauthorized"])

    async def _complete(self, request: Request) -> Response:
        body = await request.json()
        number = len(self.requests)
        self.requests.append(body)
        self.spoke.append(None)
        self.headers.append(dict(request.headers))
        if self.hold is not None:
            await self.hold(body)
        behaviour = self.behaviour
        if habit := behaviour.habit:
            refused = habit.refuse(body)
            if refused is not None:
                return Response(refused, habit.status, media_type="application/json")
            is_stream = body.get("stream", False) != habit.swaps
            kind = "text/event-stream" if is_stream else "application/json"
            return StreamingResponse(habit.answer(body), media_type=kind)
        fault = behaviour.take_fault()
        fault = fault or behaviour.model_faults.get(str(body.get("model")))
        if behaviour.window and _count_prompt(body) > behaviour.window:
            fault = "context_length"
        odd = behaviour.send(body) if behaviour.send else None
        failing = None if odd else await self._fail_early(fault)
        if refusal := self._check_key(request) or self._check_body(body) or failing:
            return refusal

        if odd is not None:
            kind = "text/event-stream" if body.get("stream") else "application/json"
            return StreamingResponse(odd, 500 if fault == "server_error" else 200, media_type=kind)
        response_format = body.get("response_format") or {}
        schema = response_format.get("json_schema", {}).get("schema")
        if behaviour.ignores_format and response_format:
            fault, schema = "prose", None
        if body["model"] in behaviour.model_replies:
            text = behaviour.model_replies[body["model"]]
        elif behaviour.replies and not (body.get("tools") and behaviour.tool_calls is not None):
            text = behaviour.replies.pop(0)
        else:
            text = "Certainly! Here you are." if fault == "prose" else reply_to(_flatten(body["messages"]), schema)
        offered = [tool["function"] for tool in body.get("tools", [])]
        if offered and behaviour.tool_calls is not None:
            calls = behaviour.tool_calls.pop(0) if behaviour.tool_calls else None
            text = "DONE"
        else:
            calls = act_on(body["messages"], offered) if offered and not behaviour.replies else None
        if fault == "misfit":
            text = json.dumps({"unexpected": True})
        finish = "stop"
        if fault in ("length", "silent_length"):
            finish = "length"
            text = text[: len(text) // 2] if fault == "length" else ""
        if fault == "content_filter":
            finish, text = "content_filter", text[: len(text) // 2]
        reply = _Reply(body["model"], text, finish, _count_prompt(body))
        if body.get("stream"):
            reply.repeat(behaviour.length)
            with_usage = behaviour.sends_usage and bool((body.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(self._stream(number, reply, fault, with_usage), media_type="text/event-stream")
        await asyncio.sleep(behaviour.ttft + (len(reply.tokens) / behaviour.rate if behaviour.rate else 0))
        self.spoke[number] = time.monotonic()
        return _finish_at_once(reply, fault, behaviour.sends_usage, calls or [])

    def _check_body(self, body: Json) -> Response | None:
        if not isinstance(body.get("model"), str) or not body.get("messages"):
            return refuse(400, "You must provide a model and messages.")
        if self.behaviour.models and body["model"] not in self.behaviour.models:
            return refuse(404, f"The model `{body['model']}` does not exist.", "model_not_found")
        if self.behaviour.fixed_temperature and body.get("temperature", 1) != 1:
            message = "Unsupported value: 'temperature' does not support this value with this model."
            return refuse(400, message, "unsupported_value", param="temperature")
        if not self.behaviour.knows_completion_tokens and "max_completion_tokens" in body:
            return refuse(422, "max_completion_tokens: Extra inputs are not permitted")
        if not self.behaviour.sees and "image_url" in json.dumps(body["messages"]):
            return refuse(400, "image input is not supported")
        called: set[str] = set()
        for message in body["messages"]:
            if message["role"] == "tool" and message.get("tool_call_id") not in called:
                return refuse(
                    400, "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                )
            called |= {call["id"] for call in message.get("tool_calls") or []}
        response_format = body.get("response_format")
        if response_format is None or self.behaviour.ignores_format:
            return None
        if response_format["type"] not in self.behaviour.formats:
            return refuse(
                400, f"response_format {response_format['type']!r} is not supported.", param="response_format"
            )
        if response_format["type"] == "json_object":
            if not any("json" in str(message["content"]).lower() for message in body["messages"]):
                return refuse(400, "'messages' must contain the word 'json' to use 'response_format' json_object.")
            return None
        described = json.dumps(response_format["json_schema"]["schema"])
        for keyword in _REFUSED_KEYWORDS:
            if f'"{keyword}":' in described:
                return refuse(400, f"Invalid schema for response_format: '{keyword}' is not permitted.")
        if response_format["json_schema"].get("strict") and '"additionalProperties": false' not in described:
            return refuse(400, "Invalid schema for response_format: 'additionalProperties' must be false.")
        return None

    async def _fail_early(self, fault: Fault | None) -> Response | None:
        if fault == "stall_before":
            await asyncio.sleep(self.behaviour.stall)
        return fail(fault, self.behaviour.retry_after)

    async def _stream(
        self, number: int, reply: "_Reply", fault: Fault | None, with_usage: bool
    ) -> AsyncIterator[bytes]:
        behaviour = self.behaviour
        try:
            await asyncio.sleep(behaviour.ttft)
            if fault == "early_stream_error":
                yield _event(_STREAM_ERROR)
                return
            if fault == "empty":
                yield _event(reply.chunk([]))
                yield b"data: [DONE]\n\n"
                return
            yield _event(reply.chunk([reply.choice({"role": "assistant", "content": ""})]))
            start = self.spoke[number] = time.monotonic()
            for position, token in enumerate(reply.tokens):
                if behaviour.rate:
                    await asyncio.sleep(max(0.0, start + position / behaviour.rate - time.monotonic()))
                counted = {"usage": reply.usage()} if behaviour.counts_in_every_chunk else {}
                yield _event({**reply.chunk([reply.choice({"content": token})]), **counted})
                if fault == "stall_within":
                    await asyncio.sleep(behaviour.stall)
                if position == len(reply.tokens) // 2:
                    if fault == "cut":
                        raise ConnectionAbortedError
                    if fault == "stream_error":
                        yield _event(_STREAM_ERROR)
                        return
            if fault == "refusal":
                yield _event(reply.chunk([reply.choice({"refusal": "I cannot help with that."})]))
            if fault != "no_finish":
                yield _event(reply.chunk([reply.choice({}, finish=reply.finish)]))
            if with_usage:
                yield _event({**reply.chunk([]), "usage": reply.usage()})
            yield b"data: [DONE]\n\n"
        except (asyncio.CancelledError, GeneratorExit):
            self.abandoned.set()
            raise


@dataclass
class _Reply:
    model: str
    text: str
    finish: str
    prompt_tokens: int

    def __post_init__(self) -> None:
        self.id = f"chatcmpl-{uuid.uuid4().hex}"
        self.tokens = re.findall(r"\s*\S{1,5}|\s+", self.text)

    def repeat(self, length: int) -> None:
        if length:
            # Whole copies: a text that breaks off within a sentence is told as cut. With numbers: one that only repeats
            # itself is ended.
            copies = max(1, length // (len(self.tokens) + 1))
            self.tokens = [token for copy in range(copies) for token in (*self.tokens, f" ({copy}) ")]

    def usage(self) -> Json:
        written = _TOKENS.count(self.text)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": written,
            "total_tokens": self.prompt_tokens + written,
            "prompt_tokens_details": {"cached_tokens": 0},
        }

    def chunk(self, choices: list[Json]) -> Json:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": self.model,
            "choices": choices,
        }

    def choice(self, delta: Json, finish: str | None = None) -> Json:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _finish_at_once(reply: _Reply, fault: Fault | None, with_usage: bool, calls: list[Json]) -> Response:
    message: Json = {"role": "assistant", "content": reply.text, "refusal": None}
    if calls and reply.finish == "stop":
        reply.finish = "tool_calls"
        message["content"] = None
        message["tool_calls"] = [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": "cut short" if fault == "misfit_call" else json.dumps(call["arguments"]),
                },
            }
            for number, call in enumerate(calls, 1)
        ]
    if fault == "refusal":
        message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    body = {**reply.chunk([] if fault == "empty" else [choice]), "object": "chat.completion"}
    if with_usage:
        body["usage"] = reply.usage()
    return JSONResponse(body)


_TOKENS = O200kCounter()


def _flatten(messages: list[Json]) -> list[Json]:
    """The messages with plain text for content, without their pictures."""
    return [
        message | {"content": "".join(part.get("text", "") for part in message["content"])}
        if isinstance(message["content"], list)
        else message
        for message in messages
    ]


def _count_prompt(body: Json) -> int:
    """The messages with four tokens each for their frame, and the schema of the reply, which is prompt too."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    counted = sum(_TOKENS.count(str(message["content"])) + 4 for message in _flatten(body["messages"]))
    return counted + (_TOKENS.count(json.dumps(schema)) if schema else 0)


def event_of(delta: Json, finish: str | None = None) -> bytes:
    """Return one chunk of a stream, for `Behaviour.send`."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "x", "choices": [choice]})


def _event(data: Json) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def serve_openai(**behaviour: Any) -> AbstractAsyncContextManager[OpenAIServer]:
    """A server for one test. Keyword arguments are fields of `Behaviour`."""
    return serve(OpenAIServer(Behaviour(**behaviour)), "/v1")


def _seconds(text: str) -> float:
    return float(text[:-2]) / 1000 if text.endswith("ms") else float(text.rstrip("s"))


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="OpenAI's chat protocol on loopback")
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--ttft", type=_seconds, default=0.0, help="before the first token: 200ms or 0.2s")
    parser.add_argument("--rate", type=float, default=0.0, help="tokens a second; 0 is as fast as possible")
    parser.add_argument("--length", type=int, default=0, help="tokens that a streamed reply has")
    parser.add_argument("--fault", choices=get_args(Fault), default=None, help="for every request")
    given = parser.parse_args()
    server = OpenAIServer(Behaviour(ttft=given.ttft, rate=given.rate, length=given.length, fault=given.fault))
    uvicorn.run(server.app, host="127.0.0.1", port=given.port, log_level="warning", ws="none", lifespan="off")


if __name__ == "__main__":
    main()
