"""A run's life: what was accepted, who executes it, how it stands, and the record that is kept of it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from domain.documents import Citation
from domain.events import Done, Failed
from domain.scope import ScopeJson
from domain.state import Degradation, TurnInput, Usage

RunState = Literal["queued", "running", "done", "failed", "stopped"]
"""The last three are ends. `stopped`: somebody asked for it, and what was written so far stands."""
WhenBusy = Literal["reject", "queue", "interrupt"]
"""What becomes of a question whose thread has another one running: it is refused, it waits, or it stops that one."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What was accepted: enough to start the run in another process."""

    run_id: str
    thread_id: str
    workspace_id: str
    turn: TurnInput
    begins_thread: bool = False
    """Whether the thread was made for it."""
    forked_from: dict[str, Any] | None = None
    """Of a replay: its thread holds the saved state that it runs on from, and no question comes in."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to execute a run. It is lost where this process does not answer for too long: then another one has a
    lease of the same run, with a greater `attempt`."""

    request: RunRequest
    attempt: int
    """From 1."""
    stop_requested: bool = False
    """Whether the run shall stop before it begins."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How a run stands."""

    request: RunRequest
    state: RunState
    attempt: int
    """How often it was begun; 0 while it waits for the first time."""
    accepted_at: datetime
    started_at: datetime | None = None
    """Of the latest attempt."""
    ended_at: datetime | None = None
    ended: Done | Failed | None = None
    """Its last event, once it has ended."""
    ended_id: str | None = None
    """The id of that event in the run's stream."""
    stop_requested: bool = False


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
    scope: ScopeJson | None = None
    """Where it was asked; None for runs before filters. `workspace_id` and `document_ids` repeat parts of it."""
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


@dataclass(frozen=True, slots=True)
class ServedRun:
    """A run that had ended when it was accepted: its answer was there already."""

    request: RunRequest
    record: RunRecord
    ended: Done
    ended_id: str
    ended_at: datetime


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
