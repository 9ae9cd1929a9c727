"""Claude over Anthropic's own API. Needs the extra `anthropic`."""

import asyncio
from functools import cached_property

import anthropic
from langchain_anthropic import ChatAnthropic

from app.adapters.chat.langchain import BOUNDED
from app.adapters.chat.providers import CHECK_SECONDS
from app.adapters.sdk_errors import explain_silence


class Claude(ChatAnthropic):
    """`ChatAnthropic` with connections that can be closed. LangChain's own are shared by all instances and kept as long
    as the process lives."""

    @cached_property
    def _async_client(self) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            api_key=self.anthropic_api_key.get_secret_value(),
            base_url=self.anthropic_api_url,
            timeout=self.default_request_timeout,
            max_retries=self.max_retries,
            http_client=anthropic.DefaultAsyncHttpxClient(timeout=self.default_request_timeout, **BOUNDED),
        )

    async def check(self) -> str | None:
        """Return a problem with the key, the address or the model's name, as a sentence for users; None if there is
        none. Takes at most 3 seconds."""
        probe = self._async_client.with_options(timeout=CHECK_SECONDS)
        shown = probe.base_url.copy_with(userinfo=b"")
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await probe.models.retrieve(self.model)
        except anthropic.AuthenticationError:
            return "The language model's provider did not accept the API key. Check ANTHROPIC_API_KEY."
        except (anthropic.APIConnectionError, TimeoutError) as error:
            return explain_silence(f"The language model's server at {shown}", error, "ANTHROPIC_BASE_URL")
        except anthropic.NotFoundError as error:
            # A gateway without a list of models also answers 404, but not in these words.
            if "not_found_error" in str(error.body):
                return f"The server at {shown} does not know a model {self.model!r}."
        except anthropic.AnthropicError:
            return None
        return None

    async def aclose(self) -> None:
        """Close the connections."""
        await self._async_client.close()
