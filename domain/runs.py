"""Runs: the request, the lease of the process that executes it, the status, and the record."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, NotRequired

from typing_extensions import TypedDict

from domain.documents import Citation
from domain.events import Done, Failed
from domain.outcome import Outcome, Reason
from domain.scope import ScopeJson
from domain.state import Degradation, Turn, TurnInput, Usage

NEW_THREAD = "__new_thread"
"""Key of a run's configuration whose thread has no states yet, so that none are looked for. LangGraph leaves keys with
such a name out of the metadata."""


FIRST_TOKEN: Final = "first_token"
"""Key of a record's timings: the milliseconds until the answer's first word was sent."""


class StepTime(TypedDict):
    """One execution of a node."""

    node: str
    ms: float


class Withdrawal(TypedDict):
    """Text that was shown before the answer, and replaced."""

    reason: str
    """That of the `correction`; see `domain.events`. Of a run that failed while it wrote, the code of the error."""
    withdrawn: str
    """The text, cut where it is long."""


class ToolUse(TypedDict):
    """A call of a tool by the research agent."""

    round: int
    """Calls of one round, counted from 1, were made at once."""
    call_id: str
    name: str
    arguments: dict[str, Any]
    text: str
    """What the tool said, cut where it is long; empty where it brought sources alone."""
    sources: int | None
    """Number of the sources that it brought; None where it has not run to its end."""


class Shown(TypedDict):
    """What a reader saw of a run besides its end."""

    sources: list[Citation]
    """The sources that the answer does not cite; the others are the citations of the end."""
    steps: list[StepTime]
    corrections: list[Withdrawal]
    tools: NotRequired[list[ToolUse]]
    """Absent where no tool was called."""


RunState = Literal["queued", "running", "done", "failed", "stopped"]
"""The last three are final. `stopped`: somebody stopped the run; what it had written stays."""
WhenBusy = Literal["reject", "queue", "interrupt"]
"""The treatment of a question whose thread is busy: refuse it, let it wait, or stop the run that it would wait for."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """An accepted run, with all that another process needs to start it."""

    run_id: str
    thread_id: str
    workspace_id: str
    turn: TurnInput
    begins_thread: bool = False
    """True where the thread was created for this run."""
    forked_from: dict[str, Any] | None = None
    """Set for a replay: its thread holds the saved state to run on from, and no question comes in."""
    history: list[Turn] = field(default_factory=list)
    """The conversation before the question, where the client keeps it. Used where the thread has none."""
    caller: str = ""
    """Name of who asked."""
    noted: dict[str, Any] = field(default_factory=dict)
    """What the client has noted of the run, and wants to read again."""
    anew: bool = False
    """True: take no stored answer."""
    leaves_unread: bool = False
    """True where the client has sent more beside the question: the answer is given a warning."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to execute a run.

    A process that does not respond for too long loses it; another process then holds one with a greater `attempt`.
    """

    request: RunRequest
    attempt: int
    """Counts from 1."""
    stop_requested: bool = False
    """True where the run is to stop before it begins."""
    unattended: bool = field(default=False, compare=False)
    """True where a worker took the run from the queue, perhaps long after it was asked."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run."""

    request: RunRequest
    state: RunState
    attempt: int
    """Number of times that the run was started."""
    accepted_at: datetime
    started_at: datetime | None = None
    """Start of the latest attempt."""
    ended_at: datetime | None = None
    ended: Done | Failed | None = None
    """The last event, once the run has ended."""
    ended_id: str | None = None
    """The id of the last event in the run's stream."""
    stop_requested: bool = False
    shown: Shown | None = None
    """None until the run has ended."""


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
    scope: ScopeJson | None = None
    route: str = ""
    retries: int = 0
    candidates: int = 0
    sources: int = 0
    top_score: float | None = None
    confidence: float = 0.0
    outcome: Outcome | None = None
    """None where the run failed, or was stopped before it had one."""
    outcome_reasons: list[Reason] = field(default_factory=list)
    verification: str = "skipped"
    cached: bool = False
    answer: str = ""
    citations: list[Citation] = field(default_factory=list)
    usage: list[Usage] = field(default_factory=list)
    cost: float | None = None
    timings: dict[str, float] = field(default_factory=dict)
    """Milliseconds by node, plus `total`, and `FIRST_TOKEN` where words were streamed."""
    warnings: list[str] = field(default_factory=list)
    error: str | None = None
    """The code of the error that ended the run, or `stopped`."""
    forked_from: dict[str, Any] | None = None
    """Set for a replay: `{"thread_id", "run_id", "checkpoint_id", "changed"}`."""
    answered_by: str = ""
    """The language model that wrote the answer, or `local`; empty where nothing was written."""
    degraded: list[Degradation] = field(default_factory=list)
    """The run's fallbacks, in order."""
    prompts: dict[str, str] = field(default_factory=dict)
    """The version of each prompt that a model was asked with, by node."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A thread in which somebody has asked something."""

    thread_id: str
    title: str
    """The first question, unless somebody has named it."""
    created_at: datetime
    updated_at: datetime
    """When the last question came."""
    turns: int
    running: str | None
    """The run that is being executed, or else the next one."""
    outdated: bool
    """True where an answer cites a document that holds something else by now, or is gone."""


CostKey = Literal["mode", "node", "model", "workspace", "day", "caller"]
"""The attribute by which to group costs. Days are those of UTC; callers are on record as long as their runs."""


@dataclass(frozen=True, slots=True)
class Spending:
    """The consumption of all runs with the same mode, node, model, workspace or caller, or of the same day."""

    name: str | None
    """None for runs that called no model, such as those from the cache, and for assistants that the caller may not use.
    """
    runs: int
    """A run with several nodes or models counts for each."""
    cached: int
    """Runs among them that were answered from the cache."""
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    """US dollars, for the calls of known price."""
    unpriced: int
    """Calls of unknown price."""
    estimated: int
    """Calls that were given up, whose tokens and dollars are an estimate."""
    cached_tokens: int
    """Tokens among those read that providers knew from an earlier request."""
