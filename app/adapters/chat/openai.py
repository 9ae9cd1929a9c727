"""Language models that speak OpenAI's chat API: OpenAI itself and compatible servers.

Calls go through `langchain_openai`, so that LangChain callbacks and LangSmith see every one of them. Importing this
module costs 0.7 s: import it where a model is configured, not at the top of a module that always runs.

`app/adapters/chat/replies.py` reads what servers send, `app/adapters/chat/habits.py` remembers what they take.
"""

import asyncio
import copy
import math
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.utils.function_calling import convert_to_openai_function
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from app.adapters.chat.ends import read_end
from app.adapters.chat.habits import (
    FORMATS,
    KEPT,
    Habits,
    find_allowed,
    find_smaller,
    is_filtered,
    is_loading,
    is_pair,
    is_spent,
    is_too_long,
    quote,
    spell,
    tell,
)
from app.adapters.chat.judgements import find_objects
from app.adapters.chat.langchain import JUDGEMENT_TOKENS, TAIL, LangChainChat, describe_schema, read_retry_after
from app.adapters.chat.providers import CHECK_SECONDS
from app.adapters.chat.replies import ReplyReader, ServerError, ThoughtAloudError, read_stream, read_whole, sum_usage
from app.adapters.prices import PriceTable, read_prices
from app.adapters.sdk_errors import explain_silence, find_page, translate_silence
from app.support.addresses import read_api_address
from app.support.cancelling import end_tasks
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelLoading,
    ModelRefused,
    ModelRejectedKey,
    ModelThoughtAloud,
    ModelUnavailable,
)
from domain.ports.models import UNSAID, Schema

# Strict mode refuses some of these, fine-tuned models the others; pydantic checks them when the reply has come.
# https://platform.openai.com/docs/guides/structured-outputs
_CONSTRAINTS = {
    "default", "format", "maxItems", "maxLength", "maximum", "minItems", "minLength", "minimum", "pattern",
}  # fmt: skip

_IGNORED = 3
"""Replies in prose after which the format counts as ignored. One may be a slip of the model. Chosen."""

CONNECTING = 5.0
"""Seconds for a connection, which only comes about late where a firewall drops what is sent."""

LOADING = 300.0
"""Seconds for which a server may go on loading a model. A laptop takes one to two minutes for 8 billion parameters."""

_PASSING = (408, 409, 424, 425, 429, 498, 499)
"""Statuses below 500 after which asking again may help."""

_UNUSABLE = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Exceptions that the SDK and LangChain raise for a reply that violates the protocol."""
_ADDRESS = "The address (OPENAI_BASE_URL) usually ends in /v1."
_REJECTED = "The language model's provider did not accept the API key. Check OPENAI_API_KEY."
_STATUSES = {
    code: kind for kind in openai.APIStatusError.__subclasses__() if (code := getattr(kind, "status_code", None))
}


def _is_name(listed: str, name: str) -> bool:
    """Return True where a server may list the model of this name so: with its owner (`models/`, `docker.io/ai/`), or
    a tag or date behind it (`:latest`, `-20251001`)."""
    found = re.search(rf"(?:^|/){re.escape(name.removesuffix(':latest'))}(?P<rest>.*)$", listed)
    return bool(found and re.fullmatch(r"(:latest|-\d[\d-]*)?", found["rest"]))


class OpenAIChat(LangChainChat):
    """One model. Construct it once and keep it: its clients cost 50 ms and hold the connections."""

    client: ChatOpenAI
    caught = (openai.OpenAIError, ContextOverflowError, httpx2.HTTPError, TimeoutError, *_UNUSABLE)

    def __init__(
        self,
        name: str,
        *,
        api_key: str | Callable[[], Awaitable[str]],
        base_url: str | None,
        timeout: float,
        http: httpx2.AsyncClient,
        prices: PriceTable | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        # The base class retries, because it knows how long a user may wait; the SDK sleeps for up to two minutes.
        base_url, query = read_api_address(base_url, "/chat/completions")
        self.server = openai.AsyncOpenAI(
            api_key=api_key,
            base_url=base_url,
            timeout=httpx2.Timeout(timeout, connect=min(timeout, CONNECTING)),
            max_retries=0,
            http_client=http,
            default_query=query,
            # Azure takes a key there only, at addresses with a version.
            default_headers={**(headers or {}), **({"api-key": api_key} if query and isinstance(api_key, str) else {})},
        )
        self._completions = _Completions(self.server)
        client = ChatOpenAI(
            model=name,
            api_key=SecretStr("none"),  # the client below has it
            base_url=base_url,
            stream_usage=True,
            use_responses_api=False,
            root_async_client=self.server,
            async_client=self._completions,
            # `stream` bounds the wait for each chunk itself; the library would create a task for each.
            stream_chunk_timeout=0,
        )
        super().__init__(name, client, timeout=timeout, prices=prices or read_prices(), key="OPENAI_API_KEY")
        self._completions.takes_temperature = super().takes_temperature()
        self._effort = "minimal"
        self._prose = 0
        """Replies in prose, one after the other, where JSON was asked for."""
        self._repairs = False
        """True while a repair is asked for, without a format."""

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
        except ModelRejectedKey as error:
            return error.message
        except (openai.APIConnectionError, TimeoutError) as error:
            return explain_silence(f"The language model's server at {self._shown}", error, "OPENAI_BASE_URL")
        except (openai.OpenAIError, *_UNUSABLE) as error:
            loads = isinstance(error, openai.APIStatusError) and is_loading(error)
            return self._translate(error).message if loads else None
        if listed and not any(_is_name(each, self.name) for each in listed):
            some = ", ".join(sorted(listed)[:5])
            return f"The server at {self._shown} does not list a model {self.name!r}; it lists {some}."
        return None

    @property
    def _shown(self) -> httpx2.URL:
        """The server's address without a password."""
        return self.server.base_url.copy_with(userinfo=b"")

    def takes_temperature(self) -> bool:
        return "temperature" not in self._completions.recall().refused

    async def _request(self, prompt: list[BaseMessage], schema: type[Schema]) -> AIMessage:
        """Request one reply in the best format that the server understands."""
        body: dict[str, Any] = {"instruction": describe_schema(schema)}
        if not self._repairs:
            # As an option of `ChatOpenAI`, the SDK would walk through the schema on every request.
            body["response_format"] = _strict_format(schema)
        options: dict[str, Any] = {"temperature": 0.0, "max_tokens": JUDGEMENT_TOKENS, "reasoning_effort": self._effort}
        return await self.client.ainvoke(prompt, extra_body=body, **options)

    async def _offer(self, prompt: list[BaseMessage], tools: list[dict[str, Any]], max_tokens: int) -> AIMessage:
        options: dict[str, Any] = {"temperature": 0.0, "max_tokens": max_tokens, "reasoning_effort": self._effort}
        return await self.client.bind_tools(tools).ainvoke(prompt, **options)

    async def _open(
        self, prompt: list[BaseMessage], options: dict[str, Any]
    ) -> tuple[AIMessageChunk | None, AsyncGenerator[AIMessageChunk, None]]:
        return await super()._open(prompt, {**options, "reasoning_effort": self._effort})

    def _add(self, before: UsageMetadata | None, chunk: UsageMetadata) -> UsageMetadata:
        # OpenAI reports usage once, at the end; servers that report it in every chunk report totals.
        return chunk

    def _find_room(self) -> int:
        return self._completions.recall().room

    def _go_on_loading(self) -> None:
        self._completions.go_on_loading(self.name)

    async def aclose(self) -> None:
        await self._completions.close()
        await super().aclose()

    def _note_reply(self, text: str) -> None:
        if self._repairs:
            self._repairs = False
        elif find_objects(text):
            self._prose = 0
        else:
            # Prose although only JSON was allowed: a slip of the model, or a server that ignores the format.
            self._prose += 1
            self._repairs = self._prose < _IGNORED
            if not self._repairs:
                self._completions.recall().refused |= FORMATS

    def _translate(self, error: Exception) -> AskgraphError:
        match error:
            case ContextOverflowError():
                return ContextTooLong()
            case ThoughtAloudError():
                return ModelThoughtAloud()
            case openai.APIStatusError() | ValueError() if page := find_page(error):
                return ModelError(f"The address of the language model {self.name} answers with {page}. {_ADDRESS}")
            case openai.AuthenticationError():
                return ModelRejectedKey(_REJECTED)
            case openai.APIStatusError() if error.status_code < 500 and is_filtered(error):
                return ModelRefused()
            case openai.APIStatusError() if is_spent(error):
                again = "Asking again does not help. Whoever runs this service can raise it."
                return ModelError(f"The budget of the language model {self.name} is used up{quote(error)}. {again}")
            case openai.PermissionDeniedError():
                message = f"The language model {self.name} may not be used with this key and address{quote(error)}."
                return ModelRejectedKey(f"{message} Check OPENAI_API_KEY.")
            case openai.APIStatusError() if is_loading(error):
                again_in = read_retry_after(error)
                moment = f"Try again in {_name_time(again_in or 0)}."
                message = f"The language model {self.name} is still being loaded{quote(error)}. {moment}"
                return ModelLoading(message, again_in=again_in, said=tell(error))
            case openai.APITimeoutError() if not isinstance(error.__cause__, httpx2.ConnectTimeout):
                return super()._translate(error)
            case openai.APIStatusError() if error.status_code in (404, 405):
                return ModelError(self._explain_absence(error), said=tell(error))
            case openai.APIError() if is_too_long(error):
                short = f"The request is larger than what the language model {self.name} takes a minute{quote(error)}."
                return ContextTooLong(short if find_allowed(error) else None)
            case openai.APIStatusError() if error.status_code < 500 and error.status_code not in _PASSING:
                message = f"The language model {self.name} did not accept the request{quote(error)}."
                return ModelError(message, said=tell(error))
            case openai.APIStatusError():
                again_in, is_busy = read_retry_after(error), error.status_code == 429
                said = (
                    "is busy" if is_busy else f"'s server reported an error{quote(error) or f' ({error.status_code})'}"
                )
                message = f"The language model{' ' * is_busy}{said}. Try again in {_name_time(again_in or 0)}."
                return ModelUnavailable(message, again_in=again_in, said=tell(error))
            case openai.OpenAIError():
                return translate_silence(error, read_retry_after(error))
        return super()._translate(error)

    def _explain_absence(self, error: openai.APIStatusError) -> str:
        """Return why an address has no such model, which may have any cause that the server names."""
        if error.response.history:
            there = error.request.url.copy_with(query=None, userinfo=b"")
            return f"The address of the language model {self.name} redirects to {there}, where it is not{quote(error)}."
        if error.status_code == 405:
            return f"The address of the language model {self.name} takes no questions{quote(error)}. {_ADDRESS}"
        absent = f"There is no language model {self.name} for this account and address{quote(error)}."
        return f"{absent} Check its name. {_ADDRESS}"


def _name_time(seconds: float) -> str:
    if seconds < 100:
        return "a moment"
    return f"{seconds / 60:.0f} minutes" if seconds < 6000 else f"{seconds / 3600:.0f} hours"


class _Completions:
    """Replaces `client.chat.completions`: asks as the server likes it, and returns replies and chunks as plain dicts.

    `ChatOpenAI` accepts dicts as they are. Converting each request to the SDK's types, and each chunk from them, is
    most of the cost of a call and of a streamed token.
    """

    def __init__(self, server: openai.AsyncOpenAI) -> None:
        self.with_raw_response = self
        self.takes_temperature = True
        """False for a model of which LangChain's package knows that it takes none."""
        self._server = server
        self._habits: Habits | None = None
        self._loading: asyncio.Task[None] | None = None

    def recall(self) -> Habits:
        """Return what is known of server and model."""
        if self._habits is None or time.monotonic() >= self._habits.since + KEPT:
            refused = set() if self.takes_temperature else {"temperature"}
            self._habits = Habits(thinks=not self.takes_temperature, old=not self.is_openai, refused=refused)
        return self._habits

    @property
    def is_openai(self) -> bool:
        """True for OpenAI's own server."""
        return self._server.base_url.host.endswith("openai.com")

    def go_on_loading(self, model: str) -> None:
        """Let a server of one's own load the model, in one task at a time."""
        if (self._loading is None or self._loading.done()) and not self.is_openai:
            self._loading = asyncio.create_task(self._load(model))

    async def close(self) -> None:
        """End what runs."""
        if self._loading is not None:
            await end_tasks(self._loading)

    async def _load(self, model: str) -> None:
        """Keep a request for one token open until something comes: some servers give up loading a model when whoever
        asked has left (Ollama)."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hello!"}], "stream": True, "max_tokens": 1}
        with suppress(openai.OpenAIError, httpx2.HTTPError, TimeoutError):
            async with asyncio.timeout(LOADING):
                response = await self._server.post(
                    "/chat/completions", cast_to=httpx2.Response, body=body, stream=True, options={"timeout": LOADING}
                )
                async with aclosing(response):
                    await anext(response.aiter_bytes(), None)

    async def create(
        self, *, stream: bool = False, extra_body: dict[str, Any] | None = None, **payload: Any
    ) -> "_Stream | _Whole":
        body = {**payload, "stream": stream, **(extra_body or {})}
        used: list[dict[str, Any] | None] = []
        while True:
            answer = await self.ask(body)
            if not isinstance(answer.reply, dict):
                return _Stream(self, body, answer)
            used.append(answer.reply["usage"])
            if not self.learn(answer, body, answer.reply["usage"]):
                return _Whole(answer.response.headers, {**answer.reply, "usage": sum_usage(used)})

    async def ask(self, body: dict[str, Any]) -> "_Answer":
        """Ask, and where the server refuses, also within a stream, again without what it may refuse."""
        habits, stream = self.recall(), body["stream"]
        offered = [tool["function"]["name"] for tool in body.get("tools", [])]
        left_out: list[str] = []
        tried: set[str] = set()
        first = last = None
        wanted = body.get("max_completion_tokens") or body.get("max_tokens") or 0
        most = math.inf
        while True:
            sent, used = habits.fit(body, habits.refused.union(left_out), most)
            reader = ReplyReader(opened=habits.opened, offered=offered)
            try:
                response = await self._server.post(
                    "/chat/completions", cast_to=httpx2.Response, body=sent, stream=stream
                )
                try:
                    reply = await _begin(read_stream(response, reader)) if stream else read_whole(response, reader)
                except BaseException as error:
                    await response.aclose()
                    habits.opened = habits.opened or isinstance(error, ThoughtAloudError)
                    if isinstance(error, ServerError):
                        raise make_status_error(error, response) from error
                    if isinstance(error, ValueError):  # which may quote a reply that repeats the request
                        error.request = response.request  # type: ignore[attr-defined]
                    raise
            except openai.APIStatusError as error:
                address = self._server.base_url
                if error.status_code in (404, 405) and address.path == "/":
                    # Most servers answer below /v1, which is easily forgotten.
                    self._server.base_url = address.copy_with(path="/v1/")
                    continue
                if smaller := find_smaller(error, sent, wanted):
                    most = smaller
                    habits.note_smaller(error, sent)
                    continue
                if habits.finds_room(error, sent) or habits.learns_to_recall(error):
                    continue
                following = habits.find_next(error, used, tried) if habits.is_refusal(error, used, tried) else None
                first = first or error
                if following is None:
                    raise habits.explain(sent, first) from None
                if left_out and last == spell(error) and not is_pair(left_out[-1], following):
                    # That was not what it refused.
                    guiltless = left_out[-1]
                    left_out = [name for name in left_out if name != guiltless and not is_pair(name, guiltless)]
                left_out.append(following)
                tried.add(following)
                last = spell(error)
                continue
            habits.note_reply(sent, used, set(left_out), empty=not (reader.said or reader.thought))
            if isinstance(reply, dict):
                habits.note_calls(reply)
            return _Answer(response, reader, reply, sent)

    def learn(self, answer: "_Answer", body: dict[str, Any], usage: dict[str, Any] | None) -> bool:
        """Learn from a reply that has ended. Returns True where asking again helps: its tokens were used up by
        thoughts, and there is more room, or by blanks, which a format allows without end.

        Raises `ContextOverflowError` where it is empty because the prompt fills the window.
        """
        habits, reader = self.recall(), answer.reader
        habits.thinks = habits.thinks or reader.thought
        end = read_end(reader.finish)
        is_full = end == "full"
        if reader.closed_only or (reader.text.strip() and not is_full):
            habits.opened = reader.closed_only
        if is_full and reader.text and not reader.text.strip() and not reader.thought:
            formatted = "response_format" in body and not habits.refused >= FORMATS
            habits.refused |= FORMATS if formatted else set()
            return formatted
        is_ended = end in ("full", "whole") or reader.finish == UNSAID
        is_silent = is_ended and not (reader.said or reader.thought or reader.text)
        if is_silent and habits.fills_window(answer.sent, usage, full=is_full):
            raise ContextOverflowError("The reply has no word.")
        return is_full and (reader.thought or not reader.said) and habits.find_room()


@dataclass(frozen=True, slots=True)
class _Answer:
    response: httpx2.Response
    reader: ReplyReader
    reply: dict[str, Any] | AsyncIterator[dict[str, Any]]
    """The whole reply, or the chunks of a stream."""
    sent: dict[str, Any]


async def _begin(chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    """Wait for the first chunk that says something, and return all of them. A server may refuse a request in the
    stream, or be too busy for it."""
    begun = []
    async for chunk in chunks:
        begun.append(chunk)
        choice = chunk["choices"][0]
        if choice["delta"]["content"] or choice["finish_reason"]:
            break

    async def go_on() -> AsyncIterator[dict[str, Any]]:
        for chunk in begun:
            yield chunk
        async for chunk in chunks:
            yield chunk

    return go_on()


async def _find_usage(chunks: AsyncIterator[dict[str, Any]]) -> dict[str, Any] | None:
    """Wait for the count of tokens."""
    with suppress(TimeoutError, ServerError, httpx2.HTTPError, *_UNUSABLE):
        async with asyncio.timeout(TAIL):
            return next((chunk["usage"] for chunk in [await anext(chunks, None)] if chunk), None)
    return None


class _Whole:
    """A whole reply."""

    def __init__(self, headers: httpx2.Headers, reply: dict[str, Any]) -> None:
        self.headers = headers
        self._reply = reply

    def parse(self) -> dict[str, Any]:
        return self._reply


class _Stream:
    """A reply as a stream. One that ends among thoughts is asked for again, with more room."""

    def __init__(self, completions: _Completions, body: dict[str, Any], answer: _Answer) -> None:
        self.headers = answer.response.headers
        self._completions = completions
        self._body = body
        self._answer = answer

    def parse(self) -> "_Stream":
        return self

    async def __aenter__(self) -> AsyncIterator[dict[str, Any]]:
        return self._read()

    async def __aexit__(self, *error: object) -> None:
        await self._answer.response.aclose()

    async def _read(self) -> AsyncIterator[dict[str, Any]]:
        spent: list[dict[str, Any] | None] = []
        while True:
            again, answer = False, self._answer
            usage: dict[str, Any] | None = None
            assert not isinstance(answer.reply, dict)
            try:
                async for chunk in answer.reply:
                    usage = chunk["usage"] or usage
                    if chunk["choices"][0]["finish_reason"]:
                        # Why there is no word the count tells, which mostly comes behind the end.
                        counted = usage or (None if answer.reader.said else await _find_usage(answer.reply))
                        usage, chunk = counted, {**chunk, "usage": chunk["usage"] or counted}
                        again = self._completions.learn(answer, self._body, usage) and not answer.reader.said
                    if not again:
                        yield {**chunk, "usage": sum_usage([*spent, usage]) if chunk["usage"] else None}
            except ServerError as error:
                raise make_status_error(error, self._answer.response) from error
            except ThoughtAloudError:
                self._completions.recall().opened = True
                raise
            if not again:
                return
            spent.append(usage)
            await self._answer.response.aclose()
            self._answer = await self._completions.ask(self._body)


def make_status_error(error: ServerError, response: httpx2.Response) -> openai.APIStatusError:
    """Return the error as if the response had its status."""
    kind = _STATUSES.get(error.status) or (openai.InternalServerError if error.status >= 500 else openai.APIStatusError)
    told = httpx2.Response(error.status, headers=response.headers, request=response.request)
    return kind(str(error), response=told, body=error.body)


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
