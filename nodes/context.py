"""What a run needs besides its state: the ports, and where usage and warnings go.

LangGraph does not checkpoint the context; `app/wiring/services.py` makes one per run, also to resume and to replay.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from domain.documents import Candidate, Source
from domain.errors import StateError
from domain.ports.embedding import Embedder
from domain.ports.judgement import Judges
from domain.ports.library import Library
from domain.ports.models import ChatModel, ModelUsage, TokenCounter
from domain.ports.reranking import Reranker
from domain.profile import ModelKnobs
from domain.state import Degradation, Step


@dataclass(slots=True)
class Ledger:
    """What the running step consumed, what it wants to warn about, and how long it may wait for a model. The graph's
    instrumentation sets its name and the deadlines when the step begins and empties the rest into its record when it
    ends."""

    node: str = ""
    """The name of the running step."""
    usage: list[ModelUsage] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    degraded: list[Degradation] = field(default_factory=list)
    model_deadline: float | None = None
    """The event loop's time by which the step goes on without its model; None: it waits."""
    budget_deadline: float | None = None
    """The event loop's time from which the run's budget allows no judgement by a model; None: it always does."""
    over_budget: str = ""
    """What is said from then on: which limit has been reached."""

    def record(self, usage: ModelUsage) -> None:
        """Add what one model call consumed."""
        self.usage.append(usage)

    def warn(self, message: str) -> None:
        """Say, for the user and the run's record, that the step went on with less than it should have had."""
        if message not in self.warnings:
            self.warnings.append(message)

    def is_over_budget(self) -> bool:
        """Whether the run's budget allows no judgement by a model any more."""
        return self.budget_deadline is not None and self.budget_deadline <= asyncio.get_running_loop().time()

    def degrade(self, degradation: Degradation) -> None:
        """Say what had to be given up, once, and warn of it."""
        if degradation not in self.degraded:
            self.degraded.append(degradation)
        self.warn(degradation["message"])

    def branch(self) -> "Ledger":
        """An empty one with the same deadlines, for work of which it is not known yet whether it is the step's."""
        return replace(self, usage=[], warnings=[], degraded=[])

    def absorb(self, branch: "Ledger") -> None:
        """Add what is in `branch`, whose work has become the step's."""
        self.usage += branch.usage
        self.warnings += [warning for warning in branch.warnings if warning not in self.warnings]
        self.degraded += [degradation for degradation in branch.degraded if degradation not in self.degraded]


Found = TypeVar("Found", Candidate, Source)
Tier = Literal["small", "large", "judge"]
TIERS: tuple[Tier, ...] = ("small", "large", "judge")


@dataclass(frozen=True, slots=True)
class Models:
    """The language models by tier. None throughout means that every step judges and answers locally."""

    small: ChatModel | None = None
    """Routes, grades, reformulates."""
    large: ChatModel | None = None
    """Writes answers."""
    judge: ChatModel | None = None
    """Verifies them."""
    fallbacks: tuple[ChatModel, ...] = ()
    """Asked in this order where the step's own model fails; after the last, the step goes on locally."""
    named: Mapping[tuple[Tier, str], ChatModel] = field(default_factory=dict)
    """What modes and forks may ask for in each tier, by name."""

    def choose(self, knobs: ModelKnobs) -> "Models":
        """The models of a mode: those that it names, and the deployment's for the rest. A deployment without models
        has none for any mode.

        Raises `StateError` where a fork names a model that is not connected; modes are checked at start.
        """
        chosen: dict[str, Any] = {}
        for tier in TIERS:
            name: str | None = getattr(knobs, tier)
            if name is None or not self.named:
                continue
            if (tier, name) not in self.named:
                connected = ", ".join(sorted({known for _, known in self.named}))
                raise StateError(f"profile.models.{tier} is {name!r}, which is not connected; {connected} are.")
            chosen[tier] = self.named[tier, name]
        return replace(self, **chosen) if chosen else self


def keep_measure(step: Step) -> Step:
    """The step as it was measured."""
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
    """By the name that `rerank.method` has for it."""
    models: Models = Models()
    run_id: str | None = None
    """None where LangGraph names its runs itself, as its Studio does."""
    ledger: Ledger = field(default_factory=Ledger)
    measure: Callable[[Step], Step] = keep_measure
    """The step as it is filed, and counted for what a run may take. A replay on a tape, which is faster than its run
    was, puts in what was measured then."""

    def read_cosines(self, found: Sequence[Found]) -> Sequence[Found]:
        """Return `found`, without its cosines where the index was made with another embedding model than the one that
        local judgement was fitted on."""
        if self.embedder.name == self.judges.embedding_model:
            return found
        return [{**each, "dense": None} for each in found]
