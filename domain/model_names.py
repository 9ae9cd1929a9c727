"""Language models: their names in settings and profiles, which there are, and what a trial tells of one."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError


def _check_model(name: str) -> str:
    if not name or name.endswith(":") or any(map(str.isspace, name)):
        raise PydanticCustomError(
            "model_name",
            "{given} is no name of a language model; without this setting the default is used",
            {"given": repr(name)},
        )
    return name


NO_MODEL = ("none", "local")
"""Names for no model: what would ask one judges or quotes locally."""

ModelName = Annotated[str, AfterValidator(_check_model)]
"""A language model's name, with or without its provider before a colon."""


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A server that speaks OpenAI's protocol."""

    kind: str
    """Such as `ollama`, which also stands before the colon in `askgraph models use`."""
    address: str
    """Of its API, such as `http://127.0.0.1:11434/v1`."""
    models: list[str]
    """The names that it lists."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One small question."""

    problem: str | None
    """Why the reply is of no use; None where it is."""
    seconds: float
    """How long the reply took."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a model can do."""

    writes: Attempt
    cites: bool
    """True if it set a marker where its answer has a source. Answers without are still compared with the sources."""
    judges: Attempt
    calls: Attempt


@dataclass(frozen=True, slots=True)
class KnownModels:
    """The language models of a deployment."""

    used: dict[str, str]
    """What writes, judges and verifies; empty where everything is done without a model."""
    address: str | None
    """Of the server that speaks OpenAI's protocol; null: OpenAI."""
    chosen: str | None
    """What writes from the next start on, by the choice that is kept; null: none is."""
    found: list[ModelServer]
    """Servers that listen on this machine."""
