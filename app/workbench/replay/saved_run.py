"""A run as it was saved: its record, its states, step by step, and its tape.

It is read from the database, or from a file (`app/workbench/replay/bundle.py`). Whatever explains, compares or repeats
a run takes it from here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langgraph.graph import START
from langgraph.types import StateSnapshot

from app.history.states import read_values, read_version
from app.history.steps import checkpoint_id_of, node_of, parent_id_of
from app.history.thread_states import locate_states
from app.workbench.tapes.tape import Tape
from app.workbench.tapes.tapes import read_tape
from domain.errors import StateError, UnknownCheckpoint, UnknownTape
from domain.ports.runs import RunLog
from domain.runs import RunRecord
from domain.state import STATE_VERSION
from graphs.answer import AnswerGraph

GONE = "Its steps and its tape are gone, as those of all runs are after a while (ASKGRAPH_KEEP_STEPS)."


@dataclass(frozen=True, slots=True)
class SavedStep:
    """One saved state of a run."""

    checkpoint_id: str
    parent_checkpoint_id: str | None
    number: int
    """The graph's number of the step."""
    node: str
    """The node that made it, or one of the other names that `HistoryStep.node` lists."""
    values: Mapping[str, Any]
    """The whole state in the shape of today."""
    next: tuple[str, ...]
    """The nodes that run next; empty at the end of a turn."""
    created_at: str
    attempt: int = 1
    version: int = STATE_VERSION
    """The version of the types in which it was saved."""
    forked_as: str | None = None
    """For the first state of a branch: the node that made the state which it copies."""
    forked_to: str | None = None
    """For the first state of a branch: the node that runs next, whatever the edges say."""

    @property
    def ms(self) -> float | None:
        """Milliseconds in the node; None where no node ran."""
        last = (self.values["steps"] or [{}])[-1]
        return last.get("ms") if last.get("node") == self.node else None


@dataclass(frozen=True, slots=True)
class SavedRun:
    """A run, with all that was saved of it."""

    record: RunRecord
    steps: Sequence[SavedStep]
    """Oldest first. The first holds the question, or where a replay began."""
    tape: Tape | None = None
    untaped: str = ""
    """Why there is no tape."""
    unread: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Passages by chunk that the run's searches found and left out, as the library had them when the run was opened."""
    origin: "SavedRun | None" = None
    """Of an answer from the cache: the run that made it, as far as it is still known."""
    running: bool = False
    """True for a run that has not ended: its record says only what was asked, and steps are missing."""

    @property
    def final(self) -> Mapping[str, Any]:
        """The state in which the run ended."""
        return self.steps[-1].values

    def require_tape(self) -> Tape:
        """Return the tape. Raises `UnknownTape` where there is none."""
        if self.tape is None:
            raise UnknownTape(self.untaped or None)
        return self.tape


def find_step(steps: Sequence[SavedStep], name: str) -> int:
    """Return the place of a step by its node: `rerank` is the first rerank, `rerank@2` the second.

    Raises `UnknownCheckpoint`.
    """
    node, _, count = name.partition("@")
    # The first state holds the question, or what the branch began with: nothing had run yet.
    places = [place for place, step in enumerate(steps) if place and step.node == node]
    number = int(count or 1) if (count or "1").isdecimal() and len(count) < 4 else 0
    if not 1 <= number <= len(places):
        ran = " → ".join(step.node for step in steps[1:]) or "nothing"
        raise UnknownCheckpoint(f"The run has no step {name!r}. It ran: {ran}.")
    return places[number - 1]


def find_taped(steps: Sequence[SavedStep]) -> int:
    """Return the place of the state at which the run's tape begins: the run's first; or, where a process died and
    another took the run over, the one that the last attempt continued from."""
    attempts = [step.attempt for step in steps]
    first = attempts.index(max(attempts))
    follows = first > 0 and steps[first].parent_checkpoint_id == steps[first - 1].checkpoint_id
    return first - 1 if follows else first


async def read_saved_run(graph: AnswerGraph, log: RunLog, record: RunRecord) -> SavedRun:
    """Read what was saved of a run. Raises `UnknownCheckpoint` where there is nothing, and `DatabaseUnavailable`."""
    steps = await read_steps(graph, record.workspace_id, record.thread_id, record.run_id)
    tape, untaped = None, ""
    try:
        tape = await read_tape(log, record)
    except (UnknownTape, StateError) as error:
        untaped = error.message
    return SavedRun(record, steps, tape, untaped)


async def read_end(graph: AnswerGraph, workspace_id: str, thread_id: str, run_id: str) -> SavedStep:
    """Return the state in which a run ended, of the node that ran last where a node made it.

    Raises `UnknownCheckpoint` where it is not saved, and `DamagedState`.
    """
    thread = locate_states(workspace_id, thread_id)
    async for snapshot in graph.aget_state_history(thread, filter={"run_id": run_id}, limit=1):
        step = _describe(snapshot, None)
        ran = step.values["steps"]
        # Its parent, which would name the node, is not read: each step notes its own name.
        return replace(step, node=ran[-1]["node"]) if step.node == START and ran else step
    raise UnknownCheckpoint(f"Nothing is saved of run {run_id!r}. {GONE}")


async def read_steps(
    graph: AnswerGraph, workspace_id: str, thread_id: str, run_id: str, *, including: str | None = None
) -> list[SavedStep]:
    """Return a run's saved states, oldest first, with the checkpoint `including` among them.

    Raises `UnknownCheckpoint` where there are none, and `DamagedState`.
    """
    thread = locate_states(workspace_id, thread_id)
    found = [state async for state in graph.aget_state_history(thread, filter={"run_id": run_id})][::-1]
    by_id = {checkpoint_id_of(state): state for state in found}
    # The first state of a branch, and states of old versions, do not say in their metadata whose they are.
    while found and found[0].parent_config and parent_id_of(found[0]) not in by_id:
        parent = await graph.aget_state(found[0].parent_config)
        by_id[checkpoint_id_of(parent)] = parent
        if parent.values.get("run_id") == run_id:
            found.insert(0, parent)
    if not found or (including is not None and including not in by_id):
        # What other programs have written does not say it either.
        found = [state async for state in graph.aget_state_history(thread)][::-1]
        by_id = {checkpoint_id_of(state): state for state in found}
    steps = [
        _describe(snapshot, by_id.get(parent_id_of(snapshot) or ""))
        for snapshot in found
        if snapshot.values.get("run_id") == run_id and (snapshot.metadata or {}).get("source") != "input"
    ]
    if not steps:
        raise UnknownCheckpoint(f"Nothing is saved of run {run_id!r}. {GONE}")
    return steps


async def read_step(graph: AnswerGraph, snapshot: StateSnapshot) -> SavedStep:
    """Return one saved state, where others of its thread cannot be read."""
    return _describe(snapshot, await graph.aget_state(snapshot.parent_config) if snapshot.parent_config else None)


def _describe(snapshot: StateSnapshot, parent: StateSnapshot | None) -> SavedStep:
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    return SavedStep(
        checkpoint_id=checkpoint_id_of(snapshot),
        parent_checkpoint_id=parent_id_of(snapshot),
        number=cast(int, metadata.get("step", -1)),
        node=node_of(snapshot, parent),
        values=read_values(snapshot),
        next=tuple(snapshot.next),
        created_at=snapshot.created_at or "",
        attempt=cast(int, metadata.get("attempt", 1)),
        version=read_version(metadata),
        forked_as=metadata.get("forked_as"),
        forked_to=metadata.get("forked_to"),
    )
