"""Adapts any LangChain chat model to the port `ChatModel`.

This module holds what all providers share: repairing judgements, ending streams and counting their usage, retries, the
circuit breaker, and translating errors. `app/adapters/chat/openai.py` adds what OpenAI's protocol allows to do better.
"""

import asyncio
import email.utils
import json
import logging
import math
import random
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import httpx2
from langchain_core import exceptions as langchain
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from app.adapters.bounded_http import DIRECT, UNCOMPRESSED, OversizedResponse, bound_responses
from app.adapters.chat.ends import read_end
from app.adapters.chat.judgements import read_judgement
from app.adapters.chat.running_on import RunningOn
from app.adapters.chat.tokens import O200kCounter, count_picture
from app.adapters.circuit import Circuit
from app.adapters.prices import PriceTable
from app.adapters.sdk_errors import LONGEST_MESSAGE, clean, find_words, translate_silence
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelLoading,
    ModelRefused,
    ModelRejectedKey,
    ModelReplyCut,
    ModelTimeout,
    ModelUnavailable,
)
from domain.ports.models import (
    AWAITED_UNTIL,
    LARGER_WINDOW,
    UNSAID,
    FailedAttempt,
    Message,
    ModelReply,
    ModelUsage,
    Schema,
    Tool,
    ToolCall,
    UsageSink,
)
from domain.ports.pictures import Picture
from domain.text.storable import make_json_storable, make_storable

Reply = TypeVar("Reply")

logger = logging.getLogger("askgraph.models")

PAUSES = (0.5, 1.0)
"""Seconds before the first and the second retry if the provider names none. Each varies by a quarter, so that many
callers do not return at once."""
LONGEST_PAUSE = 5.0
"""Longest wait for a retry, in seconds. If a provider asks for more, the next model or the local judgement takes
over, unless it still loads the model: then asking goes on, at least as often, for as long as the call has."""

JUDGEMENT_TOKENS = 1000
"""Token limit of a judgement: twice what eight claims or forty ranks need. A weak model can fill a list forever, and
nothing else would stop it on a server of one's own."""

TOKEN_CHARACTERS = 10
"""Characters of a reply for each token that it may have, far more than in any language. Some servers take no limit of
tokens, and some models never end."""
MOST_WAITED_FOR = 1000
"""Characters of a streamed piece that go on at once, so that other work gets its turn."""
BOUNDED: Mapping[str, Any] = {
    "headers": UNCOMPRESSED,
    "event_hooks": bound_responses(2_000_000, 16_000_000),
    "mounts": DIRECT,
}
"""Options of a provider's HTTP client: bounds in bytes, for all thoughts and wrappings beside the words."""

TAIL = 2.0
"""Seconds for what comes after the end of a reply, which is the count of its tokens."""

LONGEST_THOUGHTS = 20_000
"""Characters of a reply's thoughts that are kept."""
_BUSY = re.compile(r"overloaded_error|rate_limit_error|api_error|timeout_error")
"""Error types that Anthropic sends within a stream of status 200, for which LangChain has no error class.
https://docs.claude.com/en/api/errors"""
_AGAIN = re.compile(
    r"(?:(?:retry|again) (?:in|after) |retryDelay\W{1,9})(?:(\d{1,3}) ?h(?:ours?)?(?![a-z]),? ?)?"
    r"(?:(\d{1,6}) ?m(?:in\w{0,4})?(?![a-z]),? ?)?(?:(\d{1,6}(?:\.\d{1,9})?) ?(?:(ms|milli)|s))?(?<=[a-z])",
    re.IGNORECASE,
)
_SINCE_1970, _MILLISECONDS = 1e9, 1e11
"""From where on a number is no wait but a time, in seconds and in milliseconds."""
_EMPTY = "sent an empty reply"
_ONLY_THOUGHTS = "wrote nothing but thoughts, or its server takes answers for thoughts (vLLM: --reasoning-parser)"
_UNREAD = 8
"""Bytes a token that few prompts reach: fewer tokens are a reason to count them."""
_CUT = (0, 2, 3)
"""What is left over, in 512s, of the count of a prompt that Ollama has cut to its window, or to half of it and of the
four or five tokens that it keeps of the beginning, as windows are multiples of 1,024. Others are so by chance, three of
512, and then have to count far less than o200k as well: Qwen's tokenizer counts .77 of it in Chinese, 3.2 in Hindi, so
that no ratio from other prompts would do."""


class LangChainChat:
    """One language model. Construct it once and keep it: its clients hold the connections."""

    caught: tuple[type[Exception], ...] = (Exception,)
    """Exceptions that the client may raise. An unknown package may raise anything."""

    def __init__(self, name: str, client: BaseChatModel, *, timeout: float, prices: PriceTable, key: str) -> None:
        """`client` must not retry by itself. `key` names the variable that holds the API key."""
        self.name = name
        self.client = client
        self.circuit = Circuit(f"The language model {name}")
        self._timeout = timeout
        self._prices = prices
        self._key = key
        self._address = key.replace("API_KEY", "BASE_URL")
        self._tokens = O200kCounter()
        self._tokens.count("")  # so that no question waits for the tables
        self.sees = bool(self._describe().get("image_inputs"))

    async def judge(self, messages: Sequence[Message], schema: type[Schema], sink: UsageSink) -> Schema:
        """Return a reply that fits `schema`. A reply that does not fit is sent back once with its errors."""
        prompt = _convert(messages)
        text = await self._ask(prompt, schema, sink)
        self._note_reply(text)
        try:
            return read_judgement(text, schema)
        except ValueError as error:
            repair = f"This is not what was asked for: {error}\n{describe_schema(schema)}"
            text = await self._ask([*prompt, AIMessage(text), HumanMessage(repair)], schema, sink)
            self._note_reply(text)
        try:
            return read_judgement(text, schema)
        except ValueError as error:
            raise ModelError(f"The language model {self.name} did not give a usable judgement.") from error

    async def act(
        self, messages: Sequence[Message], tools: Sequence[Tool], sink: UsageSink, *, max_tokens: int
    ) -> ModelReply:
        """Return a reply in words, or calls of some of the tools."""
        prompt, declared = _convert(messages), [_declare(tool) for tool in tools]
        asking = partial(self._offer, prompt, declared, max_tokens)
        for _ in range(2):
            reply = await self._call(asking, self._timeout, sink, lambda: [*map(_spell, prompt), json.dumps(declared)])
            self._check(reply, sink, max_tokens, prompt)
            finish = _read_finish(reply)
            # That the model wrote a call wrongly is an accident, which the next reply mostly does not have.
            if reply.tool_calls or read_end(finish) != "miscalled":
                break
        with self._translated(sink):
            calls = [
                ToolCall(call["id"] or "", make_storable(call["name"]), _make_storable(call["args"]))
                for call in reply.tool_calls
            ]
        calls += [
            ToolCall(call["id"] or "", call["name"] or "", {}, f"The arguments are no JSON object: {call['args']!r}")
            for call in reply.invalid_tool_calls
        ]
        text = make_storable(str(reply.text))
        if not calls and not text.strip():
            raise ModelError(f"The language model {self.name} {_EMPTY}{_name_end(finish)}.")
        return ModelReply(text, calls)

    async def stream(
        self,
        messages: Sequence[Message],
        sink: UsageSink,
        *,
        temperature: float,
        max_tokens: int,
        timeout: float | None = None,
    ) -> AsyncIterator[str]:
        """Yield the text as it arrives. A reply that reaches `max_tokens`, or has more characters than so many tokens
        could have, ends without an error; its usage is marked as full."""
        finish: str | None = None
        usage: UsageMetadata | None = None
        wait = timeout or self._timeout
        prompt, options = _convert(messages), {"temperature": temperature, "max_tokens": max_tokens}
        pictures = [picture for message in messages for picture in message.pictures]

        def begin() -> Awaitable[tuple[AIMessageChunk | None, AsyncGenerator[AIMessageChunk, None]]]:
            making = partial(self._open, prompt, options)
            return self._call(making, wait, sink, lambda: [*map(_spell, prompt), *pictures])

        try:
            chunk, chunks = await begin()
        except ModelError as error:
            if not pictures or type(error) is not ModelError:
                raise
            pictures, prompt = [], _convert([replace(message, pictures=()) for message in messages])
            chunk, chunks = await begin()
            self.sees = False
            logger.warning("The language model %s refuses pictures and gets none any more: %s", self.name, error)
        pieces: list[str] = []
        left, half, thoughts, running = max_tokens * TOKEN_CHARACTERS, "", "", RunningOn()
        silent_until = asyncio.get_running_loop().time() + wait
        async with aclosing(chunks):
            try:
                while chunk is not None:
                    finish = _read_finish(chunk) or finish
                    if chunk.usage_metadata:
                        usage = self._add(usage, chunk.usage_metadata)
                    thoughts += read_thoughts(chunk)[: LONGEST_THOUGHTS - len(thoughts)]
                    text = half + (chunk.content if isinstance(chunk.content, str) else str(chunk.text))
                    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
                    text = make_storable(text[: len(text) - len(half)][:left])
                    left -= len(text)
                    text = running.feed(text)
                    for start in range(0, len(text), MOST_WAITED_FOR):
                        pieces.append(text[start : start + MOST_WAITED_FOR])
                        yield pieces[-1]
                        await asyncio.sleep(0)
                    if left <= 0 or running.over:
                        finish = finish or ("length" if left <= 0 else UNSAID)
                        break
                    if text:
                        silent_until = asyncio.get_running_loop().time() + wait
                    if finish is None:
                        chunk = await self._next(chunks, silent_until, sink)
                        continue
                    # Whatever happens after the end: the reply is whole.
                    with suppress(Exception):
                        tail = min(silent_until, asyncio.get_running_loop().time() + TAIL)
                        chunk = await self._next(chunks, tail, sink)
                        continue
                    break
                if rest := running.finish():
                    pieces.append(rest)
                    yield rest
            finally:
                end = read_end(finish)
                if thoughts:
                    sink.record_thoughts(make_storable(thoughts))
                ended = finish or "" if end in ("unknown", "miscalled") else ""
                text = "".join(pieces)
                if text and _counts_nothing(usage):
                    self._estimate([*map(_spell, prompt), *pictures], text, sink, full=end == "full", ended=ended)
                elif usage is None and (finish is None or left <= 0 or running.over):
                    self._estimate([*map(_spell, prompt), *pictures], text, sink, full=left <= 0, ended=ended)
                elif pieces or usage:
                    self._record(usage, sink, map(_spell, prompt), full=end == "full", ended=ended)
        if end == "refused":
            raise ModelRefused
        if finish is None:
            # LangChain treats the end of the connection as the end of the reply.
            raise ModelReplyCut
        if not "".join(pieces).strip():
            did = _ONLY_THOUGHTS if thoughts else f"{_EMPTY}{_name_end(finish)}"
            if end == "full":
                allowed, written = max_tokens + self._find_room(), usage["output_tokens"] if usage else 0
                did = f"spent its {allowed} tokens before it wrote a word"
                if 0 < written < allowed:
                    did = f"was stopped by its server at {written} tokens, before it wrote a word. {LARGER_WINDOW[:-1]}"
            raise ModelError(f"The language model {self.name} {did}.")

    async def check(self) -> str | None:
        """Return a problem with the key, the address or the model's name, as far as it can be found free of charge;
        None if there is none. Takes at most 3 seconds."""
        check: Callable[[], Awaitable[str | None]] | None = getattr(self.client, "check", None)
        return None if check is None else await check()

    def takes_temperature(self) -> bool:
        """Return False for a model that is known to take no temperature."""
        return bool(self._describe().get("temperature", True))

    def find_longest_reply(self) -> int | None:
        """Return the most tokens that the model can write; None if that is not known."""
        limit = self._describe().get("max_output_tokens")
        return limit if isinstance(limit, int) else None

    def _describe(self) -> Mapping[str, Any]:
        """Return what LangChain's package knows of the model; empty for a model that it does not know."""
        return getattr(self.client, "profile", None) or {}

    async def aclose(self) -> None:
        """Close the connections that belong to this model."""
        close: Callable[[], Awaitable[None]] | None = getattr(self.client, "aclose", None)
        if close is not None:
            await close()

    async def _ask(self, prompt: list[BaseMessage], schema: type[Schema], sink: UsageSink) -> str:
        """Return the text of one reply, which should be JSON of `schema`."""
        asking = partial(self._request, prompt, schema)
        reply = await self._call(asking, self._timeout, sink, lambda: [*map(_spell, prompt), describe_schema(schema)])
        self._check(reply, sink, JUDGEMENT_TOKENS, prompt)
        text = json.dumps(reply.tool_calls[0]["args"]) if reply.tool_calls else str(reply.text)
        if "{" not in text:
            # Some servers take a reply for thoughts, because no tag had closed them.
            text = next((thoughts for thoughts in [read_thoughts(reply)] if "{" in thoughts), text)
        return make_json_storable(make_storable(text))

    def _check(self, reply: AIMessage, sink: UsageSink, max_tokens: int, prompt: Sequence[BaseMessage]) -> None:
        """Record the usage of a reply, and raise where it is a refusal, incomplete, or longer than it could be."""
        if _counts_nothing(reply.usage_metadata):
            self._estimate(map(_spell, prompt), _spell(reply), sink)
        else:
            self._record(reply.usage_metadata, sink, map(_spell, prompt))
        if thoughts := read_thoughts(reply):
            sink.record_thoughts(thoughts[:LONGEST_THOUGHTS])
        end = read_end(_read_finish(reply))
        if end == "refused" or reply.additional_kwargs.get("refusal"):
            raise ModelRefused
        if end == "full":
            raise ModelError(f"The language model {self.name} ran out of tokens before its reply was complete.")
        calls = [*reply.tool_calls, *reply.invalid_tool_calls]
        if len(str(reply.text)) + sum(len(str(call["args"])) for call in calls) > max_tokens * TOKEN_CHARACTERS:
            raise ModelError(f"The language model {self.name} wrote far more than it was asked for.")

    async def _offer(self, prompt: list[BaseMessage], tools: list[dict[str, Any]], max_tokens: int) -> AIMessage:
        """Request one reply, in which the model may call tools."""
        options: dict[str, Any] = {"temperature": 0.0, "max_tokens": max_tokens}
        return await self.client.bind_tools(tools).ainvoke(prompt, **options)

    async def _request(self, prompt: list[BaseMessage], schema: type[Schema]) -> AIMessage:
        """Request one reply. Every provider supports tools as a way to ask for a schema."""
        asking = self.client.bind_tools([schema], tool_choice=schema.__name__)
        options: dict[str, Any] = {"temperature": 0.0, "max_tokens": JUDGEMENT_TOKENS}
        return await asking.ainvoke(prompt, **options)

    async def _open(
        self, prompt: list[BaseMessage], options: dict[str, Any]
    ) -> tuple[AIMessageChunk | None, AsyncGenerator[AIMessageChunk, None]]:
        """Open a stream and wait for its first chunk."""
        chunks: AsyncGenerator[AIMessageChunk, None] = self.client.astream(prompt, **options)  # type: ignore[assignment]
        return await anext(chunks, None), chunks

    def _add(self, before: UsageMetadata | None, chunk: UsageMetadata) -> UsageMetadata:
        """Add a chunk's usage to the stream's: LangChain's packages report each chunk's share."""
        return add_usage(before, chunk)

    def _find_room(self) -> int:
        """Return the tokens that a reply gets for thoughts, beside those for its words."""
        return 0

    def _go_on_loading(self) -> None:
        """Let a server that loads the model go on with it, though its answer is waited for no longer."""

    def _note_reply(self, text: str) -> None:
        """Learn from a reply that should be JSON."""

    def _translate(self, error: Exception) -> AskgraphError:
        """Translate an error. https://reference.langchain.com/python/langchain_core/exceptions"""
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
                return translate_silence(error, read_retry_after(error), self._address)
            case langchain.ModelError():
                return ModelError(
                    f"The language model {self.name} did not accept the request.",
                    said=clean(str(error), error)[:LONGEST_MESSAGE],
                )
            case httpx2.HTTPError() | OSError():
                return translate_silence(error, address=self._address)
            case _ if _BUSY.search(str(error)):
                return ModelUnavailable()
            case _:
                message = f"The language model {self.name} sent a reply that violates its protocol."
                return ModelError(message, said=clean(str(error), error)[:LONGEST_MESSAGE])

    @contextmanager
    def _translated(self, sink: UsageSink) -> Iterator[None]:
        """Translate an error of one request, and record it."""
        try:
            yield
        except self.caught as error:
            self._record_failure(error, sink)
            if (unbounded := _find_unbounded(error)) is not None:
                raise ModelError(f"The reply of the language model {self.name} was not read. {unbounded}") from error
            raise self._translate(error) from error

    def _record_failure(self, error: BaseException, sink: UsageSink) -> None:
        reasons = (error, error.__cause__, error.__context__)
        holders = [held for reason in reasons for held in (reason, getattr(reason, "response", None))]
        statuses = (getattr(held, "status_code", None) for held in holders)
        status = next((status for status in statuses if isinstance(status, int)), None)
        said = find_words(getattr(error, "body", None)) or str(error) or "No answer in time."
        said = clean(said, error)[:LONGEST_MESSAGE]
        logger.info("the language model %s: status %s, %s", self.name, status, said)
        sink.record_failure(FailedAttempt(status, said))

    async def _call(
        self,
        make: Callable[[], Awaitable[Reply]],
        timeout: float,
        sink: UsageSink,
        list_sent: Callable[[], Iterable[str | Picture]],
    ) -> Reply:
        """Await `make()` with retries, all within `timeout` seconds. A request that is given up costs an estimate, for
        which `list_sent` returns what it sends."""
        deadline = asyncio.get_running_loop().time() + timeout
        if busy := self.circuit.find_wait():
            await _wait(busy, PAUSES[0], deadline, LONGEST_PAUSE)
        with self.circuit.guard():
            pauses, loading = iter(PAUSES), PAUSES[0]
            while True:
                try:
                    with self._translated(sink):
                        async with asyncio.timeout_at(deadline):
                            return await make()
                except (asyncio.CancelledError, ModelTimeout) as error:
                    self._estimate(list_sent(), "", sink)
                    if isinstance(error, ModelTimeout):
                        self._go_on_loading()
                    raise
                except ModelLoading as error:
                    await _wait(error, loading, min(deadline, AWAITED_UNTIL.get()), timeout)
                    loading = min(2 * loading, LONGEST_PAUSE)
                except ModelUnavailable as error:
                    self.circuit.keep_wait(error)
                    pause = next(pauses, None)
                    if pause is None:
                        raise
                    await _wait(error, pause, deadline, LONGEST_PAUSE)

    async def _next(
        self, chunks: AsyncIterator[AIMessageChunk], deadline: float, sink: UsageSink
    ) -> AIMessageChunk | None:
        """Return the next chunk of an open stream; None at its end. `deadline` is a time of the event loop."""
        try:
            with self._translated(sink):
                async with asyncio.timeout_at(deadline):
                    # A server that never pauses would leave no turn to others, nor to the one that cancels this.
                    await asyncio.sleep(0)
                    return await anext(chunks, None)
        except (ModelUnavailable, ModelError) as error:
            # Any failure within a stream means a cut reply, unless the provider reports an error of its own.
            status = getattr(error.__cause__, "status_code", None) or 0
            if type(error) in (ModelUnavailable, ModelError) and status < 400:
                raise ModelReplyCut from error
            raise

    def _estimate(
        self, sent: Iterable[str | Picture], text: str, sink: UsageSink, *, full: bool = False, ended: str = ""
    ) -> None:
        """Record an estimate for a call that was given up or cut, which is billed but reports its usage only at its
        end. Token counts of other models differ from o200k by some percent."""
        read = sum(self._tokens.count(each) if isinstance(each, str) else count_picture(each) for each in sent)
        written = self._tokens.count(text)
        cost = self._prices.price(self.name, read, 0, written)
        sink.record(ModelUsage(self.name, read, written, cost, full, estimated=True, ended=ended))

    def _record(
        self, usage: UsageMetadata | None, sink: UsageSink, sent: Iterable[str], *, full: bool = False, ended: str = ""
    ) -> None:
        """Record the usage. A server that reports none is recorded with zero tokens of unknown cost, so that the call
        itself shows."""
        if usage is None:
            sink.record(ModelUsage(self.name, 0, 0, None, full, ended=ended))
            return
        fresh, written = usage["input_tokens"], usage["output_tokens"]
        # Some servers cut a prompt that does not fit, and say nothing. Only then is it counted, which takes its time.
        texts, looks_cut = list(sent), fresh % 512 in _CUT
        is_short = looks_cut or fresh < sum(len(text.encode(errors="replace")) for text in texts) / _UNREAD
        unread = fresh > 0 and is_short and fresh * (1.6 if looks_cut else 2) < sum(map(self._tokens.count, texts))
        cached = usage.get("input_token_details", {}).get("cache_read") or 0
        cost = self._prices.price(self.name, fresh, cached, written)
        sink.record(ModelUsage(self.name, fresh, written, cost, full, ended=ended, unread=unread, cached_tokens=cached))


def _counts_nothing(usage: UsageMetadata | None) -> bool:
    """Return True for zeros, which some servers send instead of counting."""
    return usage is not None and not usage["input_tokens"] and not usage["output_tokens"]


async def _wait(error: ModelUnavailable, pause: float, deadline: float, longest: float) -> None:
    """Wait before the next request, or raise the error where that takes too long: past `deadline`, a time of the event
    loop, or more than `longest` seconds."""
    wait = pause * random.uniform(0.75, 1.25)
    if error.again_in is not None:
        # Not before the time that the provider names, and not all callers at the same moment.
        wait = error.again_in + wait / 4
    if wait > min(longest, deadline - asyncio.get_running_loop().time()):
        raise error
    await asyncio.sleep(wait)


def describe_misfit(model: str, knob: str, modes: Sequence[str]) -> str:
    """Return a warning that the model does not take a knob of `generate` that these modes set."""
    return (
        f"The language model {model} does not take the generate.{knob} of the modes {', '.join(modes)}, which has no "
        "effect."
    )


def describe_schema(schema: type[Schema]) -> str:
    """Describe the schema in a prompt, for models that take none. OpenAI's `json_object` requires the word JSON."""
    return f"Reply with nothing but a JSON object that fits this JSON schema: {json.dumps(schema.model_json_schema())}"


def _convert(messages: Sequence[Message]) -> list[BaseMessage]:
    return [_convert_one(message) for message in messages]


def _convert_one(message: Message) -> BaseMessage:
    match message.role:
        case "system":
            return SystemMessage(message.content)
        case "user" if message.pictures:
            # OpenAI's form, which LangChain's packages translate for their providers.
            address = "data:image/jpeg;base64,"
            shown = [{"type": "image_url", "image_url": {"url": address + each.data}} for each in message.pictures]
            return HumanMessage([{"type": "text", "text": message.content}, *shown])
        case "user":
            return HumanMessage(message.content)
        case "assistant":
            calls = [{"id": call.id, "name": call.name, "args": dict(call.arguments)} for call in message.calls]
            return AIMessage(message.content, tool_calls=calls)
        case "tool":
            return ToolMessage(message.content, tool_call_id=message.answers)


def _find_unbounded(error: BaseException | None) -> OversizedResponse | None:
    # LangChain and the SDK wrap what the HTTP client raises.
    return error if error is None or isinstance(error, OversizedResponse) else _find_unbounded(error.__cause__)


def read_thoughts(reply: AIMessage) -> str:
    """Return what the model thought, as far as it was sent."""
    parts = reply.content if isinstance(reply.content, list) else []
    return make_storable("".join(str(part.get("thinking") or "") for part in parts if isinstance(part, dict)))


def _make_storable(value: Any) -> Any:
    return json.loads(make_json_storable(json.dumps(value)))


def _spell(message: BaseMessage) -> str:
    """Return all that a message says, for its tokens to be counted."""
    calls = [call["args"] for call in message.tool_calls] if isinstance(message, AIMessage) else []
    return "\n".join([str(message.text), *map(json.dumps, calls)])


def _declare(tool: Tool) -> dict[str, Any]:
    """Return the tool in OpenAI's form, which LangChain's packages translate for their providers."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": function}


def _read_finish(reply: AIMessage) -> str | None:
    """Return the provider's word for why the reply ended; None if it has not ended or nobody says."""
    metadata = reply.response_metadata
    finish = metadata.get("finish_reason") or metadata.get("stop_reason")
    return str(finish) if finish else None


def _name_end(finish: str | None) -> str:
    """Return the provider's word for an end that is not a usual one, for a sentence about an empty reply."""
    return "" if read_end(finish) == "whole" or finish in (None, UNSAID) else f", which it ended with {finish!r}"


def read_retry_after(error: Exception) -> float | None:
    """Read the `Retry-After` header of the response behind an SDK's error, a number or a date, as seconds; without one,
    what the message says, or when a limit that is used up begins anew.
    https://www.rfc-editor.org/rfc/rfc9110#field.retry-after"""
    response = getattr(error, "response", None)
    said = getattr(response, "headers", {}).get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        date = email.utils.parsedate_tz(said)
        # An SDK's message may leave out a body that is an array, as Google's is.
        if date is None and (named := _AGAIN.search(f"{error} {getattr(error, 'body', '')}")):
            hours, minutes, rest, thousandth = named.groups()
            return 3600 * int(hours or 0) + 60 * int(minutes or 0) + float(rest or 0) / (1000 if thousandth else 1)
        return _read_reset(error, response) if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())
    return None if math.isnan(seconds) else max(0.0, seconds)


def _read_reset(error: Exception, response: Any) -> float | None:
    """Read `X-RateLimit-Reset` of a refusal for its limit: seconds, or a time in seconds or milliseconds since 1970.
    OpenRouter has it in the body, too. https://openrouter.ai/docs/api-reference/limits"""
    said = getattr(error, "body", None)
    for name in ("metadata", "headers"):
        said = said.get(name) if isinstance(said, dict) else None
    inner = said.items() if isinstance(said, dict) else ()
    told = {key.lower(): str(value) for key, value in (*inner, *getattr(response, "headers", {}).items())}
    reset = re.fullmatch(r"\d{1,13}(?:\.\d{1,9})?", told.get("x-ratelimit-reset", ""))
    if not reset or getattr(response, "status_code", 0) != 429 or told.get("x-ratelimit-remaining", "0") != "0":
        return None
    seconds = float(reset[0])
    seconds /= 1000 if seconds >= _MILLISECONDS else 1
    return max(0.0, seconds - time.time()) if seconds >= _SINCE_1970 else seconds
