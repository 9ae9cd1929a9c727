"""Running on from a saved state, changed or not, as a branch; or running a run again on its tape.

The branch is a thread of its own that starts with a copy of the saved state. LangGraph's own fork would append to
the thread and so become what its next follow-up builds on; here the original conversation stays untouched.

On its tape alone (`strict`) a run calls nothing and leaves nothing behind: it is compared with what was recorded.
"""

import dataclasses
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from reprlib import repr as shorten
from time import perf_counter
from typing import Annotated, Any, cast, get_type_hints
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot, StateUpdate
from pydantic import Field, TypeAdapter, ValidationError

from app.runs.execution import Execution, prepare_judgement
from app.runs.history import checkpoint_id_of, node_of, parent_id_of
from app.runs.hits import record_hits, require_thread
from app.runs.records import STOPPED
from app.runs.rehearsal import Rehearsal, repeat_measures
from app.runs.states import THINNED, read_values, read_version, require_current
from app.runs.tapes import read_tape
from app.runs.taping import Player, play
from app.runs.turns import Branch, Started, Turns, read_events
from app.services import Services
from app.settings import merge_knobs
from domain.errors import StateError, UnknownCheckpoint, UnknownRun, UnknownTape
from domain.events import Event
from domain.profile import Profile
from domain.question import clean_question
from domain.runs import RunRecord
from domain.scope import Scope, ScopeJson
from domain.state import AnswerState, TurnInput
from domain.tapes import Tape, TapeUse
from domain.where import Where
from graphs.answer import LAST, AnswerGraph

FIXED = {
    "run_id": "a replay has a run id of its own",
    "workspace_id": "a workspace is a boundary",
    "scope": "set its parts, `document_ids` and `where`",
    "steps": "they are what the replay writes",
    "mode": "it names a profile. Run on in another mode with --mode (over HTTP: `mode`)",
}
"""Fields that a replay cannot set, and why."""

SCOPE_PARTS = {"document_ids", "where"}
"""Fields of the scope that a replay can set as if they were fields of the state."""

MAX_CHANGES = 200_000
"""Bytes of all new values together, as JSON: more than any state of ours has."""

_LIMITS = {"retries": Field(ge=0, le=1000), "confidence": Field(ge=0, le=1)}
"""What the types of these fields do not say."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What to run again, from where, and how. One of `checkpoint_id` and `run_id` is given: a run alone is replayed
    from its start."""

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


async def open_replay(services: Services, turns: Turns, replay: Replay) -> Started | Rehearsal:
    """A replay: a run of its own; or, on a tape alone, the rehearsal of the one that was recorded. Everything that is
    wrong with the request is raised here, before the first event and before anything is written.

    Raises `UnknownRun`, `UnknownThread`, `UnknownCheckpoint`, `UnknownTape`, `UnknownMode`, `UnknownDocument`,
    `QuestionError`, `DatabaseUnavailable`, and `StateError` for a key that does not exist, a value that its field
    cannot hold, a state that this version cannot run, or a checkpoint after which nothing is left to run.
    """
    run: RunRecord | None = None
    thread_id = replay.thread_id
    await record_hits(services)
    if replay.run_id is not None:
        run = await services.runs.get(replay.workspace_id, replay.run_id)
        if run is None or thread_id not in (None, run.thread_id):
            raise UnknownRun(
                f"There is no run {replay.run_id!r} here. To replay a thread, name the checkpoint to run on from."
            )
        thread_id = run.thread_id
    if thread_id is None or (run is None and replay.checkpoint_id is None):
        raise StateError("Name the run to replay, or the checkpoint to run on from.")
    await require_thread(services, replay.workspace_id, thread_id)
    with services.translating_errors():
        if replay.checkpoint_id is not None:
            start = await _read_checkpoint(services.graph, thread_id, replay.checkpoint_id)
            if run is not None and start.values["run_id"] != run.run_id:
                raise StateError(
                    f"That checkpoint is of the thread's run {start.values['run_id']}, not of {run.run_id}."
                )
        else:
            assert run is not None
            snapshots = await _read_run(services.graph, run)
            start = snapshots[0] if replay.tape == "off" else _find_taped(snapshots)
        if replay.tape == "off":
            branch = await _open_branch(services, replay.workspace_id, start, replay.changes, replay.mode)
            return await turns.resume(branch)
        if run is None:
            run = await services.runs.get(replay.workspace_id, start.values["run_id"])
            if run is None:
                raise UnknownTape("The checkpoint's run is not on record, and has no tape.")
        tape = await read_tape(services, run)
        player = Player(tape, run.run_id, after=(start.metadata or {}).get("step", -1))
        if replay.tape == "fill":
            branch = await _open_branch(services, replay.workspace_id, start, replay.changes, replay.mode)
            return await turns.resume(dataclasses.replace(branch, player=player))
        return await _prepare(services, run, tape, player, start, replay)


async def run_replay(services: Services, turns: Turns, replay: Replay) -> AsyncGenerator[Event]:
    """Open a replay and hand back its events. Raises what `open_replay` raises."""
    opened = await open_replay(services, turns, replay)
    return opened.run() if isinstance(opened, Rehearsal) else read_events(turns.follow(opened))


async def _open_branch(
    services: Services, workspace_id: str, snapshot: StateSnapshot, changes: Mapping[str, Any], mode: str | None
) -> Branch:
    """Copy the saved state into a new thread, with the changes made to it, ready to run on."""
    values = _change(services, snapshot, changes, mode)
    scope = Scope.from_json(values["scope"])
    if scope.document_ids is not None:
        await services.documents.corpus_fingerprint(scope)

    values = _rename_run(values, str(uuid4())) | {"steps": []}
    branch_id = str(uuid4())
    thread_id, checkpoint_id = snapshot.config["configurable"]["thread_id"], checkpoint_id_of(snapshot)
    forked_from = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "changed": sorted(changes)}
    node = await _find_node(services.graph, snapshot)
    # In memory first: only LangGraph knows what comes next, and a branch without a future must not be left behind.
    await _begin_in_memory(services.graph, branch_id, values, node)
    await services.threads.claim(workspace_id, branch_id)
    await _write_state(services.graph, branch_id, values, node, forked_from=json.dumps(forked_from), forked_as=node)
    return Branch(thread_id=branch_id, values=cast(AnswerState, values), forked_from=forked_from)


async def _prepare(
    services: Services, run: RunRecord, tape: Tape, player: Player, start: StateSnapshot, replay: Replay
) -> Rehearsal:
    """Raises `StateError` where there is nothing to compare with, or nothing to run."""
    if run.error == STOPPED:
        raise StateError("This run was stopped before its end: there is nothing to compare a strict replay with.")
    values = _change(services, start, replay.changes, replay.mode)
    recorded = read_values((await _read_run(services.graph, run))[-1])
    node = await _find_node(services.graph, start)
    await prepare_judgement(services, values)
    graph = await _begin_in_memory(services.graph, run.thread_id, values, node)
    known = values["steps"]
    # What a question finds in the state are the steps of the one before it.
    left = recorded["steps"][len(known) :] if recorded["steps"][: len(known)] == known else recorded["steps"]
    context = dataclasses.replace(play(tape, player, services.tokens), measure=repeat_measures(left))
    execution = Execution(services, graph, context, values, run.thread_id, perf_counter())
    return Rehearsal(execution, graph, player, recorded, tape.events)


def _change(
    services: Services, snapshot: StateSnapshot, changes: Mapping[str, Any], mode: str | None
) -> dict[str, Any]:
    values = read_values(snapshot)
    if mode is not None:
        values |= {"mode": mode, "profile": services.find_mode(mode).model_dump()}
    values = apply_changes(values, changes)
    require_current(values, read_version(snapshot.metadata))
    return values


def apply_changes(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with `changes` made, each checked against what its field can hold.

    A string is also tried as JSON, because that is how a command line carries lists and numbers.

    Raises `StateError`, and `QuestionError` for a new question that is none.
    """
    if _size_of(changes) > MAX_CHANGES:
        raise StateError(f"The new values are too large: {MAX_CHANGES:,} bytes of JSON are the limit.")
    types = get_type_hints(AnswerState)
    changed = dict(values)
    for key, value in changes.items():
        field, *path = key.split(".")
        if field in FIXED:
            raise StateError(f"{field!r} cannot be set: {FIXED[field]}.")
        if field not in types and field not in SCOPE_PARTS:
            settable = ", ".join(sorted((set(types) | SCOPE_PARTS) - set(FIXED)))
            raise StateError(f"{shorten(key)} cannot be set. These can: {settable}.")
        if field == "profile":
            changed["profile"] = _set_knob(changed.get("profile") or {}, path, value)
        elif path:
            raise StateError(f"{shorten(key)} cannot be set: only profile has parts. Set {field!r} as a whole.")
        elif field in SCOPE_PARTS:
            field, changed["scope"] = "scope", _set_scope(changed["scope"], field, value)
        else:
            expected = Annotated[types[field], _LIMITS[field]] if field in _LIMITS else types[field]
            changed[field] = _check_type(key, expected, value)
        if problem := _find_unstorable(changed[field]):
            raise StateError(f"{key!r} does not take {shorten(value)}: {problem} cannot be stored.")
        if field == "question":
            changed["question"] = clean_question(changed["question"])
    return changed


def _size_of(changes: Mapping[str, Any]) -> int:
    try:
        return len(json.dumps(changes))
    except RecursionError:
        return MAX_CHANGES + 1


def _find_unstorable(value: Any) -> str | None:
    """What neither Postgres nor a JSON answer could carry, in words."""
    match value:
        case str():
            if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
                return "text with NUL characters or halves of surrogate pairs"
        case float() if not isfinite(value):
            return "a number that is not finite"
        case int() if not -(2**63) <= value < 2**63:
            return "a number of more than 64 bits"
        case dict():
            return next(filter(None, map(_find_unstorable, [*value, *value.values()])), None)
        case list():
            return next(filter(None, map(_find_unstorable, value)), None)
    return None


def _rename_run(values: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """The state as that of another run, which then owns the turn that the saved one may have written already."""
    turns = [turn | {"run_id": run_id} if turn["run_id"] == values["run_id"] else turn for turn in values["turns"]]
    return {**values, "run_id": run_id, "turns": turns}


async def _write_state(
    graph: AnswerGraph, thread_id: str, values: Mapping[str, Any], node: str, **metadata: str
) -> tuple[str, ...]:
    """Begin a thread with `values`, as if `node` had made them. What runs next."""
    updates = [StateUpdate(dict(values), node)]
    if node == "__start__":
        # LangGraph takes no more from the start than the input; the conversation so far comes in beside it.
        given = {key: values[key] for key in TurnInput.__annotations__}
        updates = [
            StateUpdate({key: value for key, value in values.items() if key not in given}, LAST),
            StateUpdate(given, node),
        ]
    config = await graph.abulk_update_state(
        {"configurable": {"thread_id": thread_id}, "metadata": metadata},
        [updates],
    )
    return (await graph.aget_state(config)).next


def _check_type(key: str, expected: Any, value: Any) -> Any:
    problem = ""
    for attempt in _readings(value):
        try:
            return TypeAdapter(expected).validate_python(attempt, strict=True)
        except ValidationError as error:
            problem = problem or error.errors()[0]["msg"]
    raise StateError(f"{key!r} does not take {shorten(value)}: {problem}.")


def _set_scope(scope: Mapping[str, Any], part: str, value: Any) -> ScopeJson:
    """The scope with other documents, or another filter: in its JSON form, or as text such as `team=legal`."""
    if part == "document_ids":
        value = _check_type(part, list[str] | None, value)
    elif value is not None:
        where = next((read for read in _readings(value) if isinstance(read, dict)), None)
        value = (Where.parse(str(value)) if where is None else Where.from_json(where)).to_json()
    return Scope.from_json({**scope, part: value}).to_json()


def _set_knob(profile: Mapping[str, Any], path: Sequence[str], value: Any) -> dict[str, Any]:
    problem = ""
    for attempt in _readings(value):
        nested: Any = attempt
        for part in reversed(path):
            nested = {part: nested}
        try:
            if not isinstance(nested, dict):
                raise StateError("'profile' takes an object of knobs, or set one: profile.rerank.keep=3.")
            return Profile.model_validate(merge_knobs(dict(profile), nested)).model_dump()
        except ValidationError as error:
            problem = problem or error.errors()[0]["msg"]
    raise StateError(f"{'.'.join(['profile', *path])!r} does not take {shorten(value)}: {problem}.")


def _readings(value: Any) -> list[Any]:
    """The value read as JSON where it is a string that allows it, then as it is."""
    if not isinstance(value, str):
        return [value]
    try:
        return [json.loads(value), value]
    except (ValueError, RecursionError):
        return [value]


async def _begin_in_memory(graph: AnswerGraph, thread_id: str, values: Mapping[str, Any], node: str) -> AnswerGraph:
    """The graph over a thread in memory that begins with `values`. Raises `StateError` where nothing would follow."""
    in_memory = graph.copy({"checkpointer": InMemorySaver()})
    if not await _write_state(in_memory, thread_id, values, node):
        raise StateError("Nothing is left to run from this checkpoint: it ends a turn. Choose an earlier one.")
    return in_memory


async def _read_run(graph: AnswerGraph, run: RunRecord) -> list[StateSnapshot]:
    """The run's saved states, oldest first."""
    thread: RunnableConfig = {"configurable": {"thread_id": run.thread_id}}
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
    """Where the run's tape begins: at its start; or, where it was begun again after its process had died, at the state
    from which it went on then."""
    attempts = [cast(int, (snapshot.metadata or {}).get("attempt", 1)) for snapshot in snapshots]
    first = attempts.index(max(attempts))
    follows = first > 0 and parent_id_of(snapshots[first]) == checkpoint_id_of(snapshots[first - 1])
    return snapshots[first - 1] if follows else snapshots[first]


async def _read_checkpoint(graph: AnswerGraph, thread_id: str, checkpoint_id: str) -> StateSnapshot:
    snapshot = await graph.aget_state({"configurable": {"thread_id": thread_id, "checkpoint_id": checkpoint_id}})
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


async def _find_node(graph: AnswerGraph, snapshot: StateSnapshot) -> str:
    """The node that made the snapshot, as which its values are written again so that the same edges are taken."""
    parent = await graph.aget_state(snapshot.parent_config) if snapshot.parent_config else None
    node = node_of(snapshot, parent)
    if node in graph.nodes:
        return node
    # The first state of a branch, which knows the node; or did not yet, and then the original has to tell.
    if known := (snapshot.metadata or {}).get("forked_as"):
        return str(known)
    forked_from = json.loads(str((snapshot.metadata or {}).get("forked_from", "{}")))
    if not forked_from:
        return LAST
    origin = await _read_checkpoint(graph, forked_from["thread_id"], forked_from["checkpoint_id"])
    return await _find_node(graph, origin)
