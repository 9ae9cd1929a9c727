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
"""Models before Gemini 3. Later ones should keep their own temperature, and some accept no other.
https://ai.google.dev/gemini-api/docs/gemini-3"""
_FORCED_BUDGET = 128
"""Smallest thinking budget of Gemini 2.5 Pro in tokens; the other models of 2.5 accept 0.
https://ai.google.dev/gemini-api/docs/thinking"""
_THOUGHTS = 2000
"""Tokens added to a reply's limit for models that think: thoughts count against the limit and would use up a short one
before the first word."""

_opened: ContextVar[list[httpx2.Response] | None] = ContextVar("opened", default=None)
"""The responses to the calls of the stream that is being opened in this context."""


class Gemini(ChatGoogleGenerativeAI):
    """`ChatGoogleGenerativeAI` with httpx2 connections that can be closed, and with as little thinking as possible.

    LangChain's own connections use httpx, or aiohttp if it is installed, and each raises its own errors.
    """

    vertexai: bool | None = False
    _http: httpx2.AsyncClient = PrivateAttr()
    _client: Client = PrivateAttr()

    @model_validator(mode="after")
    def validate_environment(self) -> Self:
        """Make the client, instead of LangChain's."""
        # The SDK also sends its timeout to the server, which then ends a stream after that time even while it flows.
        # Callers bound each wait themselves.
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
        """Return a problem with the key, the address or the model's name, as a sentence for users; None if there is
        none. Takes at most 3 seconds."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await self.async_client.models.get(model=self.model)
        except (httpx2.HTTPError, OSError):
            return f"The language model's server at {self.base_url} does not answer. Check GOOGLE_GEMINI_BASE_URL."
        except APIError as error:
            if error.code == 401 or _is_bad_key(error):
                return "The language model's provider did not accept the API key. Check GOOGLE_API_KEY."
            # A gateway without a list of models also answers 404, but not in these words.
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
            # The SDK's generators refer to each other, so those of an abandoned stream would read until the garbage
            # collector finds them, and Google would write to the end.
            for response in responses:
                await response.aclose()

    def _adapt(self, options: dict[str, Any]) -> dict[str, Any]:
        """Adapt the options to this model."""
        # Otherwise the SDK looks for functions to call.
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
    """Translate errors that LangChain's classes do not distinguish."""
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
    """Return True for an unknown API key, which Google answers with status 400.
    https://ai.google.dev/gemini-api/docs/api-key"""
    return "API_KEY_INVALID" in str(error.details)


def _read_retry_info(error: APIError) -> float | None:
    """Return the seconds until a call may succeed, from the error's `RetryInfo` or the response's header.
    https://github.com/googleapis/googleapis/blob/master/google/rpc/error_details.proto"""
    delay = re.search(r"'retryDelay': '([\d.]+)s'", str(error.details))
    return float(delay[1]) if delay else read_retry_after(error)


def _mark_blocked(reply: ChatGeneration, metadata: dict[str, Any] | None) -> None:
    """Mark a refused prompt, which has no reply, like a reply that a content filter stopped."""
    if ((metadata or {}).get("prompt_feedback") or {}).get("block_reason"):
        reply.message.response_metadata["finish_reason"] = "content_filter"
