"""The record of a run: the log of every turn, greetings and refusals too."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from domain.documents import Citation
from domain.state import Degradation, Usage


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One execution of the graph, or one answer served from the cache."""

    run_id: str
    thread_id: str
    workspace_id: str
    mode: str
    question: str
    started_at: datetime
    standalone_question: str = ""
    queries: list[str] = field(default_factory=list)
    document_ids: list[str] | None = None
    route: str = ""
    retries: int = 0
    candidates: int = 0
    sources: int = 0
    top_score: float | None = None
    confidence: float = 0.0
    verification: str = "skipped"
    cached: bool = False
    answer: str = ""
    citations: list[Citation] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    cost: float | None = None
    timings: dict[str, float] = field(default_factory=dict)
    """Milliseconds by node, plus `total`."""
    warnings: list[str] = field(default_factory=list)
    error: str | None = None
    """The code of the error that ended it."""
    forked_from: dict[str, Any] | None = None
    """`{"thread_id", "checkpoint_id", "changed"}` of a replay."""
    answered_by: str = ""
    """The language model that wrote the answer, or `local`; empty where nothing was written."""
    degraded: list[Degradation] = field(default_factory=list)
    """What the run went on without, and why."""
    prompts: dict[str, str] = field(default_factory=dict)
    """The version of each prompt that a model was asked with, by node."""


CostKey = Literal["mode", "node", "model", "workspace"]
"""What costs can be told apart by."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What runs that share a mode, a node, a model or a workspace consumed."""

    name: str | None
    """None where the runs called no model, as those from the cache."""
    runs: int
    """In which it took part; a run with several nodes or models counts for each."""
    cached: int
    """Those of them that came from the cache."""
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    """US dollars, of the calls whose price is known."""
    unpriced: int
    """Calls whose price is not known."""


class RunLog(Protocol):
    """Keeps the records. Raises `DatabaseUnavailable`."""

    async def record(self, run: RunRecord, tape: bytes | None = None) -> None:
        """Keep the record, with the run's encoded tape. The tape goes with the run, and with its thread."""
        ...

    async def get(self, workspace_id: str, run_id: str) -> RunRecord | None: ...

    async def get_tape(self, workspace_id: str, run_id: str) -> bytes | None: ...

    async def list_thread(self, workspace_id: str, thread_id: str) -> list[RunRecord]:
        """Oldest first."""
        ...

    async def sum_costs(
        self, workspace_id: str | None, since: datetime, by: CostKey
    ) -> tuple[list[Spending], Spending]:
        """What the runs since then consumed, dearest first, and all of them together. Of all workspaces where
        `workspace_id` is None: for whoever runs the service, not for a tenant."""
        ...


class ThreadStore(Protocol):
    """Who owns which thread. Raises `DatabaseUnavailable`."""

    async def claim(self, workspace_id: str, thread_id: str) -> None:
        """Create the thread, or do nothing where the workspace has it already.

        Raises `UnknownThread` where another workspace owns the id: its existence is not revealed.
        """
        ...

    async def exists(self, workspace_id: str, thread_id: str) -> bool: ...
