"""The context of a run: the ports, and the ledger of usage and warnings.

LangGraph does not checkpoint the context; `app/wiring/services.py` makes one per run, also to resume and to replay.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

import orjson

from domain.documents import Candidate, Source
from domain.errors import StateError
from domain.execution.spans import Note, ignore
from domain.history.lineage import ReadDocuments
from domain.library.similarity import find_scale
from domain.model_names import NO_MODEL
from domain.ports.calculation import Calculator
from domain.ports.embedding import Embedder
from domain.ports.functions import Functions
from domain.ports.judgement import Judges
from domain.ports.library import Library
from domain.ports.models import LARGER_WINDOW, ChatModel, FailedAttempt, ModelUsage, TokenCounter
from domain.ports.pictures import PagePictures
from domain.ports.reranking import Reranker
from domain.profile import ModelKnobs, Profile
from domain.scope import Scope
from domain.state import Degradation, ExecutedStep


@dataclass(slots=True)
class Ledger:
    """Usage, warnings and deadlines of the running step.

    The graph's instrumentation sets the name and the deadlines when the step begins, and moves the rest into the step's
    record when it ends.
    """

    node: str = ""
    """The name of the running step."""
    usage: list[ModelUsage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    degraded: list[Degradation] = field(default_factory=list)
    model_deadline: float | None = None
    """Event loop time at which the step goes on without its model; None: never."""
    budget_deadline: float | None = None
    """Event loop time from which the budget allows no judgement by a model; None: it always does."""
    over_budget: str = ""
    """The message for steps after that: which limit was reached."""

    def record(self, usage: ModelUsage) -> None:
        """Add what one model call consumed."""
        self.usage.append(usage)
        if usage.unread:
            problem = f"The server of the language model {usage.model} seems to have cut what it was sent"
            self.warn(f"{problem}: it counted only {usage.input_tokens:,} tokens. {LARGER_WINDOW}")

    def record_failure(self, failure: FailedAttempt) -> None:
        """Leave the attempt to the tape: it cost nothing, and what comes of it is the step's own affair."""

    def record_thoughts(self, thoughts: str) -> None:
        """Leave them to the tape: they are told to nobody else, no other model either."""

    def warn(self, message: str) -> None:
        """Tell the user and the run's record that the step went on with less than it should have had."""
        if message not in self.warnings:
            self.warnings.append(message)

    def is_over_budget(self) -> bool:
        """Return True once the run's budget allows no further judgement by a model."""
        return self.budget_deadline is not None and self.budget_deadline <= asyncio.get_running_loop().time()

    def degrade(self, degradation: Degradation) -> None:
        """Report a fallback, once, and warn of it."""
        if degradation not in self.degraded:
            self.degraded.append(degradation)
        self.warn(degradation["message"])


Found = TypeVar("Found", Candidate, Source)
Tier = Literal["small", "large", "judge"]
TIERS: tuple[Tier, ...] = ("small", "large", "judge")


@dataclass(frozen=True, slots=True)
class Models:
    """The language models by tier. None throughout means that every step judges and answers locally."""

    small: ChatModel | None = None
    """Routes, and makes small talk."""
    large: ChatModel | None = None
    """Writes answers."""
    judge: ChatModel | None = None
    """Verifies them."""
    fallbacks: tuple[ChatModel, ...] = ()
    """Asked in this order where the step's own model fails. After the last one, the step goes on locally."""
    named: Mapping[tuple[Tier, str], ChatModel] = field(default_factory=dict)
    """The models that modes and forks may name, by tier and name."""

    def choose(self, knobs: ModelKnobs) -> "Models":
        """Return the models of a mode: those that it names, and the deployment's for the other tiers. A deployment
        without models has none for any mode.

        Raises `StateError` where a fork names a model that is not connected; modes are checked at start.
        """
        chosen: dict[str, Any] = {}
        for tier in TIERS:
            name: str | None = getattr(knobs, tier)
            if name is None or not self.named:
                continue
            if name in NO_MODEL:
                chosen[tier] = None
                continue
            if (tier, name) not in self.named:
                connected = ", ".join(sorted({known for _, known in self.named}))
                raise StateError(f"profile.models.{tier} is {name!r}, which is not connected; {connected} are.")
            chosen[tier] = self.named[tier, name]
        return replace(self, **chosen) if chosen else self

    def map(self, wrap: Callable[[ChatModel], Any]) -> "Models":
        """Return what `wrap` makes of each model that there is."""

        def wrap_any(model: ChatModel | None) -> Any:
            return None if model is None else wrap(model)

        return Models(
            small=wrap_any(self.small),
            large=wrap_any(self.large),
            judge=wrap_any(self.judge),
            fallbacks=tuple(map(wrap, self.fallbacks)),
            named={key: wrap(model) for key, model in self.named.items()},
        )


def keep_measure(step: ExecutedStep) -> ExecutedStep:
    """Return the step as it was measured."""
    return step


@dataclass(frozen=True, slots=True)
class Context:
    """The ports of one run."""

    library: Library
    embedder: Embedder
    """For searching: the model that filled the index."""
    judges: Judges
    """Judge without a language model: where there is none, where it fails, and where one judgement is enough."""
    tokens: TokenCounter
    rerankers: Mapping[str, Reranker] = field(default_factory=dict)
    """By name, as in `rerank.method`."""
    calculator: Calculator | None = None
    pictures: PagePictures | None = None
    functions: Functions | None = None
    """Of MCP servers."""
    models: Models = Models()
    run_id: str | None = None
    """None where LangGraph names its runs itself, as its Studio does."""
    ledger: Ledger = field(default_factory=Ledger)
    reads: ReadDocuments = field(default_factory=ReadDocuments)
    """What the ports of the library have returned to the run (`app/answering/reading.py`)."""
    measure: Callable[[ExecutedStep], ExecutedStep] = keep_measure
    """Returns the step as it is filed and counted against the budget. A replay on a tape puts in the recorded times."""
    span: Callable[[str], AbstractContextManager[Note]] = lambda _: nullcontext(ignore)
    """Opens a span of this name in the run's trace."""

    def read_cosines(self, found: Sequence[Found]) -> Sequence[Found]:
        """Return `found` with its cosines on the scale of the embedding model that local judgement was fitted on;
        without them where the index was made with another, whose scale is not known."""
        fitted = self.judges.embedding_model
        if self.embedder.name == fitted:
            return found
        own, other = find_scale(self.embedder.name, self.embedder.scale), find_scale(fitted)

        def read(cosine: float | None) -> float | None:
            return None if cosine is None or own is None or other is None else own.map(cosine, other)

        return [{**each, "dense": read(each["dense"])} for each in found]


def scope_of(state: Mapping[str, Any]) -> Scope:
    """Return the documents that the question is answered from: those that it asks, as far as the mode has them.

    Raises `FilterError`; `RunManager.start` has raised it before any step could.
    """
    return profile_of(state).documents.narrow(Scope.from_json(state["scope"]))


def profile_of(state: Mapping[str, Any]) -> Profile:
    """Return the profile of this run."""
    return _read_profile(orjson.dumps(state["profile"]))


@lru_cache
def _read_profile(written: bytes) -> Profile:
    # Steps and edges ask for it twenty times in a turn, and turns share few profiles.
    return Profile.model_validate_json(written)
