"""Maps model names to providers.

`anthropic:NAME` and `google_genai:NAME` go through their LangChain package. Any other name, with or without the prefix
`openai:`, goes through OpenAI's protocol; names of local models contain colons too, as in `qwen3:8b`.
"""

from dataclasses import dataclass
from typing import NamedTuple

CHECK_SECONDS = 3.0
"""Seconds that a start waits for a provider to confirm key, address and model."""


class Package(NamedTuple):
    """The LangChain chat model of a provider. It takes `model`, `api_key`, `base_url`, `timeout` and `max_retries`,
    raises `langchain_core.exceptions.ModelError`, and may have `check` and `aclose`."""

    module: str
    name: str
    setting: str
    """The beginning of its settings' names, `…_api_key` and `…_base_url`, and askgraph's extra that installs it."""
    key: str
    """The variable that holds the API key."""
    limit: str
    """The option that limits a reply's tokens."""
    retries: int
    """Value of `max_retries` with which the package makes a single attempt."""


PACKAGES = {
    "anthropic": Package("app.adapters.chat.anthropic", "Claude", "anthropic", "ANTHROPIC_API_KEY", "max_tokens", 0),
    "google_genai": Package("app.adapters.chat.google", "Gemini", "google", "GOOGLE_API_KEY", "max_output_tokens", 1),
}
"""Keyed by the part of a model's name before the colon."""


@dataclass(frozen=True, slots=True)
class Access:
    """Key and address of one provider."""

    api_key: str = ""
    base_url: str | None = None

    def __bool__(self) -> bool:
        """True if the provider is configured: a server of one's own may need no key."""
        return bool(self.api_key or self.base_url)


def split_name(name: str) -> tuple[str, str]:
    """Split a model's name into the provider and the provider's name for it."""
    provider, _, model = name.partition(":")
    return (provider, model) if model and provider in ("openai", *PACKAGES) else ("openai", name)
