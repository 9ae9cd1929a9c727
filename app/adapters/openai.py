"""Language models behind OpenAI's chat API: OpenAI itself, or any server that speaks its protocol.

Calls go through `langchain_openai`, so that LangChain callbacks and LangSmith see every one of them. Importing this
module costs 0.7 s: import it where a model is configured, not at the top of a module that always runs.

What servers differ in is learnt from their refusals and remembered per model: which request parameters a model does
not take, and which way of asking for JSON it understands.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import cache
from typing import Any

import httpx2
import openai
import orjson
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.utils.function_calling import convert_to_openai_function
from langchain_openai import ChatOpenAI
from pydantic import SecretStr, ValidationError

from app.adapters.prices import read_prices
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelRejectedKey,
    ModelReplyCut,
    ModelTimeout,
    ModelUnavailable,
)
from domain.ports import ChatModel, Message, ModelUsage, Schema, UsageSink
from nodes.context import Models

# Models that think before they write. They take no temperature, and their thoughts count as output.
_REASONS = re.compile(r"(gpt-5(-mini|-nano)?|o\d(-mini|-pro)?)(-\d{4}-\d{2}-\d{2})?")
_REASONING_TOKENS = 2000

_RETRIES = 2
_CHECK_SECONDS = 3.0

# Ways of asking for JSON, best first: constrained by the schema, constrained to JSON, asked nicely.
_FORMATS = ("json_schema", "json_object", "text")

# Strict mode refuses some of these, fine-tuned models the others; pydantic checks them when the reply has come.
# https://platform.openai.com/docs/guides/structured-outputs
_CONSTRAINTS = {
    "default", "format", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern",
}  # fmt: skip

_PASSING = (408, 409, 429)
"""Statuses below 500 that the SDK retries, so that asking again later may help."""

_CONTEXT_EXCEEDED = re.compile(r"context.?(length|size|window)", re.IGNORECASE)
_FORMAT_REFUSED = re.compile(r"response.?format|json.?schema|json.?object|structured output|grammar", re.IGNORECASE)
_UNUSABLE = (ValueError, KeyError, TypeError, IndexError)
"""What the SDK and LangChain raise on a reply that is not of the protocol."""


class OpenAIChat:
    """One model. Construct once and keep: the clients inside cost 50 ms and hold the connections."""

    def __init__(
        self,
        name: str,
        *,
        api_key: str,
        base_url: str | None,
        timeout: float,
        http: httpx2.AsyncClient,
        effort: str = "minimal",
    ) -> None:
        self.name = name
        self.http = http
        self.server = openai.AsyncOpenAI(
            api_key=api_key, base_url=base_url, timeout=timeout, max_retries=_RETRIES, http_client=http
        )
        self.client = ChatOpenAI(
            model=name,
            api_key=SecretStr(api_key),
            base_url=base_url,
            stream_usage=True,
            use_responses_api=False,
            root_async_client=self.server,
            async_client=_PlainCompletions(self.server),
            # `stream` bounds the wait for each chunk itself; the library's way makes a task for each.
            stream_chunk_timeout=0,
        )
        self._timeout = timeout
        self._effort = effort
        self._format = 0
        self._refused: set[str] = set()

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        """A reply that fits `schema`; one that does not is sent back once with what is wrong with it."""
        prompt = _convert(messages)
        text = await self._ask(prompt, schema, sink)
        try:
            return schema.model_validate_json(_cut_json(text))
        except ValidationError as error:
            if not text.lstrip().startswith("{"):
                # Words, although nothing but JSON was allowed: the server ignores the format.
                self._format = _FORMATS.index("text")
            repair = f"This is not what was asked for: {error}\n{_describe(schema)}"
            text = await self._ask([*prompt, AIMessage(text), HumanMessage(repair)], schema, sink)
        try:
            return schema.model_validate_json(_cut_json(text))
        except ValidationError as error:
            raise ModelError(f"The language model {self.name} did not give a usable judgement.") from error

    async def stream(
        self,
        messages: Sequence[Message],
        sink: UsageSink,
        *,
        temperature: float,
        max_tokens: int,
        timeout: float | None = None,
    ) -> AsyncIterator[str]:
        """The text as it comes. A reply that reaches `max_tokens` ends there, without an error."""
        finish: str | None = None
        usage: UsageMetadata | None = None
        written = False
        options = {"temperature": temperature, "max_tokens": max_tokens}
        chunks = self._send(_convert(messages), options, timeout or self._timeout)
        async with aclosing(chunks):
            try:
                async for chunk in chunks:
                    finish = chunk.response_metadata.get("finish_reason") or finish
                    usage = chunk.usage_metadata or usage
                    if chunk.content and isinstance(chunk.content, str):
                        written = True
                        yield chunk.content
            finally:
                if written or usage:
                    self._record(usage, sink)
        if finish == "content_filter":
            raise ModelRefused
        if finish is None:
            # The stock client takes the end of the connection for the end of the reply.
            raise ModelReplyCut
        if not written:
            raise ModelError(
                f"The language model {self.name} spent its {max_tokens} tokens before it wrote a word."
                if finish == "length"
                else f"The language model {self.name} sent an empty reply."
            )

    async def check(self) -> str | None:
        """What is wrong with the key, the address or the model's name, as far as the server's list of models tells;
        None where nothing is, or where the server has no such list. Takes at most 3 seconds."""
        probe = self.server.with_options(max_retries=0, timeout=_CHECK_SECONDS)
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                listed = {model.id async for model in await probe.models.list()}
        except openai.AuthenticationError:
            return ModelRejectedKey().message
        except (openai.APIConnectionError, TimeoutError):
            return f"The language model's server at {self.server.base_url} does not answer. Check OPENAI_BASE_URL."
        except (openai.OpenAIError, *_UNUSABLE):
            return None
        if listed and not listed & {self.name, f"{self.name}:latest"}:
            some = ", ".join(sorted(listed)[:5])
            return f"The server at {self.server.base_url} does not list a model {self.name!r}; it lists {some}."
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        await self.http.aclose()

    async def _ask(self, prompt: list[BaseMessage], schema: type[Schema], sink: UsageSink) -> str:
        """The text of one reply, asked for in the best format that the server understands."""
        while True:
            way = self._format
            options: dict[str, Any] = {"temperature": 0.0}
            asked = prompt
            if _FORMATS[way] == "json_schema":
                options["response_format"] = _strict_format(schema)
            else:
                asked = _instruct(prompt, _describe(schema))
                if _FORMATS[way] == "json_object":
                    options["response_format"] = {"type": "json_object"}
            try:
                with _translated(self.name):
                    async with asyncio.timeout(self._timeout):
                        reply = await self.client.ainvoke(asked, **self._fit(options))
            except ModelError as error:
                if isinstance(error.__cause__, openai.LengthFinishReasonError):
                    self._record_completion(error.__cause__, sink)
                if self._learn(error.__cause__):
                    continue
                if "response_format" in options and _FORMAT_REFUSED.search(str(error.__cause__)):
                    self._format = max(self._format, way + 1)
                    continue
                raise
            self._record(reply.usage_metadata, sink)
            if reply.additional_kwargs.get("refusal"):
                raise ModelRefused
            return str(reply.text)

    async def _send(
        self, prompt: list[BaseMessage], options: dict[str, Any], timeout: float
    ) -> AsyncGenerator[AIMessageChunk, None]:
        """The chunks of one streamed reply, `timeout` seconds apart at most."""
        begun = False
        while True:
            try:
                with _translated(self.name):
                    chunks = self.client.astream(prompt, **self._fit(options))
                    async with aclosing(chunks):  # type: ignore[type-var]
                        while True:
                            async with asyncio.timeout(timeout):
                                chunk = await anext(chunks, None)
                            if chunk is None:
                                return
                            begun = True
                            yield chunk
            except AskgraphError as error:
                if not begun and self._learn(error.__cause__):
                    continue
                if begun and type(error) is ModelUnavailable:
                    raise ModelReplyCut from error
                raise

    def _fit(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options, without those that the model is known to refuse."""
        options = dict(options)
        if _REASONS.fullmatch(self.name):
            del options["temperature"]
            options["reasoning_effort"] = self._effort
            if "max_tokens" in options:
                options["max_tokens"] += _REASONING_TOKENS
        if "max_completion_tokens" in self._refused and "max_tokens" in options:
            # `ChatOpenAI` renames `max_tokens` to what OpenAI calls it now; some servers know the old name only.
            options["extra_body"] = {"max_tokens": options.pop("max_tokens")}
        return {name: value for name, value in options.items() if name not in self._refused}

    def _learn(self, cause: BaseException | None) -> bool:
        """Whether the server refused a parameter that it can be asked without; it is not sent again."""
        if not isinstance(cause, openai.BadRequestError | openai.UnprocessableEntityError):
            return False
        for name in ("temperature", "reasoning_effort", "max_completion_tokens"):
            if name not in self._refused and (cause.param == name or name in cause.message):
                self._refused.add(name)
                return True
        return False

    def _record(self, usage: UsageMetadata | None, sink: UsageSink) -> None:
        """Servers that do not count are recorded with zero tokens of unknown cost, so that the call itself shows."""
        if usage is None:
            sink.record(ModelUsage(self.name, 0, 0, None))
            return
        fresh, written = usage["input_tokens"], usage["output_tokens"]
        cached = usage.get("input_token_details", {}).get("cache_read", 0)
        sink.record(ModelUsage(self.name, fresh, written, read_prices().price(self.name, fresh, cached, written)))

    def _record_completion(self, error: openai.LengthFinishReasonError, sink: UsageSink) -> None:
        usage = error.completion.usage
        if usage is not None:
            spent = UsageMetadata(
                input_tokens=usage.prompt_tokens,
                output_tokens=usage.completion_tokens,
                total_tokens=usage.total_tokens,
            )
            self._record(spent, sink)


class _PlainCompletions:
    """`client.chat.completions`, except that streams give each chunk as the dict that came over the wire.

    `ChatOpenAI` takes dicts as they are. The SDK's typed chunks, which it would turn back into dicts, are most of what
    a streamed token costs.
    """

    def __init__(self, server: openai.AsyncOpenAI) -> None:
        self.with_raw_response = server.chat.completions.with_raw_response

    async def create(self, **payload: Any) -> "_PlainStream":
        raw = await self.with_raw_response.create(**payload)
        return _PlainStream(raw.http_response)


class _PlainStream:
    """The chunks of one streamed reply. https://html.spec.whatwg.org/multipage/server-sent-events.html, of which
    chat servers use single `data` lines only."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aenter__(self) -> AsyncIterator[dict[str, Any]]:
        return self._read()

    async def __aexit__(self, *error: object) -> None:
        await self._response.aclose()

    async def _read(self) -> AsyncIterator[dict[str, Any]]:
        rest = b""
        async for received in self._response.aiter_bytes():
            # Not `aiter_lines`: it also splits at line separators inside a JSON string.
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
                    continue
                chunk = orjson.loads(line[5:])
                if chunk.get("error"):
                    raise openai.APIError(str(chunk["error"]), self._response.request, body=chunk["error"])
                yield chunk


def connect_models(*, api_key: str, base_url: str | None, small: str, large: str, judge: str, timeout: float) -> Models:
    """The three tiers, over one connection pool. Nothing is asked of the server yet.

    `api_key` may be empty where `base_url` names a server that wants none. `timeout` is in seconds, for one judgement
    with all retries, or for one piece of a streamed reply.
    """
    http = openai.DefaultAsyncHttpxClient(timeout=timeout)

    def connect(name: str, effort: str) -> OpenAIChat:
        # The SDK does not start without a key; local servers ignore it.
        return OpenAIChat(name, api_key=api_key or "none", base_url=base_url, timeout=timeout, http=http, effort=effort)

    return Models(small=connect(small, "minimal"), large=connect(large, "minimal"), judge=connect(judge, "low"))


async def check_models(models: Models) -> str | None:
    """The first thing that is wrong with the connected models, said so that a user can act; None where nothing is."""
    found = await asyncio.gather(*(model.check() for model in _connected(models)))
    return next((problem for problem in found if problem), None)


async def close_models(models: Models) -> None:
    """Close the connections of `connect_models`."""
    for model in _connected(models):
        await model.aclose()


def _connected(models: Models) -> list[OpenAIChat]:
    tiers: list[ChatModel | None] = [models.small, models.large, models.judge]
    return list({model.name: model for model in tiers if isinstance(model, OpenAIChat)}.values())


def _convert(messages: Sequence[Message]) -> list[BaseMessage]:
    kinds: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](message.content) for message in messages]


def _instruct(prompt: list[BaseMessage], instruction: str) -> list[BaseMessage]:
    """The prompt with one more instruction in its system message: chat templates of local models allow only one."""
    first, *others = prompt
    if isinstance(first, SystemMessage):
        return [SystemMessage(f"{first.content}\n\n{instruction}"), *others]
    return [SystemMessage(instruction), *prompt]


def _describe(schema: type[Schema]) -> str:
    """The schema in words, for servers that cannot be given one. `json_object` requires the word JSON."""
    return f"Reply with nothing but a JSON object that fits this JSON schema: {json.dumps(schema.model_json_schema())}"


@cache
def _strict_format(schema: type[Schema]) -> dict[str, Any]:
    function = convert_to_openai_function(_drop_constraints(schema.model_json_schema()), strict=True)
    function["schema"] = function.pop("parameters")
    return {"type": "json_schema", "json_schema": function}


def _drop_constraints(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema's structure alone. Names of properties are not keywords, whatever they are called."""
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _drop_constraints(part) for name, part in value.items()}
        elif key not in _CONSTRAINTS:
            kept[key] = _drop_constraints(value) if isinstance(value, dict) else value
    return kept


def _cut_json(text: str) -> str:
    """What stands between the outermost braces: local models like to wrap JSON in words or a code fence."""
    return text[text.find("{") : text.rfind("}") + 1] or text.strip()


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Raise what the SDK, its transport or LangChain raise as `domain.errors`, with the original as the cause."""
    try:
        yield
    except (openai.OpenAIError, httpx2.HTTPError, TimeoutError, *_UNUSABLE) as error:
        raise _translate(error, name) from error


def _translate(error: Exception, name: str) -> AskgraphError:
    match error:
        case openai.APITimeoutError() | TimeoutError() | httpx2.TimeoutException():
            return ModelTimeout()
        case openai.ContentFilterFinishReasonError():
            return ModelRefused()
        case openai.LengthFinishReasonError():
            return ModelError(f"The language model {name} ran out of tokens before its reply was complete.")
        case openai.AuthenticationError():
            return ModelRejectedKey()
        case openai.PermissionDeniedError():
            return ModelRejectedKey(f"The API key may not use the language model {name}. Check OPENAI_API_KEY.")
        case openai.NotFoundError():
            return ModelError(f"There is no language model {name} at this address. Check its name and OPENAI_BASE_URL.")
        case openai.RateLimitError() if error.code == "insufficient_quota":
            return ModelError("The account behind OPENAI_API_KEY has no quota left.")
        case ContextOverflowError():
            return ContextTooLong()
        case openai.APIError() if _CONTEXT_EXCEEDED.search(error.message):
            return ContextTooLong()
        case openai.BadRequestError() if error.code in ("content_filter", "content_policy_violation"):
            return ModelRefused()
        case openai.APIStatusError() if error.status_code < 500 and error.status_code not in _PASSING:
            return ModelError(f"The language model {name} did not accept the request: {error.message}")
        case openai.OpenAIError() | httpx2.HTTPError():
            return ModelUnavailable()
        case _:
            return ModelError(f"The language model {name} sent a reply that is not of the protocol.")
