"""Which provider a model's name asks for, and how to reach it.

`anthropic:NAME` and `google_genai:NAME` go through their LangChain package; any other name, with or without `openai:`
before it, through OpenAI's protocol. (Names of local models hold colons, too: `qwen3:8b`.)
"""

from dataclasses import dataclass
from typing import NamedTuple

CHECK_SECONDS = 3.0
"""How long a start waits for a provider's word on key, address and model."""


class Package(NamedTuple):
    """What a provider's models come from: a LangChain chat model that takes `model`, `api_key`, `base_url`, `timeout`
    and `max_retries`, and raises `langchain_core.exceptions.ModelError`. It may have `check` and `aclose`."""

    module: str
    name: str
    extra: str
    """Of askgraph, that installs the module."""
    key: str
    """The variable that holds the API key."""
    limit: str
    """The option that limits a reply's tokens."""
    retries: int
    """`max_retries` by which the package tries once."""


PACKAGES = {
    "anthropic": Package("app.adapters.chat.anthropic", "Claude", "anthropic", "ANTHROPIC_API_KEY", "max_tokens", 0),
    "google_genai": Package("app.adapters.chat.google", "Gemini", "google", "GOOGLE_API_KEY", "max_output_tokens", 1),
}
"""By the part of a model's name before the colon."""


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one provider."""

    api_key: str = ""
    base_url: str | None = None

    def __bool__(self) -> bool:
        """Whether it is in use: a server of one's own may want no key."""
        return bool(self.api_key or self.base_url)


def split_name(name: str) -> tuple[str, str]:
    """The provider, and its name for the model."""
    provider, _, model = name.partition(":")
    return (provider, model) if model and provider in ("openai", *PACKAGES) else ("openai", name)
