"""A run's life: what was accepted, who executes it, how it stands, and the record that is kept of it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from domain.documents import Citation
from domain.events import Done, Failed
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


class RunLog(Protocol):
    """The records, of which `RunQueue.end` keeps most. Raises `DatabaseUnavailable`."""

    async def record_served(self, runs: Sequence[ServedRun]) -> None:
        """Keep the records of such runs, of any workspaces, with how they stand and the threads that they begin. What
        is kept already stays as it is."""
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


class RunQueue(Protocol):
    """Which runs were accepted, and who executes them: one at a time in a thread, in the order in which they came,
    and each by one process, whose death is noticed. Raises `DatabaseUnavailable`."""

    def work(
        self, execute: Callable[[Lease], Awaitable[None]], *, concurrency: int = 8
    ) -> AbstractAsyncContextManager[None]:
        """Execute the runs that no process executes, so many at once: those that waited for another of their thread,
        and those whose process has died. `execute` returns once it has ended the run or handed it back; where it does
        neither, because it fails or is cancelled, the run is begun again. At the end of the context nothing more is
        taken; what is being executed gets some seconds to end, and is cancelled then."""
        ...

    def stop_taking(self) -> None:
        """Take no more runs from the queue; those that are being executed go on."""
        ...

    async def accept(self, request: RunRequest, *, wait: bool) -> Lease | None:
        """Store the run, and its thread where that is new. A lease where it can begin here and now. Where another run
        of the thread is not over: None, and some worker begins it after that one; or, without `wait`, `ThreadBusy`,
        and nothing is stored.

        Raises `UnknownThread` where another workspace owns the thread.
        """
        ...

    async def end(
        self,
        lease: Lease,
        state: RunState,
        ended: Done | Failed,
        ended_id: str,
        record: "RunRecord",
        tape: bytes | None = None,
    ) -> bool:
        """Store how the run ended, its record and its encoded tape, all or nothing; the thread's next run may begin.
        The tape goes with the run, and with its thread. False, and nothing stored, where the lease was lost or the run
        had ended."""
        ...

    async def hand_back(self, lease: Lease) -> None:
        """Let another process begin the run again, from its last checkpoint: this one is about to end."""
        ...

    async def get(self, workspace_id: str, run_id: str) -> RunStatus | None: ...

    async def list_unfinished(self, workspace_id: str, thread_id: str) -> "list[RunStatus]":
        """The running one first, then those that wait, in order."""
        ...

    def watch_leases(self, *, on_stop: Callable[[str], None], on_lost: Callable[[str], None]) -> None:
        """Call `on_stop` with the id of each run held here that shall stop, until it has ended; and `on_lost`, once,
        with that of each whose lease this process has lost."""
        ...

    async def request_stop(self, workspace_id: str, run_id: str) -> RunStatus | None:
        """Note that the run shall stop, and return how it stands. Its holder sees the note within seconds; to stop it
        sooner, tell the holder (`domain.streams.RunStreams.request_stop`). One that still waits is taken when its time
        comes, and then ends at once."""
        ...


class ThreadStore(Protocol):
    """Who owns which thread. Raises `DatabaseUnavailable`."""

    async def claim(self, workspace_id: str, thread_id: str) -> None:
        """Create the thread, or do nothing where the workspace has it already.

        Raises `UnknownThread` where another workspace owns the id: its existence is not revealed.
        """
        ...

    async def exists(self, workspace_id: str, thread_id: str) -> bool: ...

    def hold(self, workspace_id: str, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Wait until nobody else holds the thread, in any process, and hold it."""
        ...
