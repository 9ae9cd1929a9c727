"""Gemini over Google's own API. Needs the extra `google`."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import httpx2
from google.genai import Client
from google.genai.client import AsyncClient
from google.genai.errors import APIError
from google.genai.types import HttpOptions
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.exceptions import ModelAuthenticationError
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_google_genai.chat_models import ChatGoogleGenerativeAIError
from pydantic import PrivateAttr, model_validator

from app.adapters.chat.langchain import read_retry_after
from app.adapters.chat.providers import CHECK_SECONDS
from domain.errors import ModelUnavailable

_ADDRESS = "https://generativelanguage.googleapis.com"

_PASSING = (408, 409, 429)
"""Statuses below 500 after which asking again may help."""

_OLDER = re.compile(r"gemini-[12]\.|gemma|learnlm")
"""Models before Gemini 3. Later ones are to be left at their own temperature, and some take no other.
https://ai.google.dev/gemini-api/docs/gemini-3"""
_FORCED_BUDGET = 128
"""Tokens, the least that Gemini 2.5 Pro may think; the others of 2.5 need not.
https://ai.google.dev/gemini-api/docs/thinking"""
_THOUGHTS = 2000
"""Tokens that a reply may take beyond its limit where a model thinks: thoughts count against the limit, and one that is
as short as an answer or a judgement is spent before the first word."""

_opened: ContextVar[list[httpx2.Response] | None] = ContextVar("opened", default=None)
"""Where to keep the responses to the calls of a stream that is being opened."""


class Gemini(ChatGoogleGenerativeAI):
    """`ChatGoogleGenerativeAI` over connections of one kind that can be closed, which thinks as little as it can.

    LangChain's own go through httpx, or aiohttp where something has installed it, each with errors of its own.
    """

    vertexai: bool | None = False
    _http: httpx2.AsyncClient = PrivateAttr()
    _client: Client = PrivateAttr()

    @model_validator(mode="after")
    def validate_environment(self) -> Self:
        """Make the client. Takes the place of LangChain's."""
        # The SDK tells the server as well, which then ends a stream after that time, however well it flows. Whoever
        # calls bounds each wait.
        self.timeout = None
        self.base_url = self.base_url or _ADDRESS
        if not _OLDER.search(self.model):
            self.temperature = None
        self._http = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=1000, max_keepalive_connections=100),
            event_hooks={"response": [_keep]},
        )
        self._client = Client(
            vertexai=False,
            api_key=self.google_api_key.get_secret_value() if self.google_api_key else None,
            http_options=HttpOptions(base_url=str(self.base_url), httpx_async_client=self._http),
        )
        self.client = self._client
        return self

    @property
    def async_client(self) -> AsyncClient:
        """The SDK's client."""
        return self._client.aio

    async def check(self) -> str | None:
        """What is wrong with the key, the address or the model's name, so that a user can act; None where nothing is.
        Takes at most 3 seconds."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self.async_client.models.get(model=self.model)
        except (httpx2.HTTPError, OSError):
            return f"The language model's server at {self.base_url} does not answer. Check GOOGLE_GEMINI_BASE_URL."
        except APIError as error:
            if error.code == 401 or _is_bad_key(error):
                return "The language model's provider did not accept the API key. Check GOOGLE_API_KEY."
            # A gateway without a list of models says 404, too, but not in these words.
            if error.status == "NOT_FOUND":
                return f"The server at {self.base_url} does not know a model {self.model!r}."
        except ValueError:
            return None
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        self._client.close()
        await self._http.aclose()

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> ChatResult:
        with _translated():
            result = await super()._agenerate(messages, stop, run_manager, **self._adapt(options))
        _mark_blocked(result.generations[0], result.llm_output)
        return result

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        responses: list[httpx2.Response] = []
        _opened.set(responses)
        try:
            with _translated():
                async for chunk in super()._astream(messages, stop, run_manager, **self._adapt(options)):
                    _mark_blocked(chunk, chunk.message.response_metadata)
                    yield chunk
        finally:
            _opened.set(None)
            # The SDK's generators hold each other, so those of a stream that is left would go on reading until they are
            # collected as garbage, and Google would write to the end.
            for response in responses:
                await response.aclose()

    def _adapt(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options as this model takes them."""
        # The SDK would look for functions to call by itself.
        adapted = {**options, "automatic_function_calling": {"disable": True}}
        if self.temperature is None:
            adapted.pop("temperature", None)
        if "gemini-2.5" in self.model:
            adapted["thinking_budget"] = _FORCED_BUDGET if "pro" in self.model else 0
        elif levels := (self.profile or {}).get("reasoning_effort_levels"):
            adapted["thinking_level"] = levels[0]
        if "max_output_tokens" in adapted and (adapted.get("thinking_budget") or self.temperature is None):
            adapted["max_output_tokens"] += _THOUGHTS
        return adapted


async def _keep(response: httpx2.Response) -> None:
    if (responses := _opened.get()) is not None:
        responses.append(response)


@contextmanager
def _translated() -> Iterator[None]:
    """Errors that LangChain's classes do not tell apart."""
    try:
        yield
    except (APIError, ChatGoogleGenerativeAIError) as error:
        said = error if isinstance(error, APIError) else error.__cause__
        if isinstance(said, APIError):
            if said.code >= 500 or said.code in _PASSING:
                raise ModelUnavailable(again_in=_read_retry_info(said)) from error
            if _is_bad_key(said):
                raise ModelAuthenticationError(str(said)) from error
        raise


def _is_bad_key(error: APIError) -> bool:
    """Google says 400 of a key that does not exist. https://ai.google.dev/gemini-api/docs/api-key"""
    return "API_KEY_INVALID" in str(error.details)


def _read_retry_info(error: APIError) -> float | None:
    """Seconds until a call may succeed, of the error's `RetryInfo`, or of its response's header.
    https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto"""
    delay = re.search(r"'retryDelay': '([\d.]+)s'", str(error.details))
    return float(delay[1]) if delay else read_retry_after(error)


def _mark_blocked(reply: ChatGeneration, metadata: dict[str, Any] | None) -> None:
    """A prompt that is refused has no reply; it ends as one that a filter has stopped."""
    if ((metadata or {}).get("prompt_feedback") or {}).get("block_reason"):
        reply.message.response_metadata["finish_reason"] = "content_filter"
