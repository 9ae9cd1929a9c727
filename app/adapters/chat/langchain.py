"""Language models behind any LangChain chat model, as the port `ChatModel`.

What all have in common is here: the repair of a judgement, a stream with its end and its usage, retries, the circuit,
errors as ours. `app/adapters/chat/openai.py` adds what OpenAI's protocol allows to do better.
"""

import asyncio
import email.utils
import json
import math
import random
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, TypeVar

import httpx2
from langchain_core import exceptions as langchain
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.ai import UsageMetadata, add_usage
from pydantic import ValidationError

from app.adapters.chat.tokens import O200kCounter
from app.adapters.circuit import Circuit
from app.adapters.prices import PriceTable
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
from domain.ports.models import Message, ModelUsage, Schema, UsageSink

Reply = TypeVar("Reply")

PAUSES = (0.5, 1.0)
"""Seconds before the first and the second retry, where the provider does not say; a quarter more or less of each, so
that many callers do not come back at once."""
LONGEST_PAUSE = 5.0
"""Seconds that a retry is waited for. A provider that asks for more is left to the next model, or the local answer."""

JUDGEMENT_TOKENS = 1000
"""The most that a judgement may take: twice what eight claims or forty ranks need. A weak model fills a list for ever,
and on a server of one's own nothing else would stop it."""

_REFUSED = frozenset({"content_filter", "refusal", "safety", "prohibited_content", "blocklist", "recitation", "spii"})
_BUSY = re.compile(r"overloaded_error|rate_limit_error|api_error|timeout_error")
"""What Anthropic's streams say in an event, with a status of 200 that LangChain has no error for.
https://docs.claude.com/en/api/errors"""
_FULL = frozenset({"length", "max_tokens", "model_context_window_exceeded"})


class LangChainChat:
    """One model. Construct once and keep: the clients inside hold the connections."""

    caught: tuple[type[Exception], ...] = (Exception,)
    """What the client may raise. A package of which nothing more is known may raise anything."""

    def __init__(
        self,
        name: str,
        client: BaseChatModel,
        *,
        timeout: float,
        prices: PriceTable,
        key: str,
        limit: str = "max_tokens",
    ) -> None:
        """`client` must not retry by itself. `key` is the name of the variable that holds the API key, `limit` that of
        the client's option that limits a reply's tokens."""
        self.name = name
        self.client = client
        self.circuit = Circuit(f"The language model {name}")
        self._timeout = timeout
        self._prices = prices
        self._key = key
        self._limit = limit
        self._tokens = O200kCounter()

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        """A reply that fits `schema`; one that does not is sent back once with what is wrong with it."""
        prompt = _convert(messages)
        text = await self._ask(prompt, schema, sink)
        try:
            return schema.model_validate_json(cut_json(text))
        except ValidationError as error:
            self._misunderstood(text)
            repair = f"This is not what was asked for: {error}\n{describe_schema(schema)}"
            text = await self._ask([*prompt, AIMessage(text), HumanMessage(repair)], schema, sink)
        try:
            return schema.model_validate_json(cut_json(text))
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
        """The text as it comes. A reply that reaches `max_tokens` ends there, without an error; its usage says so."""
        finish: str | None = None
        usage: UsageMetadata | None = None
        wait = timeout or self._timeout
        prompt, options = _convert(messages), {"temperature": temperature, self._limit: max_tokens}
        try:
            chunk, chunks = await self._call(lambda: self._open(prompt, options), wait)
        except asyncio.CancelledError:
            self._estimate(messages, "", sink)
            raise
        pieces: list[str] = []
        async with aclosing(chunks):
            try:
                while chunk is not None:
                    finish = _read_finish(chunk) or finish
                    if chunk.usage_metadata:
                        usage = self._add(usage, chunk.usage_metadata)
                    text = chunk.content if isinstance(chunk.content, str) else str(chunk.text)
                    if text:
                        pieces.append(text)
                        yield text
                    chunk = await self._next(chunks, wait)
            finally:
                if usage is None and finish is None:
                    self._estimate(messages, "".join(pieces), sink)
                elif pieces or usage:
                    self._record(usage, sink, full=finish in _FULL)
        if finish in _REFUSED:
            raise ModelRefused
        if finish is None:
            # LangChain takes the end of the connection for the end of the reply.
            raise ModelReplyCut
        if not pieces:
            raise ModelError(
                f"The language model {self.name} spent its {max_tokens} tokens before it wrote a word."
                if finish in _FULL
                else f"The language model {self.name} sent an empty reply."
            )

    async def check(self) -> str | None:
        """What is wrong with the key, the address or the model's name, as far as this can be found out for nothing;
        None where nothing is. Takes at most 3 seconds."""
        check: Callable[[], Awaitable[str | None]] | None = getattr(self.client, "check", None)
        return None if check is None else await check()

    async def aclose(self) -> None:
        """Close the connections, where they are this model's own."""
        close: Callable[[], Awaitable[None]] | None = getattr(self.client, "aclose", None)
        if close is not None:
            await close()

    async def _ask(self, prompt: list[BaseMessage], schema: type[Schema], sink: UsageSink) -> str:
        """The text of one reply, which should be JSON of `schema`."""
        reply = await self._call(lambda: self._request(prompt, schema), self._timeout)
        self._record(reply.usage_metadata, sink)
        finish = _read_finish(reply)
        if finish in _REFUSED or reply.additional_kwargs.get("refusal"):
            raise ModelRefused
        if finish in _FULL:
            raise ModelError(f"The language model {self.name} ran out of tokens before its reply was complete.")
        return json.dumps(reply.tool_calls[0]["args"]) if reply.tool_calls else str(reply.text)

    async def _request(self, prompt: list[BaseMessage], schema: type[Schema]) -> AIMessage:
        """One reply. Tools are what every provider has for asking for a schema."""
        asking = self.client.bind_tools([schema], tool_choice=schema.__name__)
        options: dict[str, Any] = {"temperature": 0.0, self._limit: JUDGEMENT_TOKENS}
        return await asking.ainvoke(prompt, **options)

    async def _open(
        self, prompt: list[BaseMessage], options: dict[str, Any]
    ) -> tuple[AIMessageChunk | None, AsyncGenerator[AIMessageChunk, None]]:
        """A stream, and the first chunk of it."""
        chunks: AsyncGenerator[AIMessageChunk, None] = self.client.astream(prompt, **options)  # type: ignore[assignment]
        return await anext(chunks, None), chunks

    def _add(self, before: UsageMetadata | None, chunk: UsageMetadata) -> UsageMetadata:
        """What a stream has used up to a chunk: LangChain's packages give each chunk its share."""
        return add_usage(before, chunk)

    def _misunderstood(self, text: str) -> None:
        """What there is to learn from a reply that did not fit."""

    def _translate(self, error: Exception) -> AskgraphError:
        """The error as one of ours. https://reference.langchain.com/python/langchain_core/exceptions"""
        match error:
            case langchain.ModelTimeoutError() | TimeoutError() | httpx2.TimeoutException():
                return ModelTimeout()
            case langchain.ModelAuthenticationError():
                return ModelRejectedKey(f"The provider of {self.name} did not accept the API key. Check {self._key}.")
            case langchain.ModelPermissionDeniedError():
                return ModelRejectedKey(f"The API key may not use the language model {self.name}. Check {self._key}.")
            case langchain.ModelNotFoundError():
                return ModelError(f"There is no language model {self.name} at this address. Check its name.")
            case langchain.ContextOverflowError():
                return ContextTooLong()
            case langchain.ModelError() if error.is_retryable:
                return ModelUnavailable(again_in=read_retry_after(error))
            case langchain.ModelError():
                return ModelError(f"The language model {self.name} did not accept the request: {error}")
            case httpx2.HTTPError() | OSError():
                return ModelUnavailable()
            case _ if _BUSY.search(str(error)):
                return ModelUnavailable()
            case _:
                return ModelError(f"The language model {self.name} sent a reply that is not of the protocol.")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except AskgraphError:
            raise
        except self.caught as error:
            raise self._translate(error) from error

    async def _call(self, make: Callable[[], Awaitable[Reply]], timeout: float) -> Reply:
        """What `make` comes to, with all retries within `timeout` seconds."""
        with self.circuit.guard(), self._translated():
            async with asyncio.timeout(timeout) as limit:
                pauses = iter(PAUSES)
                while True:
                    try:
                        with self._translated():
                            return await make()
                    except ModelUnavailable as error:
                        pause = next(pauses, None)
                        if pause is None:
                            raise
                        wait = pause * random.uniform(0.75, 1.25)
                        if error.again_in is not None:
                            # Never before the provider says, and not all at the same moment.
                            wait = error.again_in + wait / 4
                        if wait > min(LONGEST_PAUSE, (limit.when() or 0.0) - asyncio.get_running_loop().time()):
                            raise
                        await asyncio.sleep(wait)

    async def _next(self, chunks: AsyncIterator[AIMessageChunk], timeout: float) -> AIMessageChunk | None:
        """The next chunk of a stream that has begun; None at its end."""
        try:
            with self._translated():
                async with asyncio.timeout(timeout):
                    return await anext(chunks, None)
        except (ModelUnavailable, ModelError) as error:
            # Whatever it was that broke off, unless the provider says more of it.
            if type(error) in (ModelUnavailable, ModelError):
                raise ModelReplyCut from error
            raise

    def _estimate(self, messages: Sequence[Message], text: str, sink: UsageSink) -> None:
        """What a stream that was left, or cut, has consumed: it is billed, and counted only at its end. The tokens of
        other models differ from those of o200k by some percent."""
        sent = sum(self._tokens.count(message.content) for message in messages)
        written = self._tokens.count(text)
        sink.record(ModelUsage(self.name, sent, written, self._prices.price(self.name, sent, 0, written)))

    def _record(self, usage: UsageMetadata | None, sink: UsageSink, *, full: bool = False) -> None:
        """Servers that do not count are recorded with zero tokens of unknown cost, so that the call itself shows."""
        if usage is None:
            sink.record(ModelUsage(self.name, 0, 0, None, full))
            return
        fresh, written = usage["input_tokens"], usage["output_tokens"]
        cached = usage.get("input_token_details", {}).get("cache_read") or 0
        cost = self._prices.price(self.name, fresh, cached, written)
        sink.record(ModelUsage(self.name, fresh, written, cost, full))


def describe_schema(schema: type[Schema]) -> str:
    """The schema in words, for models that cannot be given one. OpenAI's `json_object` requires the word JSON."""
    return f"Reply with nothing but a JSON object that fits this JSON schema: {json.dumps(schema.model_json_schema())}"


def cut_json(text: str) -> str:
    """What stands between the outermost braces: local models like to wrap JSON in words or a code fence."""
    return text[text.find("{") : text.rfind("}") + 1] or text.strip()


def _convert(messages: Sequence[Message]) -> list[BaseMessage]:
    kinds: dict[str, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
    return [kinds[message.role](message.content) for message in messages]


def _read_finish(reply: AIMessage) -> str | None:
    """Why the reply ended, in the provider's word for it; None where it has not, or nobody says."""
    metadata = reply.response_metadata
    finish = metadata.get("finish_reason") or metadata.get("stop_reason")
    return str(finish).lower() if finish else None


def read_retry_after(error: Exception) -> float | None:
    """Seconds, of the `Retry-After` header of the response behind an SDK's error: a number or a date.
    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after"""
    said = getattr(getattr(error, "response", None), "headers", {}).get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        date = email.utils.parsedate_tz(said)
        return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())
    return None if math.isnan(seconds) else max(0.0, seconds)
