"""Running on from a saved state, changed or not, as a branch.

The branch is a thread of its own that starts with a copy of the saved state. LangGraph's own fork would append to
the thread and so become what its next follow-up builds on; here the original conversation stays untouched.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast, get_type_hints
from uuid import uuid4

from langgraph.types import StateSnapshot
from pydantic import TypeAdapter, ValidationError

from app.runs.history import node_of
from app.runs.turns import Branch
from app.services import Services
from app.settings import merge_knobs
from domain.documents import Scope
from domain.errors import StateError, UnknownCheckpoint, UnknownMode, UnknownThread
from domain.profile import Profile
from domain.state import AnswerState

FIXED = {"run_id", "workspace_id", "steps"}
"""What a replay cannot set: it has a run id of its own, and a workspace is a boundary."""


async def open_branch(
    services: Services,
    workspace_id: str,
    thread_id: str,
    checkpoint_id: str,
    changes: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Branch:
    """Copy a saved state into a new thread, with `changes` made to it, ready to run on.

    `changes` maps state fields to values; a dotted key such as `profile.rerank.keep` reaches into the profile.

    Raises `UnknownThread`, `UnknownCheckpoint`, `UnknownMode`, `UnknownDocument`, and `StateError` for a key that
    does not exist, a value of the wrong type, or a checkpoint after which nothing is left to run.
    """
    if not await services.threads.exists(workspace_id, thread_id):
        raise UnknownThread(f"There is no thread {thread_id!r} in this workspace.")
    snapshot = await _read_checkpoint(services, thread_id, checkpoint_id)
    values = dict(snapshot.values)
    if mode is not None:
        profile = services.modes.get(mode)
        if profile is None:
            raise UnknownMode(f"There is no mode {mode!r}. There are: {', '.join(services.modes)}.")
        values |= {"mode": mode, "profile": profile.model_dump()}
    values = apply_changes(values, changes or {})
    documents = values.get("document_ids")
    if documents is not None:
        await services.documents.corpus_fingerprint(Scope(workspace_id, tuple(documents)))

    branch_id = str(uuid4())
    values |= {"run_id": str(uuid4()), "steps": []}
    forked_from = {"thread_id": thread_id, "checkpoint_id": checkpoint_id, "changed": sorted(changes or {})}
    await services.threads.claim(workspace_id, branch_id)
    config = await services.graph.aupdate_state(
        {"configurable": {"thread_id": branch_id}, "metadata": {"forked_from": json.dumps(forked_from)}},
        values,
        as_node=await _find_node(services, snapshot),
    )
    if not (await services.graph.aget_state(config)).next:
        raise StateError("Nothing is left to run from this checkpoint: it ends a turn. Choose an earlier one.")
    return Branch(thread_id=branch_id, values=cast(AnswerState, values), forked_from=forked_from)


def apply_changes(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with `changes` made, each checked against the type of its field.

    A string is also tried as JSON, because that is how a command line carries lists and numbers.
    """
    types = get_type_hints(AnswerState)
    changed = dict(values)
    for key, value in changes.items():
        field, *path = key.split(".")
        if field not in types or field in FIXED:
            settable = ", ".join(sorted(set(types) - FIXED))
            raise StateError(f"{key!r} cannot be set. These can: {settable}.")
        if field == "profile":
            changed["profile"] = _set_knob(changed["profile"], path, value)
        elif path:
            raise StateError(f"{key!r} cannot be set: only profile has parts. Set {field!r} as a whole.")
        else:
            changed[field] = _check_type(key, types[field], value)
    return changed


def _check_type(key: str, expected: Any, value: Any) -> Any:
    problem = ""
    for attempt in _readings(value):
        try:
            return TypeAdapter(expected).validate_python(attempt, strict=True)
        except ValidationError as error:
            problem = problem or error.errors()[0]["msg"]
    raise StateError(f"{key!r} does not take {value!r}: {problem}.")


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
    raise StateError(f"{'.'.join(['profile', *path])!r} does not take {value!r}: {problem}.")


def _readings(value: Any) -> list[Any]:
    """The value read as JSON where it is a string that allows it, then as it is."""
    if not isinstance(value, str):
        return [value]
    try:
        return [json.loads(value), value]
    except json.JSONDecodeError:
        return [value]


async def _read_checkpoint(services: Services, thread_id: str, checkpoint_id: str) -> StateSnapshot:
    with services.translating_errors():
        snapshot = await services.graph.aget_state(
            {"configurable": {"thread_id": thread_id, "checkpoint_id": checkpoint_id}}
        )
    if snapshot.created_at is None:
        raise UnknownCheckpoint(
            f"Thread {thread_id!r} has no checkpoint {checkpoint_id!r}. `askgraph history {thread_id}` lists them."
        )
    if (snapshot.metadata or {}).get("source") == "input":
        raise UnknownCheckpoint("The run had not begun at this checkpoint; take the one after it.")
    return snapshot


async def _find_node(services: Services, snapshot: StateSnapshot) -> str:
    """The node that made the snapshot, as which its values are written again so that the same edges are taken."""
    parent = await services.graph.aget_state(snapshot.parent_config) if snapshot.parent_config else None
    node = node_of(snapshot, parent)
    if node in services.graph.nodes:
        return node
    # The first state of a branch: its node is the one that comes before what runs next in the original.
    forked_from = json.loads(str((snapshot.metadata or {}).get("forked_from", "{}")))
    if not forked_from:
        return "reconcile"
    origin = await _read_checkpoint(services, forked_from["thread_id"], forked_from["checkpoint_id"])
    return await _find_node(services, origin)
