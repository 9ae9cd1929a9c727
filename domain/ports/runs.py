"""The queue of runs, the log of runs, and the owners of threads."""

from collections.abc import Awaitable, Callable, Collection, Sequence, Set
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol

from domain.events import Done, Failed
from domain.history.lineage import NO_LINEAGE, Lineage
from domain.history.run_lists import RunFilter, RunSummary
from domain.runs import (
    Conversation,
    CostKey,
    Lease,
    RunRecord,
    RunRequest,
    RunState,
    RunStatus,
    Shown,
    Spending,
)
from domain.scope import Scope


class RunLog(Protocol):
    """The records, which `RunQueue.end` keeps. Raises `DatabaseUnavailable`."""

    async def get(self, workspace_id: str, run_id: str) -> RunRecord | None: ...

    async def find_origin(self, cached: RunRecord) -> RunRecord | None:
        """Return the run whose answer the cache gave: the latest one before it that wrote this answer in this mode."""

    async def get_tape(self, workspace_id: str, run_id: str) -> bytes | None: ...

    async def list_runs(self, asker: Scope, wanted: RunFilter) -> list[RunSummary]:
        """Return the runs of the asker's workspace that pass, newest first, as far as the asker may read what they were
        shown."""

    async def sum_costs(
        self, workspace_id: str | None, since: datetime, by: CostKey
    ) -> tuple[list[Spending], Spending]:
        """Sum up the usage of the runs since then, by key, most expensive first, and in total. None for `workspace_id`
        means all workspaces, which only the operator may see, not a tenant."""


class RunQueue(Protocol):
    """Queues accepted runs. A thread's runs are executed one at a time, in order of arrival, each by one process, whose
    death is noticed. Raises `DatabaseUnavailable`."""

    def work(
        self, execute: Callable[[Lease], Awaitable[None]], *, concurrency: int = 8
    ) -> AbstractAsyncContextManager[None]:
        """Execute the runs that no process executes, so many at once: those that waited for another of their thread,
        and those whose process has died. `execute` returns once it has ended the run or handed it back; where it does
        neither, because it fails or is cancelled, the run is begun again. At the end of the context nothing more is
        taken; what is being executed gets some seconds to end, and is cancelled then."""

    def stop_taking(self) -> None:
        """Take no more runs from the queue; those that are being executed go on."""

    async def accept(self, request: RunRequest, *, wait: bool) -> Lease | None:
        """Store the run, and its thread where that is new. A lease where it can begin here and now. Where another run
        of the thread is not over: None, and some worker begins it after that one; or, without `wait`, `ThreadBusy`,
        and nothing is stored."""

    async def end(
        self,
        lease: Lease,
        state: RunState,
        ended: Done | Failed,
        ended_id: str,
        record: "RunRecord",
        tape: bytes | None = None,
        shown: Shown | None = None,
        lineage: Lineage = NO_LINEAGE,
    ) -> bool:
        """Store how the run ended, its record, its encoded tape, what it showed and what it was made from, all or
        nothing; the thread's next run may begin. The tape goes with the run, and with its thread. False, and
        nothing stored, where the lease was lost or the run had ended."""

    async def note_showing(self, lease: Lease, document_ids: Collection[str], turns: Collection[str]) -> None:
        """Store which documents a run that goes on has shown so far, and those of the runs whose turns it was given."""

    async def hand_back(self, lease: Lease) -> None:
        """Let another process begin the run again, from its last checkpoint: this one is about to end."""

    async def get(self, workspace_id: str, run_id: str) -> RunStatus | None: ...

    async def list_unfinished(self, workspace_id: str, thread_id: str) -> "list[RunStatus]":
        """The running one first, then those that wait, in order."""

    async def list_turns(
        self, asker: Scope, thread_id: str, limit: int, before: str | None = None
    ) -> "list[RunStatus]":
        """Return the thread's last runs that the asker may read, or the last before the run with the id `before`, in
        order of arrival."""

    async def list_readable(self, asker: Scope, run_ids: Collection[str], *, steps: bool = False) -> Set[str]:
        """Return those of the runs that the asker may read today: all documents that they showed. With `steps`, also
        what their states and tapes hold. Ids of no run are among them."""

    def watch_leases(self, *, on_stop: Callable[[str], None], on_lost: Callable[[str], None]) -> None:
        """Call `on_stop` with the id of each run held here that shall stop, until it has ended; and `on_lost`, once,
        with that of each whose lease this process has lost."""

    async def request_stop(self, workspace_id: str, run_id: str) -> RunStatus | None:
        """Note that the run shall stop, and return how it stands. Its holder sees the note within two seconds.
        One that still waits is taken when its time comes, and then ends at once."""


class ThreadStore(Protocol):
    """Knows which workspace owns a thread, and which conversations a workspace has. Raises `DatabaseUnavailable`."""

    async def claim(
        self, workspace_id: str, thread_id: str, groups: Sequence[str] | None = (), *, copy_of: str | None = None
    ) -> None:
        """Create the thread, or do nothing where the workspace has it already. A new one is open to those who have all
        of these groups; None: to those whose groups are not limited. It is erased with the thread `copy_of`."""

    async def exists(self, workspace_id: str, thread_id: str) -> bool: ...

    async def is_open_to(self, asker: Scope, thread_id: str) -> bool:
        """Return True if the asker may read one of the thread's turns, or it has none that they might not read, or the
        workspace has no such thread."""

    async def get(self, asker: Scope, thread_id: str) -> Conversation | None: ...

    async def find_beginner(self, workspace_id: str, thread_id: str) -> str | None:
        """Return the caller who asked first in the thread; None where nobody has."""

    async def list(
        self,
        asker: Scope,
        limit: int,
        *,
        words: str = "",
        caller: str | None = None,
        after: tuple[datetime, str] | None = None,
    ) -> list[Conversation]:
        """Return the conversations of the workspace that are open to the asker's groups, hold the words in their title
        or a question that the asker may read, and in which the caller has asked, where one is named; the
        latest first. Those past `after`, the time of the last question and the id of the thread before them. A
        thread of replays alone is no conversation."""

    async def rename(self, asker: Scope, thread_id: str, title: str) -> Conversation | None:
        """Name the conversation, and return it; None where the workspace has no such thread."""
