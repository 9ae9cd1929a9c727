"""Language models that speak OpenAI's chat API: OpenAI itself and compatible servers.

Calls go through `langchain_openai`, so that LangChain callbacks and LangSmith see every one of them. Importing this
module costs 0.7 s: import it where a model is configured, not at the top of a module that always runs.

Servers differ in the request parameters that they accept and in the JSON formats that they understand. The adapter
learns both from their refusals and remembers them per model.
"""

import asyncio
import copy
import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx2
import openai
import orjson
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.utils.function_calling import convert_to_openai_function
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from app.adapters.bounded_http import OversizedResponse
from app.adapters.chat.langchain import (
    JUDGEMENT_TOKENS,
    LangChainChat,
    describe_misfit,
    describe_schema,
    read_retry_after,
)
from app.adapters.chat.providers import CHECK_SECONDS
from app.adapters.prices import PriceTable, read_prices
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelRejectedKey,
    ModelUnavailable,
)
from domain.ports.models import Schema

logger = logging.getLogger("askgraph.models")

# Models that reason before they write. They accept no temperature, and their reasoning counts as output.
_REASONS = re.compile(r"(gpt-5(-mini|-nano)?|o\d(-mini|-pro)?)(-\d{4}-\d{2}-\d{2})?")
_REASONING_TOKENS = 2000

# Ways of asking for JSON, best first: constrained by the schema, constrained to JSON, asked nicely.
_FORMATS = ("json_schema", "json_object", "text")

# Strict mode refuses some of these, fine-tuned models the others; pydantic checks them when the reply has come.
# https://platform.openai.com/docs/guides/structured-outputs
_CONSTRAINTS = {
    "default", "format", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern",
}  # fmt: skip

LONGEST_LINE = 1_000_000
"""Bytes of one line of a stream, which is one chunk."""

_IGNORED = 3
"""Replies in prose after which the format counts as ignored. One may be a slip of the model. Chosen."""

_PASSING = (408, 409, 429)
"""Statuses below 500 after which asking again may help."""

_CONTEXT_EXCEEDED = re.compile(r"context.?(length|size|window)", re.IGNORECASE)
_FORMAT_REFUSED = re.compile(r"response.?format|json.?schema|json.?object|structured output|grammar", re.IGNORECASE)
_UNUSABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that the SDK and LangChain raise for a reply that violates the protocol."""
_REJECTED = "The language model's provider did not accept the API key. Check OPENAI_API_KEY."


@dataclass(slots=True)
class _Habits:
    """Facts that the adapter has learnt about a server and its model."""

    format: int = 0
    """Index in `_FORMATS` of the best format that the server understands."""
    prose: int = 0
    """Replies in prose, one after the other, where JSON was asked for."""
    usual: int | None = None
    """The format to return to, while a repair is asked for without one."""
    refused: set[str] = field(default_factory=set)
    """Parameters that the server refuses."""


class OpenAIChat(LangChainChat):
    """One model. Construct it once and keep it: its clients cost 50 ms and hold the connections."""

    client: ChatOpenAI
    caught = (openai.OpenAIError, httpx2.HTTPError, TimeoutError, *_UNUSABLE)

    def __init__(
        self,
        name: str,
        *,
        api_key: str,
        base_url: str | None,
        timeout: float,
        http: httpx2.AsyncClient,
        prices: PriceTable | None = None,
    ) -> None:
        # The base class retries, because it knows how long a user may wait; the SDK sleeps for up to two minutes.
        self.server = openai.AsyncOpenAI(
            api_key=api_key, base_url=base_url, timeout=timeout, max_retries=0, http_client=http
        )
        client = ChatOpenAI(
            model=name,
            api_key=SecretStr(api_key),
            base_url=base_url,
            stream_usage=True,
            use_responses_api=False,
            root_async_client=self.server,
            async_client=_PlainCompletions(self.server),
            # `stream` bounds the wait for each chunk itself; the library would create a task for each.
            stream_chunk_timeout=0,
        )
        super().__init__(name, client, timeout=timeout, prices=prices or read_prices(), key="OPENAI_API_KEY")
        self._effort = "minimal"
        self._habits = _Habits()

    def with_effort(self, effort: str) -> "OpenAIChat":
        """Return a copy with another reasoning effort, which models that do not reason ignore. The copy shares the
        connections, the circuit breaker and what was learnt."""
        other = copy.copy(self)
        other._effort = effort
        return other

    async def check(self) -> str | None:
        """Check against the server's list of models; some servers have none."""
        probe = self.server.with_options(timeout=CHECK_SECONDS)
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                listed = {model.id async for model in await probe.models.list()}
        except openai.AuthenticationError:
            return _REJECTED
        except (openai.APIConnectionError, TimeoutError):
            return f"The language model's server at {self.server.base_url} does not answer. Check OPENAI_BASE_URL."
        except (openai.OpenAIError, *_UNUSABLE):
            return None
        if listed and not listed & {self.name, f"{self.name}:latest"}:
            some = ", ".join(sorted(listed)[:5])
            return f"The server at {self.server.base_url} does not list a model {self.name!r}; it lists {some}."
        return None

    def takes_temperature(self) -> bool:
        known = _REASONS.fullmatch(self.name) or "temperature" in self._habits.refused
        return not known and super().takes_temperature()

    async def _request(self, prompt: list[BaseMessage], schema: type[Schema]) -> AIMessage:
        """Request one reply in the best format that the server understands."""
        while True:
            way = self._habits.format
            options: dict[str, Any] = {"temperature": 0.0, "max_tokens": JUDGEMENT_TOKENS}
            reply_format: dict[str, Any] | None = None
            asked = prompt
            if _FORMATS[way] == "json_schema":
                reply_format = _strict_format(schema)
            else:
                asked = _instruct(prompt, describe_schema(schema))
                if _FORMATS[way] == "json_object":
                    reply_format = {"type": "json_object"}
            if reply_format is not None:
                # With `response_format` as an option of `ChatOpenAI`, the SDK would walk through the schema on every
                # request.
                options["extra_body"] = {"response_format": reply_format}
            try:
                return await self.client.ainvoke(asked, **self._fit(options))
            except openai.APIStatusError as error:
                if self._learn(error):
                    continue
                if reply_format is not None and error.status_code < 500 and _FORMAT_REFUSED.search(str(error)):
                    self._habits.format = max(self._habits.format, way + 1)
                    continue
                raise

    async def _offer(self, prompt: list[BaseMessage], tools: list[dict[str, Any]], max_tokens: int) -> AIMessage:
        options: dict[str, Any] = {"temperature": 0.0, "max_tokens": max_tokens}
        while True:
            try:
                return await self.client.bind_tools(tools).ainvoke(prompt, **self._fit(options))
            except openai.APIStatusError as error:
                if not self._learn(error):
                    raise

    async def _open(
        self, prompt: list[BaseMessage], options: dict[str, Any]
    ) -> tuple[AIMessageChunk | None, AsyncGenerator[AIMessageChunk, None]]:
        while True:
            try:
                return await super()._open(prompt, self._fit(options))
            except openai.APIStatusError as error:
                if not self._learn(error):
                    raise

    def _add(self, before: UsageMetadata | None, chunk: UsageMetadata) -> UsageMetadata:
        # OpenAI reports usage once, at the end; servers that report it in every chunk report totals.
        return chunk

    def _note_reply(self, text: str) -> None:
        habits = self._habits
        if habits.usual is not None:
            # The repair was asked for without a format.
            habits.format, habits.usual = habits.usual, None
        elif "{" in text:
            habits.prose = 0
        else:
            # Prose although only JSON was allowed: a slip of the model, or a server that ignores the format.
            habits.prose += 1
            habits.usual = habits.format if habits.prose < _IGNORED else None
            habits.format = _FORMATS.index("text")

    def _fit(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options without those that the model is known to refuse."""
        options = dict(options)
        if _REASONS.fullmatch(self.name):
            del options["temperature"]
            options["reasoning_effort"] = self._effort
            if "max_tokens" in options:
                options["max_tokens"] += _REASONING_TOKENS
        refused = self._habits.refused
        if "max_completion_tokens" in refused and "max_tokens" in options:
            # `ChatOpenAI` renames `max_tokens` to OpenAI's current name; some servers know only the old one.
            options["extra_body"] = {**options.get("extra_body", {}), "max_tokens": options.pop("max_tokens")}
        return {name: value for name, value in options.items() if name not in refused}

    def _learn(self, error: openai.APIStatusError) -> bool:
        """Return True if the server refused a parameter that it does not need; the parameter is not sent again."""
        if not isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError):
            return False
        for name in ("temperature", "reasoning_effort", "max_completion_tokens"):
            if name not in self._habits.refused and (error.param == name or name in error.message):
                self._habits.refused.add(name)
                if name == "temperature":
                    logger.warning("%s", describe_misfit(self.name, "temperature"))
                return True
        return False

    def _translate(self, error: Exception) -> AskgraphError:
        match error:
            case ContextOverflowError():
                return ContextTooLong()
            case openai.AuthenticationError():
                return ModelRejectedKey(_REJECTED)
            case openai.PermissionDeniedError() | openai.APITimeoutError():
                return super()._translate(error)
            case openai.NotFoundError():
                return ModelError(
                    f"There is no language model {self.name} at this address. Check its name and OPENAI_BASE_URL."
                )
            case openai.RateLimitError() if error.code == "insufficient_quota":
                return ModelError("The account behind OPENAI_API_KEY has no quota left.")
            case openai.APIError() if _CONTEXT_EXCEEDED.search(error.message):
                return ContextTooLong()
            case openai.BadRequestError() if error.code in ("content_filter", "content_policy_violation"):
                return ModelRefused()
            case openai.APIStatusError() if error.status_code < 500 and error.status_code not in _PASSING:
                message = f"The language model {self.name} did not accept the request."
                return ModelError(message, said=error.message)
            case openai.OpenAIError():
                return ModelUnavailable(again_in=read_retry_after(error))
        return super()._translate(error)


class _PlainCompletions:
    """Replaces `client.chat.completions`: replies and chunks are the plain dicts received.

    `ChatOpenAI` accepts dicts as they are. Converting each request to the SDK's types, and each chunk from them, is
    most of the cost of a call and of a streamed token.
    """

    def __init__(self, server: openai.AsyncOpenAI) -> None:
        self.with_raw_response = self
        self._server = server

    async def create(
        self, *, stream: bool = False, extra_body: dict[str, Any] | None = None, **payload: Any
    ) -> "_PlainReply":
        body = {**payload, "stream": stream, **(extra_body or {})}
        return _PlainReply(
            await self._server.post("/chat/completions", cast_to=httpx2.Response, body=body, stream=stream)
        )


class _PlainReply:
    """One reply, whole or as a stream of server-sent events, of which chat servers use single `data` lines only.
    https://html.spec.whatwg.org/multipage/server-sent-events.html"""

    def __init__(self, response: httpx2.Response) -> None:
        self.headers = response.headers
        self._response = response

    def parse(self) -> Any:
        reply = _read_json(self._response.content)
        for choice in reply["choices"] or []:
            if choice["message"].get("refusal"):
                # `ChatOpenAI` passes on a refusal only from the SDK's types.
                choice["finish_reason"] = "refusal"
        return reply

    async def __aenter__(self) -> AsyncIterator[dict[str, Any]]:
        return self._read()

    async def __aexit__(self, *error: object) -> None:
        await self._response.aclose()

    async def _read(self) -> AsyncIterator[dict[str, Any]]:
        rest, is_refusal = bytearray(), False
        async for received in self._response.aiter_bytes():
            # Not `aiter_lines`, which also splits at line separators inside a JSON string.
            *lines, last = received.split(b"\n")
            for line in lines:
                line, rest = bytes(rest + line), bytearray()
                if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
                    continue
                chunk = _read_json(line[5:])
                if not isinstance(chunk, dict):  # what keeps a connection alive
                    continue
                for choice in chunk.get("choices") or []:
                    delta = choice.get("delta") or {}
                    delta.pop("tool_calls", None)  # none is offered here, and LangChain's sum of many is quadratic
                    is_refusal = is_refusal or bool(delta.get("refusal"))
                    if is_refusal and choice.get("finish_reason"):
                        # `ChatOpenAI` drops the words of a refusal, and would find an empty reply.
                        choice["finish_reason"] = "refusal"
                if chunk.get("error"):
                    raise openai.APIError(str(chunk["error"]), self._response.request, body=chunk["error"])
                yield chunk
            rest += last
            if len(rest) > LONGEST_LINE:
                raise OversizedResponse("A line of the stream is too long.")


def _read_json(written: bytes) -> Any:
    try:
        return orjson.loads(written)
    except orjson.JSONDecodeError:
        # It refuses half of a surrogate pair, whose other half may come with the next chunk.
        return json.loads(written)


def _instruct(prompt: list[BaseMessage], instruction: str) -> list[BaseMessage]:
    """Add an instruction to the prompt's system message: chat templates of local models allow only one."""
    first, *others = prompt
    if isinstance(first, SystemMessage):
        return [SystemMessage(f"{first.content}\n\n{instruction}"), *others]
    return [SystemMessage(instruction), *prompt]


@cache
def _strict_format(schema: type[Schema]) -> dict[str, Any]:
    function = convert_to_openai_function(_drop_constraints(schema.model_json_schema()), strict=True)
    function["schema"] = function.pop("parameters")
    return {"type": "json_schema", "json_schema": function}


def _drop_constraints(schema: dict[str, Any]) -> dict[str, Any]:
    """Return only the schema's structure. Names of properties are kept, even if they equal a keyword."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _drop_constraints(part) for name, part in value.items()}
        elif key not in _CONSTRAINTS:
            kept[key] = _drop_constraints(value) if isinstance(value, dict) else value
    return kept
