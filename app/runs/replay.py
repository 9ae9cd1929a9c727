"""Replays runs: from a saved state, changed or not, as a branch; or strictly from the run's tape.

A branch is a thread of its own that starts with a copy of the saved state. LangGraph's own fork would append to the
thread, and the thread's next follow-up would build on it; here the original conversation stays untouched.

A strict replay calls nothing and stores nothing: its events and its final state are compared with the recorded ones.
"""

import dataclasses
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, cast
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot, StateUpdate

from app.runs.graph_pass import GraphPass, prepare_judgement
from app.runs.history import checkpoint_id_of, node_of, parent_id_of
from app.runs.hit_log import HitLog
from app.runs.manager import RunManager
from app.runs.parts import RunParts
from app.runs.records import STOPPED
from app.runs.requests import AcceptedRun, Branch, read_events
from app.runs.run_config import locate_states
from app.runs.state_changes import apply_changes
from app.runs.states import THINNED, read_values, read_version, require_current
from app.runs.strict_replay import StrictReplay, repeat_measures
from app.runs.tapes import read_tape
from app.runs.taping import Player, play
from app.runs.thread_states import ThreadStates
from domain.access import OWNER, Caller
from domain.errors import StateError, UnknownCheckpoint, UnknownRun, UnknownTape
from domain.events import Event
from domain.ports.runs import RunLog, ThreadStore
from domain.profile import find_mode
from domain.runs import RunRecord
from domain.scope import Scope
from domain.state import AnswerState, TurnInput
from domain.tapes import Tape, TapeUse
from graphs.answer import LAST, AnswerGraph


@dataclass(frozen=True, slots=True)
class Replay:
    """A request to replay. One of `checkpoint_id` and `run_id` is given: a run alone is replayed from its start."""

    workspace_id: str
    thread_id: str | None = None
    """None: that of the run."""
    checkpoint_id: str | None = None
    run_id: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    """State fields to change first; a dotted key such as `profile.rerank.keep` reaches into the profile."""
    mode: str | None = None
    """Run on in this mode."""
    tape: TapeUse = "off"
    caller: Caller = OWNER
    groups: frozenset[str] | None = None
    """The asker's groups; see `Scope.groups`."""


class Replayer:
    """Opens replays."""

    def __init__(
        self, manager: RunManager, parts: RunParts, log: RunLog, thread_store: ThreadStore, hit_log: HitLog
    ) -> None:
        self._manager = manager
        self._parts = parts
        self._states = parts.states
        self._graph = parts.states.graph
        self._log = log
        self._thread_store = thread_store
        self._hit_log = hit_log

    async def run(self, replay: Replay) -> AsyncGenerator[Event]:
        """Open a replay and return its events. Raises what `open` raises."""
        opened = await self.open(replay)
        return opened.run() if isinstance(opened, StrictReplay) else read_events(self._manager.follow(opened))

    async def open(self, replay: Replay) -> AcceptedRun | StrictReplay:
        """Start a replay as a run of its own; or, with `tape="strict"`, prepare the strict replay of a run.

        Raises everything that is wrong with the request, before the first event and before anything is written:
        `UnknownRun`, `UnknownThread`, `UnknownCheckpoint`, `UnknownTape`, `UnknownMode`, `UnknownDocument`,
        `QuestionError`, `TooManyRuns`, `BudgetSpent`, `Saturated`, `DatabaseUnavailable`, and `StateError` for a key
        that does not exist, a value that its field cannot hold, a state that this version cannot run, or a checkpoint
        after which nothing is left to run.
        """
        if replay.tape != "strict":
            self._parts.admission.check()
            await self._parts.limits.check_run(replay.caller)
        run: RunRecord | None = None
        thread_id = replay.thread_id
        await self._hit_log.record_all()
        if replay.run_id is not None:
            run = await self._log.get(replay.workspace_id, replay.run_id)
            if run is None or thread_id not in (None, run.thread_id):
                raise UnknownRun(
                    f"There is no run {replay.run_id!r} here. To replay a thread, name the checkpoint to run on from."
                )
            thread_id = run.thread_id
        if thread_id is None or (run is None and replay.checkpoint_id is None):
            raise StateError("Name the run to replay, or the checkpoint to run on from.")
        await self._parts.threads.require(replay.workspace_id, thread_id, replay.groups)
        with self._states.translating_errors():
            start = await self._find_start(replay, run, thread_id)
            if replay.tape == "off":
                return await self._manager.resume(await self._open_branch(replay, start))
            if run is None:
                run = await self._log.get(replay.workspace_id, start.values["run_id"])
                if run is None:
                    raise UnknownTape("The checkpoint's run is not on record, and has no tape.")
            tape = await read_tape(self._log, run)
            player = Player(tape, run.run_id, after=(start.metadata or {}).get("step", -1))
            if replay.tape == "fill":
                branch = await self._open_branch(replay, start)
                return await self._manager.resume(dataclasses.replace(branch, player=player))
            return await self._prepare_strict(run, tape, player, start, replay)

    async def _find_start(self, replay: Replay, run: RunRecord | None, thread_id: str) -> StateSnapshot:
        """Read the saved state that the replay starts from."""
        if replay.checkpoint_id is not None:
            start = await _read_checkpoint(self._graph, replay.workspace_id, thread_id, replay.checkpoint_id)
            if run is not None and start.values["run_id"] != run.run_id:
                raise StateError(
                    f"That checkpoint is of the thread's run {start.values['run_id']}, not of {run.run_id}."
                )
            return start
        assert run is not None
        snapshots = await _read_run(self._graph, run)
        return snapshots[0] if replay.tape == "off" else _find_taped(snapshots)

    async def _open_branch(self, replay: Replay, snapshot: StateSnapshot) -> Branch:
        """Copy the saved state into a new thread, with the changes made to it, ready to run."""
        values = self._change(replay, snapshot)
        scope = Scope.from_json(values["scope"])
        if scope.document_ids is not None:
            await self._parts.documents.corpus_fingerprint(scope)

        values = _rename_run(values, str(uuid4())) | {"steps": []}
        branch_id = str(uuid4())
        thread_id, checkpoint_id = snapshot.config["configurable"]["thread_id"], checkpoint_id_of(snapshot)
        forked_from = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "changed": sorted(replay.changes)}
        node = await _find_node(self._graph, replay.workspace_id, snapshot)
        # In memory first: only LangGraph knows what comes next, and a branch without a next step must not be created.
        await _begin_in_memory(self._graph, branch_id, values, node)
        await self._thread_store.claim(replay.workspace_id, branch_id)
        marks = {"forked_from": json.dumps(forked_from), "forked_as": node}
        await _begin_thread(self._graph, branch_id, values, node, **marks)
        return Branch(branch_id, cast(AnswerState, values), forked_from, caller=replay.caller)

    async def _prepare_strict(
        self, run: RunRecord, tape: Tape, player: Player, start: StateSnapshot, replay: Replay
    ) -> StrictReplay:
        """Raises `StateError` where there is nothing to compare with, or nothing to run."""
        if run.error == STOPPED:
            raise StateError("This run was stopped before its end: there is nothing to compare a strict replay with.")
        values = self._change(replay, start)
        recorded = read_values((await _read_run(self._graph, run))[-1])
        node = await _find_node(self._graph, replay.workspace_id, start)
        ports = self._parts.make_context()
        await prepare_judgement(ports.judges, values)
        graph = await _begin_in_memory(self._graph, run.thread_id, values, node)
        known = values["steps"]
        # A run that starts with its question finds the steps of the thread's previous run in the state.
        left = recorded["steps"][len(known) :] if recorded["steps"][: len(known)] == known else recorded["steps"]
        context = dataclasses.replace(play(tape, player, ports.tokens, ports.judges), measure=repeat_measures(left))
        states = ThreadStates(graph, _flush_nothing, self._states.translating_errors)
        graph_pass = GraphPass(states, context, values, run.thread_id, perf_counter(), trace_url=self._parts.trace_url)
        return StrictReplay(graph_pass, graph, player, recorded, tape.events)

    def _change(self, replay: Replay, snapshot: StateSnapshot) -> dict[str, Any]:
        values = read_values(snapshot)
        if replay.mode is not None:
            profile = find_mode(self._parts.modes, replay.mode)
            values |= {"mode": replay.mode, "profile": profile.model_dump()}
        values = apply_changes(values, replay.changes)
        require_current(values, read_version(snapshot.metadata))
        return values


async def _flush_nothing(thread_id: str) -> None:
    """States in memory need no flush."""


def _rename_run(values: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return the state as that of another run, which then owns the turn that the saved run may have added already."""
    turns = [turn | {"run_id": run_id} if turn["run_id"] == values["run_id"] else turn for turn in values["turns"]]
    return {**values, "run_id": run_id, "turns": turns}


async def _begin_thread(
    graph: AnswerGraph, thread_id: str, values: Mapping[str, Any], node: str, **metadata: str
) -> tuple[str, ...]:
    """Begin a thread with `values`, as if `node` had made them. Returns the nodes that run next."""
    updates = [StateUpdate(dict(values), node)]
    if node == "__start__":
        # LangGraph takes only the input from the start; the rest of the state is written beside it.
        given = {key: values[key] for key in TurnInput.__annotations__}
        updates = [
            StateUpdate({key: value for key, value in values.items() if key not in given}, LAST),
            StateUpdate(given, node),
        ]
    place = locate_states(values["scope"]["workspace_id"], thread_id)
    config = await graph.abulk_update_state({**place, "metadata": metadata}, [updates])
    return (await graph.aget_state(config)).next


async def _begin_in_memory(graph: AnswerGraph, thread_id: str, values: Mapping[str, Any], node: str) -> AnswerGraph:
    """Return a copy of the graph whose checkpointer is in memory and holds a thread that begins with `values`.

    Raises `StateError` where no node would run next.
    """
    in_memory = graph.copy({"checkpointer": InMemorySaver()})
    if not await _begin_thread(in_memory, thread_id, values, node):
        raise StateError("Nothing is left to run from this checkpoint: it ends a turn. Choose an earlier one.")
    return in_memory


async def _read_run(graph: AnswerGraph, run: RunRecord) -> list[StateSnapshot]:
    """Return the run's saved states, oldest first."""
    thread = locate_states(run.workspace_id, run.thread_id)
    snapshots = [
        snapshot
        async for snapshot in graph.aget_state_history(thread)
        if snapshot.values.get("run_id") == run.run_id and (snapshot.metadata or {}).get("source") != "input"
    ]
    if not snapshots:
        raise UnknownCheckpoint(f"Nothing was saved of run {run.run_id!r}.")
    _require_steps(snapshots[-1])
    return snapshots[::-1]


def _find_taped(snapshots: Sequence[StateSnapshot]) -> StateSnapshot:
    """Find the state at which the run's tape begins: the run's first; or, where a process died and another took the run
    over, the one that the last attempt continued from."""
    attempts = [cast(int, (snapshot.metadata or {}).get("attempt", 1)) for snapshot in snapshots]
    first = attempts.index(max(attempts))
    follows = first > 0 and parent_id_of(snapshots[first]) == checkpoint_id_of(snapshots[first - 1])
    return snapshots[first - 1] if follows else snapshots[first]


async def _read_checkpoint(graph: AnswerGraph, workspace_id: str, thread_id: str, checkpoint_id: str) -> StateSnapshot:
    snapshot = await graph.aget_state(locate_states(workspace_id, thread_id, checkpoint_id=checkpoint_id))
    if snapshot.created_at is None:
        raise UnknownCheckpoint(
            f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. `askgraph history {thread_id}` lists them."
        )
    if (snapshot.metadata or {}).get("source") == "input":
        raise UnknownCheckpoint("The run had not begun at this checkpoint; take the one after it.")
    _require_steps(snapshot)
    return snapshot


def _require_steps(snapshot: StateSnapshot) -> None:
    if (snapshot.metadata or {}).get(THINNED):
        raise UnknownCheckpoint(
            "Of this run only the final state is kept, which cannot be run on from. Its steps and its tape are gone, "
            "as those of a thread's older runs are after a while (ASKGRAPH_RETENTION, ASKGRAPH_KEEP_STEPS_OF)."
        )


async def _find_node(graph: AnswerGraph, workspace_id: str, snapshot: StateSnapshot) -> str:
    """Return the node that made the snapshot. Values written in its name take the same edges again."""
    parent = await graph.aget_state(snapshot.parent_config) if snapshot.parent_config else None
    node = node_of(snapshot, parent)
    if node in graph.nodes:
        return node
    # The first state of a branch names the node. Branches of older versions do not: follow them to the original.
    if known := (snapshot.metadata or {}).get("forked_as"):
        return str(known)
    forked_from = json.loads(str((snapshot.metadata or {}).get("forked_from", "{}")))
    if not forked_from:
        return LAST
    origin = await _read_checkpoint(graph, workspace_id, forked_from["thread_id"], forked_from["checkpoint_id"])
    return await _find_node(graph, workspace_id, origin)
