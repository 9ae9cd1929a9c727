"""Shows the saved states of a thread, step by step."""

import json
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from typing import Any

from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from app.history.thread_states import ThreadStates, locate_states
from app.history.threads import Threads
from domain.errors import DamagedState, UnknownThread
from domain.history.retention import SavedState
from domain.ports.retention import SavedStates
from domain.scope import Scope

PAGE = 500
"""Number of states that are read together."""

_BEFORE = 2
"""Number of states that are read before a page's first one, to find what it changed: its parent; and where the parent
holds an input, the state before that."""

_WRITTEN = {"cached": "cache", "stopped": "stop"}
"""Metadata marks of states that no node has made, and the node name that each is shown with."""


class HistoryStep(TypedDict):
    """One saved state: which node made it, and what it changed."""

    checkpoint_id: str
    parent_checkpoint_id: str | None
    """The id of the state before; None for the first."""
    run_id: str | None
    node: str
    """The node that ran; or `__start__` for a question, `cache` for a cached answer, `stop` where somebody stopped the
    run, `fork` where a replay began, `damaged` where the stored data cannot be read."""
    changed: dict[str, Any]
    """The new values of the state's fields that differ from the step before."""
    ms: float | None
    """Milliseconds in the node; None where no node ran."""
    next: list[str]
    """The nodes that run next; empty at the end of a turn."""
    created_at: str
    """Empty where it cannot be read."""


class HistoryReader:
    """Reads the history of threads, whichever version saved it and whatever of it is damaged."""

    def __init__(self, threads: Threads, states: ThreadStates, saved_states: SavedStates) -> None:
        self._threads = threads
        self._states = states
        self._saved_states = saved_states

    async def read(self, workspace_id: str, thread_id: str, groups: frozenset[str] | None = None) -> list[HistoryStep]:
        """Return all steps of the thread; see `read_page`."""
        steps, following = await self.read_page(workspace_id, thread_id, groups)
        while following is not None:
            more, following = await self.read_page(workspace_id, thread_id, groups, after=following)
            steps += more
        return steps

    async def read_page(
        self,
        workspace_id: str,
        thread_id: str,
        groups: frozenset[str] | None = None,
        *,
        limit: int = PAGE,
        after: str = "",
    ) -> tuple[list[HistoryStep], str | None]:
        """Return the steps of the thread's next `limit` states past a checkpoint, oldest first, and the checkpoint past
        which it goes on; None at the end.

        Raises `UnknownThread` where the workspace has no such thread that is open to an asker of these groups, or
        nothing was saved in it, and `DatabaseUnavailable`.
        """
        with self._states.translating_errors():
            await self._require(workspace_id, thread_id, groups)
            ids = await self._saved_states.list_ids(workspace_id, thread_id, after, limit + 1)
            if not ids and not after:
                raise UnknownThread(f"Thread {thread_id!r} has no saved states.")
            page, following = ids[:limit], ids[limit : limit + 1]
            try:
                saved = await self._read_states(workspace_id, thread_id, page, following)
            except DamagedState:
                # Of damaged ones what can be read.
                saved = dict[str, StateSnapshot | SavedState]()
                async for each in self._saved_states.read(workspace_id, thread_id):
                    config = locate_states(workspace_id, thread_id, checkpoint_id=each.checkpoint_id)
                    state = each if each.unreadable else await self._states.graph.aget_state(config)
                    saved[each.checkpoint_id] = state
        readable = await self._threads.list_readable_steps(
            Scope(workspace_id, groups=groups), {run for state in saved.values() for run in list_runs_of(state)}
        )
        saved = {name: state for name, state in saved.items() if list_runs_of(state) <= readable}
        by_id = {name: state for name, state in saved.items() if isinstance(state, StateSnapshot)}
        steps = []
        for state in (saved[name] for name in page if name in saved):
            if isinstance(state, SavedState):
                steps.append(_describe_damaged(state))
            # No node has seen the state in which LangGraph files the input; the next step shows it.
            elif (state.metadata or {}).get("source") != "input":
                steps.append(_describe(state, by_id.get(parent_id_of(state) or ""), by_id))
        return steps, page[-1] if following else None

    async def _require(self, workspace_id: str, thread_id: str, groups: frozenset[str] | None) -> None:
        """Raise `UnknownThread` where it is not open to the asker. Afterwards all its states are stored."""
        with suppress(DamagedState):  # which does not keep the rest from being shown
            await self._threads.require(workspace_id, thread_id, groups)
        await self._states.flush(workspace_id, thread_id)

    async def _read_states(
        self, workspace_id: str, thread_id: str, page: Sequence[str], following: Sequence[str]
    ) -> dict[str, StateSnapshot | SavedState]:
        """Return the states by id, and those before them, which tell what they changed."""
        before = locate_states(workspace_id, thread_id, checkpoint_id=following[0]) if following else None
        history = self._states.graph.aget_state_history(
            locate_states(workspace_id, thread_id), before=before, limit=len(page) + _BEFORE
        )
        found: dict[str, StateSnapshot | SavedState] = {checkpoint_id_of(state): state async for state in history}
        return found


def list_runs_of(state: StateSnapshot | SavedState) -> Set[str]:
    """Return the runs that stand in a state: the one that saved it and, before the first step of a question, the one
    before; in the first state of a branch, the one that it copies."""
    values = state.values if isinstance(state.values, Mapping) else {}
    metadata: Mapping[str, Any] = state.metadata or {}
    copied = json.loads(metadata.get("forked_from") or "{}").get("run_id")
    return {str(each) for each in (values.get("run_id"), metadata.get("run_id"), copied) if each}


def checkpoint_id_of(snapshot: StateSnapshot) -> str:
    """Return the id of the checkpoint that a snapshot was read from."""
    return str(snapshot.config["configurable"]["checkpoint_id"])


def node_of(snapshot: StateSnapshot, parent: StateSnapshot | None) -> str:
    """Return the name of the node whose update the snapshot holds."""
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    if metadata.get("source") in ("update", "fork"):
        return next((node for mark, node in _WRITTEN.items() if metadata.get(mark)), "fork")
    return parent.next[0] if parent is not None and parent.next else "__start__"


def parent_id_of(snapshot: StateSnapshot) -> str | None:
    """Return the id of the checkpoint before it."""
    return snapshot.parent_config["configurable"]["checkpoint_id"] if snapshot.parent_config else None


def _describe_damaged(saved: SavedState) -> HistoryStep:
    return HistoryStep(
        checkpoint_id=saved.checkpoint_id,
        parent_checkpoint_id=None,
        run_id=saved.metadata.get("run_id"),
        node="damaged",
        changed={},
        ms=None,
        next=[],
        created_at="",
    )


def _describe(snapshot: StateSnapshot, parent: StateSnapshot | None, by_id: Mapping[str, StateSnapshot]) -> HistoryStep:
    before = parent
    if before is not None and (before.metadata or {}).get("source") == "input":
        before = by_id.get(parent_id_of(before) or "")
    values, old = snapshot.values, before.values if before is not None else {}
    node = node_of(snapshot, parent)
    # Other versions may have saved fewer fields; the missing ones are left out.
    last: Mapping[str, Any] = (values.get("steps") or [{}])[-1]
    return HistoryStep(
        checkpoint_id=checkpoint_id_of(snapshot),
        parent_checkpoint_id=parent_id_of(snapshot),
        run_id=values.get("run_id") or None,
        node=node,
        changed={
            key: value for key, value in values.items() if key != "steps" and (key not in old or old[key] != value)
        },
        ms=last.get("ms") if last.get("node") == node else None,
        next=list(snapshot.next),
        created_at=snapshot.created_at or "",
    )
