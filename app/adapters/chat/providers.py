"""The providers of language models: one line in `PACKAGES` for each, and its own module.

`anthropic:NAME` goes through its LangChain package. Any other name, with or without the prefix `openai:`, goes through
OpenAI's protocol; names of local models contain colons too, as in `qwen3:8b`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from domain.errors import ConfigurationError, ModelRejectedKey

CHECK_SECONDS = 3.0
"""Seconds that a start waits for a provider to confirm key, address and model."""


class Package(NamedTuple):
    """The LangChain chat model of a provider. It takes `model`, `api_key`, `base_url`, `timeout`, `max_retries` and
    `max_tokens`, raises `langchain_core.exceptions.ModelError`, and may have `check` and `aclose`."""

    module: str
    name: str
    key: str
    """The variable that holds the API key."""


PACKAGES = {"anthropic": Package("app.adapters.chat.anthropic", "Claude", "ANTHROPIC_API_KEY")}
"""Keyed by the part of a model's name before the colon. askgraph's extra that installs the package has the same name,
and the settings of key and address begin with it."""

_GEMINI = (
    "{name!r} is no name of a model any more. Set OPENAI_API_KEY to the key of Gemini, "
    "OPENAI_BASE_URL=https://generativelanguage.googleapis.com/v1beta/openai/, and name the model {model!r}."
)


@dataclass(frozen=True, slots=True)
class Access:
    """Key and address of one provider."""

    api_key: str = ""
    base_url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key_file: Path | None = None
    """Takes the place of the key."""

    def __bool__(self) -> bool:
        """True if the provider is configured: a server of one's own may need no key."""
        return bool(self.api_key or self.base_url or self.key_file)

    @property
    def key(self) -> str | Callable[[], Awaitable[str]]:
        """The key, or what reads it anew. The SDK does not start without one; local servers ignore it."""
        return self.api_key or "none" if self.key_file is None else self._read_key

    async def _read_key(self) -> str:
        assert self.key_file is not None
        try:
            return (await asyncio.to_thread(self.key_file.read_text)).strip()
        except (OSError, ValueError) as error:
            message = "The key of the language model cannot be read. Check OPENAI_API_KEY_FILE."
            raise ModelRejectedKey(message, said=str(error)) from error


def split_name(name: str) -> tuple[str, str]:
    """Split a model's name into the provider and the provider's name for it.

    Raises `ConfigurationError` for a name that earlier versions knew.
    """
    provider, _, model = name.partition(":")
    if provider == "google_genai":
        raise ConfigurationError(_GEMINI.format(name=name, model=model))
    return (provider, model) if model and provider in ("openai", *PACKAGES) else ("openai", name)
