"""Threads of a workspace: who may read, name and erase them."""

from collections.abc import Sequence, Set

from domain.errors import Forbidden, InputError, UnknownThread
from domain.history.run_lists import read_cursor, write_cursor
from domain.people.access import Caller
from domain.people.names import find_nearest
from domain.ports.runs import RunQueue, ThreadStore
from domain.runs import Conversation, RunStatus
from domain.scope import Scope
from domain.state import Turn
from domain.text.question import fold_line

_RECENT = 1_000
"""Threads among which the one that was meant is looked for."""


class Threads:
    """Finds threads, for those who may read them."""

    def __init__(self, store: ThreadStore, queue: RunQueue) -> None:
        self._store = store
        self._queue = queue

    async def require(self, workspace_id: str, thread_id: str, groups: frozenset[str] | None = None) -> None:
        """Raise `UnknownThread` where the workspace has no such thread, or it is not open to an asker of these groups,
        and `DatabaseUnavailable`."""
        asker = Scope(workspace_id, groups=groups)
        if not await self._store.exists(workspace_id, thread_id) or not await self.is_open_to(asker, thread_id):
            raise await self.explain_unknown(asker, thread_id)

    async def is_open_to(self, asker: Scope, thread_id: str) -> bool:
        """Return True if the asker may read one of the thread's turns, or it has none that they might not read.

        Raises `DatabaseUnavailable`.
        """
        return asker.groups is None or await self._store.is_open_to(asker, thread_id)

    async def list_readable_steps(self, asker: Scope, run_ids: Set[str]) -> Set[str]:
        """Return those of the runs whose states and tapes the asker may read. Raises `DatabaseUnavailable`."""
        return await self._queue.list_readable(asker, run_ids, steps=True)

    async def list_readable(self, asker: Scope, turns: Sequence[Turn]) -> Sequence[Turn]:
        """Return those of a conversation's turns that the asker may read. Raises `DatabaseUnavailable`."""
        readable = await self._queue.list_readable(asker, {turn["run_id"] for turn in turns})
        return [turn for turn in turns if turn["run_id"] in readable]

    async def list(
        self, asker: Scope, limit: int, *, words: str = "", caller: str | None = None, after: str | None = None
    ) -> tuple[Sequence[Conversation], str | None]:
        """Return conversations that the asker may read, or those in which the caller has asked, the latest first, and
        the cursor of those that follow, if any.

        Raises `InputError` where `after` is no cursor, and `DatabaseUnavailable`.
        """
        past = None if after is None else read_cursor(after)
        found = await self._store.list(asker, limit + 1, words=fold_line(words), caller=caller, after=past)
        shown = found[:limit]
        return shown, write_cursor(shown[-1].updated_at, shown[-1].thread_id) if len(found) > limit else None

    async def read(
        self, asker: Scope, thread_id: str, limit: int, before: str | None = None
    ) -> tuple[Conversation, Sequence[RunStatus], str | None]:
        """Return a thread, the last runs in order that the asker may read, or the last before the run `before`, and the
        `before` of those that precede them, if any.

        Raises `UnknownThread`, `InputError` where the thread has no run `before`, and `DatabaseUnavailable`.
        """
        await self.require(asker.workspace_id, thread_id, asker.groups)
        thread = await self._store.get(asker, thread_id)
        if thread is None:
            raise UnknownThread
        found = await self._queue.list_turns(asker, thread_id, limit + 1, before)
        if before is not None and not found:
            first = await self._queue.get(asker.workspace_id, before)
            if first is None or first.request.thread_id != thread_id:
                raise InputError(f"`before` is the `next` of an earlier answer; {before!r} is none.")
        turns = found[-limit:]
        return thread, turns, turns[0].request.run_id if len(found) > limit else None

    async def rename(self, asker: Scope, thread_id: str, title: str) -> Conversation:
        """Name a conversation, and return it.

        Raises `UnknownThread`, `InputError` where the title has nothing that can be read, and `DatabaseUnavailable`.
        """
        await self.require(asker.workspace_id, thread_id, asker.groups)
        line = fold_line(title)
        if not line:
            raise InputError("The title is empty.")
        renamed = await self._store.rename(asker, thread_id, line)
        if renamed is None:
            raise UnknownThread
        return renamed

    async def require_own(self, caller: Caller, asker: Scope, thread_id: str) -> None:
        """Raise `Forbidden` unless the caller may erase the thread: as who began it, whatever others have asked in it
        since, or with the right `admin`. Branches go with it, whoever made them: they repeat what was asked here.

        Raises `UnknownThread` where it is another's and the caller may not read it, and `DatabaseUnavailable`.
        """
        if await self._store.find_beginner(asker.workspace_id, thread_id) == caller.name:
            return
        await self.require(asker.workspace_id, thread_id, asker.groups)
        if "admin" not in caller.rights:
            raise Forbidden("Somebody else has begun this conversation. Deleting it needs the right 'admin'.")

    async def explain_unknown(self, asker: Scope, wanted: str) -> UnknownThread:
        """Make the error for an id that names no thread: a recent one whose id or title is nearest may be meant."""
        recent = await self._store.list(asker, _RECENT)
        by_name = {name: each for each in recent for name in (each.title, each.thread_id)}
        nearest = find_nearest(wanted, by_name)
        meant = f" Did you mean {by_name[nearest].thread_id} ({by_name[nearest].title})?" if nearest else ""
        return UnknownThread(f"There is no thread {wanted!r} in this workspace.{meant}")
