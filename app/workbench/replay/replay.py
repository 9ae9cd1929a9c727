"""Replays runs: from a saved state, changed or not, as a branch; or strictly from the run's tape.

A branch is a thread of its own that starts with a copy of the saved state. LangGraph's own fork would append to the
thread, and the thread's next follow-up would build on it; here the original conversation stays untouched.

A strict replay calls nothing and stores nothing: its events and its final state are compared with the recorded ones.
"""

import dataclasses
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import uuid4

from langgraph.types import StateSnapshot

from app.answering.manager import RunManager
from app.answering.parts import RunParts
from app.answering.requests import AcceptedRun, Branch, read_events
from app.history.states import find_problem
from app.history.steps import list_runs_of
from app.history.thread_states import locate_states
from app.workbench.replay.again import Start, begin_in_memory, begin_thread, start_at
from app.workbench.replay.effects import INCIDENTAL, find_difference, find_first, find_unnoticed
from app.workbench.replay.saved_run import (
    SavedRun,
    SavedStep,
    find_step,
    find_taped,
    read_step,
    read_steps,
)
from app.workbench.replay.strict_replay import StrictReplay, prepare_strict
from app.workbench.tapes.observing import Tapes
from app.workbench.tapes.tape import TapeUse
from app.workbench.tapes.tapes import read_tape
from app.workbench.tapes.taping import Player
from domain.errors import DamagedState, StateError, UnknownCheckpoint, UnknownRun, UnknownTape
from domain.events import Event
from domain.people.access import OWNER, Caller
from domain.ports.runs import RunLog, ThreadStore
from domain.runs import RunRecord
from domain.scope import Scope
from domain.state import AnswerState
from graphs.answer import STEPS, AnswerGraph
from nodes.context import scope_of


@dataclass(frozen=True, slots=True)
class Replay:
    """A request to replay. One of `checkpoint_id` and `run_id` is given: a run alone is replayed from its start."""

    workspace_id: str
    thread_id: str | None = None
    """None: that of the run."""
    checkpoint_id: str | None = None
    run_id: str | None = None
    node: str | None = None
    """Run this step of the run again with its saved input, and then what follows: `rerank`, or `rerank@2` for the
    second one."""
    after: str | None = None
    """Continue after this step of the run: its edge decides again what follows."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """State fields to change first; a dotted key such as `profile.rerank.keep` reaches into the profile."""
    mode: str | None = None
    """Run on in this mode."""
    tape: TapeUse = "off"
    caller: Caller = OWNER
    """Who asks for it. It runs with their groups, at most those that the run had."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A replay whose request was found to be in order."""

    replay: Replay
    run: RunRecord | None
    thread_id: str
    """The thread of the run."""
    steps: Sequence[SavedStep]
    """The saved states of the run that the start belongs to."""
    start: Start
    following: Sequence[str]
    """The nodes that ran after the start then."""


class Replayer:
    """Opens replays."""

    def __init__(
        self, manager: RunManager, parts: RunParts, tapes: Tapes, log: RunLog, thread_store: ThreadStore
    ) -> None:
        self._manager = manager
        self._parts = parts
        self._tapes = tapes
        self._states = parts.states
        self._graph = parts.states.graph
        self._log = log
        self._thread_store = thread_store

    async def run(self, replay: Replay) -> AsyncGenerator[Event]:
        """Open a replay and return its events. Raises what `open` raises."""
        opened = await self.open(replay)
        return opened.run() if isinstance(opened, StrictReplay) else read_events(self._manager.follow(opened))

    async def open(self, replay: Replay) -> AcceptedRun | StrictReplay:
        """Start a replay as a run of its own; or, with `tape="strict"`, prepare the strict replay of a run.

        Raises everything that is wrong with the request, before the first event and before anything is written: what
        `plan` and `execute` raise.
        """
        return await self.execute(await self.plan(replay))

    async def plan(self, replay: Replay) -> Plan:
        """Find the state that the replay starts from, make the changes to it, and check that they can take effect.

        Raises `UnknownRun`, `UnknownThread`, `UnknownCheckpoint`, `UnknownMode`, `QuestionError`, `FilterError`,
        `TooManyRuns`, `BudgetSpent`, `Saturated`, `DatabaseUnavailable`, and `StateError` for a key that does not
        exist, a value that its field cannot hold, a state that this version cannot run, a change that no step would
        notice, or a step that cannot follow.
        """
        if replay.tape != "strict":
            self._parts.admission.check()
            await self._parts.limits.check_run(replay.caller)
        run: RunRecord | None = None
        thread_id = replay.thread_id
        if replay.run_id is not None:
            run = await self._log.get(replay.workspace_id, replay.run_id)
            if run is None or thread_id not in (None, run.thread_id):
                raise UnknownRun(
                    f"There is no run {replay.run_id!r} here. To replay a thread, name the checkpoint to run on from."
                )
            thread_id = run.thread_id
        if thread_id is None or (run is None and replay.checkpoint_id is None):
            raise StateError("Name the run to replay, or the checkpoint to run on from.")
        if sum(each is not None for each in (replay.checkpoint_id, replay.node, replay.after)) > 1:
            raise StateError(
                "A replay starts from one place: name a checkpoint, a node, or the node that it goes after."
            )
        asker = Scope(replay.workspace_id, groups=replay.caller.groups)
        await self._parts.threads.require(replay.workspace_id, thread_id, asker.groups)
        with self._states.translating_errors():
            snapshot: StateSnapshot | None = None
            if replay.checkpoint_id is not None:
                snapshot = await _read_checkpoint(self._graph, replay.workspace_id, thread_id, replay.checkpoint_id)
                run_id = snapshot.values["run_id"]
                if run is not None and run_id != run.run_id:
                    raise StateError(f"That checkpoint is of the thread's run {run_id}, not of {run.run_id}.")
                run = run or await self._log.get(replay.workspace_id, run_id)
            else:
                assert run is not None
                run_id = run.run_id
            held = {run_id} if snapshot is None else {run_id, *list_runs_of(snapshot)}
            if held - await self._parts.queue.list_readable(asker, held, steps=True):
                raise UnknownRun(f"There is no run {run_id!r} in this workspace.")
            try:
                steps = await read_steps(
                    self._graph, replay.workspace_id, thread_id, run_id, including=replay.checkpoint_id
                )
            except DamagedState:
                if snapshot is None or replay.tape == "strict":
                    raise
                steps = [await read_step(self._graph, snapshot)]
            place, forced = find_place(steps, replay)
        following = [each.node for each in steps[place + 1 :] if each.node in STEPS]
        modes = {} if replay.mode is None else await self._parts.modes.list(asker, replay.mode)
        # A strict replay reads nothing but the tape, and repeats what was asked of it.
        groups = None if replay.tape == "strict" else asker.groups
        start = start_at(steps[place], groups, forced, replay.changes, replay.mode, modes)
        if replay.mode is not None:
            # Its filter may not go with the question's.
            scope_of(start.values)
        plan = Plan(replay, run, thread_id, steps, start, following)
        self._check_effect(plan)
        return plan

    async def execute(self, plan: Plan) -> AcceptedRun | StrictReplay:
        """Start the replay as a run of its own; or, with `tape="strict"`, prepare the strict replay.

        Raises `UnknownTape`, `UnknownDocument`, `Saturated`, `DatabaseUnavailable`, and `StateError` where nothing is
        left to run, or nothing to compare with.
        """
        replay, run = plan.replay, plan.run
        with self._states.translating_errors():
            if replay.tape == "off":
                return await self._manager.resume(await self._open_branch(plan))
            if run is None:
                raise UnknownTape("The checkpoint's run is not on record, and has no tape.")
            tape = await read_tape(self._log, run)
            if replay.tape == "fill":
                branch = await self._open_branch(plan)
                player = Player(tape, run.run_id, after=plan.start.step.number)
                with self._tapes.playing(branch.values["run_id"], player):
                    return await self._manager.resume(branch)
            saved = SavedRun(run, plan.steps, tape)
            return await prepare_strict(saved, self._graph, self._parts.make_context(), plan.start)

    async def go_on(
        self, workspace_id: str, thread_id: str, checkpoint_id: str, caller: Caller, *, mode: str | None = None
    ) -> AcceptedRun:
        """Go on from a saved state in a new branch. Raises what `open` raises."""
        wanted = Replay(workspace_id, thread_id, checkpoint_id, mode=mode, caller=caller)
        return cast(AcceptedRun, await self.open(wanted))

    async def branch(
        self, workspace_id: str, thread_id: str, checkpoint_id: str, caller: Caller, *, changes: Mapping[str, Any]
    ) -> Branch:
        """Make a branch from a changed state, for somebody to run it later. Raises what `open` raises."""
        wanted = Replay(workspace_id, thread_id, checkpoint_id, changes=changes, caller=caller)
        plan = await self.plan(wanted)
        with self._states.translating_errors():
            return await self._open_branch(plan)

    async def _open_branch(self, plan: Plan) -> Branch:
        """Copy the saved state into a new thread, with the changes made to it, ready to run."""
        replay, start = plan.replay, plan.start
        scope = Scope.from_json(start.values["scope"])
        if scope.document_ids is not None:
            await self._parts.documents.corpus_fingerprint(scope)

        values = _rename_run(start.values, str(uuid4())) | {"steps": []}
        branch_id = str(uuid4())
        forked_from: dict[str, Any] = {
            "thread_id": plan.thread_id,
            "run_id": start.values["run_id"],
            "checkpoint_id": start.step.checkpoint_id,
            "changed": sorted(replay.changes),
        }
        forked_from |= {"node": start.forced} if start.forced else {}
        # In memory first: only LangGraph knows what comes next, and a branch without a next step must not be created.
        renamed = dataclasses.replace(start, values=values)
        await begin_in_memory(self._graph, branch_id, renamed)
        # It holds what the run was shown, before anybody runs it: all that whoever made it may read.
        own = replay.caller.groups
        groups = start.values["scope"].get("groups") if own is None else sorted(own)
        await self._thread_store.claim(replay.workspace_id, branch_id, groups, copy_of=plan.thread_id)
        marks = {"forked_from": json.dumps(forked_from), "forked_as": start.after}
        marks |= {"forked_to": start.forced} if start.forced else {}
        await begin_thread(self._graph, branch_id, renamed, **marks)
        return Branch(branch_id, cast(AnswerState, values), forked_from, caller=replay.caller)

    def _check_effect(self, plan: Plan) -> None:
        """Raise `StateError` for a change that no step would notice."""
        start, replay, step = plan.start, plan.replay, plan.start.step
        beginning = start.beginning
        if find_problem(step.values, step.version):
            # What no node can read may have to be set, whether one would read it or not.
            return
        difference = find_difference(step.values, start.values)
        # A run that failed went no further, and what would follow is open.
        is_open = bool(plan.steps[-1].next)
        unnoticed = set(find_unnoticed(beginning, plan.following, difference, is_open=is_open))
        named = set[str]()
        for key in replay.changes:
            wanted = "scope" if key in ("document_ids", "where") else key
            mine = {each for each in difference if each == wanted or each.startswith(f"{wanted}.")}
            named |= mine
            if not mine:
                raise StateError(f"{key!r} is that already: nothing would change.")
            if mine <= unnoticed:
                raise StateError(f"{key!r} cannot take effect: {self._advise(plan, mine)}")
        of_mode = {each for each in set(difference) - named if not each.startswith(INCIDENTAL)}
        if replay.mode is not None and of_mode and of_mode <= unnoticed:
            raise StateError(f"The mode {replay.mode!r} cannot take effect: {self._advise(plan, of_mode)}")

    def _advise(self, plan: Plan, changes: set[str]) -> str:
        path = [step.node for step in plan.steps[1:]]
        ahead = " → ".join(plan.following) or "nothing"
        found = find_first(path, changes)
        if found is None:
            return f"no step of this run reads it ({' → '.join(path)})."
        _, place = found
        option, field = ("--after", "after") if place.decides else ("--from", "node")
        return (
            f"no step that would run now reads it ({ahead}). Replay the run with {option} {place.node} (over HTTP: "
            f'"run_id", and "{field}": "{place.node}").'
        )


def find_place(steps: Sequence[SavedStep], replay: Replay) -> tuple[int, str | None]:
    """Return the place of the saved state that the replay starts from, and the node that is to run next, if it is not
    for the edges to say. Raises `UnknownCheckpoint`."""
    if replay.checkpoint_id is not None:
        return next(place for place, step in enumerate(steps) if step.checkpoint_id == replay.checkpoint_id), None
    if replay.after is not None:
        return find_step(steps, replay.after), None
    if replay.node is not None:
        node = replay.node.partition("@")[0]
        if replay.node in steps[-1].next and node not in [step.node for step in steps]:
            # The run failed in it, or stopped before it.
            return len(steps) - 1, node
        return find_step(steps, replay.node) - 1, node
    return (0 if replay.tape == "off" else find_taped(steps)), None


def _rename_run(values: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return the state as that of another run, which then owns the turn that the saved run may have added already."""
    turns = [turn | {"run_id": run_id} if turn["run_id"] == values["run_id"] else turn for turn in values["turns"]]
    return {**values, "run_id": run_id, "turns": turns}


async def _read_checkpoint(graph: AnswerGraph, workspace_id: str, thread_id: str, checkpoint_id: str) -> StateSnapshot:
    snapshot = await graph.aget_state(locate_states(workspace_id, thread_id, checkpoint_id=checkpoint_id))
    if snapshot.created_at is None:
        raise UnknownCheckpoint(
            f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. `askgraph show RUN` names those of a run."
        )
    if (snapshot.metadata or {}).get("source") == "input":
        raise UnknownCheckpoint("The run had not begun at this checkpoint; take the one after it.")
    return snapshot
