"""Threads of a workspace, including those that a cached answer began."""

from app.runs.hit_log import ANSWERED_BEFORE, HitLog
from app.runs.records import adopt
from app.runs.thread_states import ThreadStates
from domain.errors import UnknownThread
from domain.ports.runs import RunLog, RunQueue, ThreadStore
from domain.scope import Scope


class Threads:
    """Finds threads. Every use of a thread goes through `require` or `settle`, because a cached answer begins its
    thread without saving a state."""

    def __init__(self, store: ThreadStore, states: ThreadStates, queue: RunQueue, log: RunLog, hit_log: HitLog) -> None:
        self._store = store
        self._states = states
        self._queue = queue
        self._log = log
        self._hit_log = hit_log

    async def settle(self, workspace_id: str, thread_id: str) -> bool:
        """Save the thread's state where a cached answer began the thread and nothing has followed it. Returns True
        where the thread has that state now.

        Raises `DatabaseUnavailable`.
        """
        await self._hit_log.record_all()
        runs = await self._log.list_thread(workspace_id, thread_id)
        if len(runs) != 1 or not runs[0].cached:
            return False
        status = await self._queue.get(workspace_id, runs[0].run_id)
        if status is None or status.ended is None or status.ended["type"] != "done":
            return False
        # Other processes may be about to do the same, or to continue from the state that they have saved.
        async with self._store.hold(workspace_id, thread_id):
            if not (await self._states.read(workspace_id, thread_id)).created_at:
                state = adopt(status.request.turn, [], status.ended, ANSWERED_BEFORE)
                await self._states.write(thread_id, state, cached="true")
                await self._states.flush(thread_id)
        return True

    async def require(self, workspace_id: str, thread_id: str, groups: frozenset[str] | None = None) -> None:
        """Settle the thread.

        Raises `UnknownThread` where the workspace has no such thread, or it is not open to an asker of these groups,
        and `DatabaseUnavailable`.
        """
        await self.settle(workspace_id, thread_id)
        asker = Scope(workspace_id, groups=groups)
        if not await self._store.exists(workspace_id, thread_id) or not await self.is_open_to(asker, thread_id):
            raise UnknownThread(f"There is no thread {thread_id!r} in this workspace.")

    async def is_open_to(self, asker: Scope, thread_id: str) -> bool:
        """Return True if the asker may read what any run of the thread might have been shown, or it has no run.

        Raises `DatabaseUnavailable`.
        """
        if asker.groups is None:
            return True
        recorded = await self._log.list_thread(asker.workspace_id, thread_id)
        unfinished = await self._queue.list_unfinished(asker.workspace_id, thread_id)
        scopes = [*(run.scope for run in recorded), *(status.request.turn["scope"] for status in unfinished)]
        # Runs from before scopes were recorded could read everything.
        return all(asker.covers(Scope(asker.workspace_id) if it is None else Scope.from_json(it)) for it in scopes)
