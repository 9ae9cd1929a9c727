"""Saved states, whichever version of the state's types they were saved under.

Each checkpoint's metadata says the version (`domain.state.STATE_VERSION`). A field that a state lacks, because it is
newer, is blank; every other change of shape has a function here, which makes of a state of one version one of the next.
"""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.graph import START
from langgraph.types import StateSnapshot
from pydantic import TypeAdapter, ValidationError

from domain.errors import StateError
from domain.profile import Profile
from domain.state import STATE_VERSION, AnswerState, blank_question, gather_scope
from graphs.answer import LAST, AnswerGraph

MIGRATED = "migrated"
"""Marks a state that was brought up to date, in its metadata."""

THINNED = "thinned"
"""Marks a final state whose run has no other any more, in its metadata."""

_STATE = TypeAdapter(AnswerState)


def _keep_what_was_found(values: dict[str, Any]) -> dict[str, Any]:
    """What was found says how relevant it is, and an attempt keeps what it had found. Versions before 2 were not
    noted, and some of them did both already."""
    migrated = dict(values)
    if "candidates" in values:
        migrated["candidates"] = [{"relevance": None, **candidate} for candidate in values["candidates"]]
    if values.get("previous"):
        migrated["previous"] = {"candidates": [], **values["previous"]}
    return migrated


_MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _keep_what_was_found, 2: gather_scope}
"""By the version that they start from."""


def rename_fields(checkpoint: Checkpoint) -> Checkpoint:
    """Give the fields of a saved state their present names, for the saver: LangGraph drops a field that the graph does
    not declare, before `migrate` could see it."""
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    renamed = gather_scope(values)
    if isinstance(given := renamed.get(START), dict):
        renamed[START] = gather_scope(given)
    if "scope" in renamed and "scope" not in versions:
        # Without a version of its own, the field would not be saved with the next checkpoint.
        versions = {**versions, "scope": versions["workspace_id"]}
    return {**checkpoint, "channel_values": renamed, "channel_versions": versions}


def read_version(metadata: Mapping[str, Any] | None) -> int:
    """The version that a checkpoint was saved under; 1 where none was noted."""
    return int((metadata or {}).get("state_version", 1))


def migrate(values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """The fields that a state has, in the shape of today. Those of a newer version are left as they are, and so are
    those that are not of the shape that their version says."""
    migrated = dict(values)
    for older in range(version, STATE_VERSION):
        try:
            migrated = _MIGRATIONS[older](migrated)
        except (TypeError, ValueError, AttributeError, KeyError):
            break
    return migrated


def complete(values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A state of today, with what is missing in the saved one blank."""
    return {**blank_question(), "turns": [], **migrate(values, version)}


def read_values(snapshot: StateSnapshot) -> dict[str, Any]:
    """The saved state as one of today."""
    return complete(snapshot.values, read_version(snapshot.metadata))


def find_problem(values: Mapping[str, Any], version: int = STATE_VERSION) -> tuple[str, str] | None:
    """What keeps this version's nodes from reading a complete state: the field, with where in it, and why."""
    if version > STATE_VERSION:
        return "state_version", f"{version} is of a newer askgraph, and this one knows {STATE_VERSION}"
    try:
        _STATE.validate_python(dict(values), strict=True)
        Profile.model_validate(values["profile"])
    except ValidationError as error:
        problem = error.errors()[0]
        where = [*(["profile"] if error.title == Profile.__name__ else []), *map(str, problem["loc"])]
        return ".".join(where), problem["msg"]
    return None


def require_current(values: Mapping[str, Any], version: int = STATE_VERSION) -> None:
    """Raises `StateError` where the state is not one that this version's nodes can read."""
    if problem := find_problem(values, version):
        raise StateError(
            f"This state cannot be run on from: another version of askgraph saved it ({': '.join(problem)}). "
            "Set what is wrong in it, or run on from another."
        )


async def bring_up_to_date(graph: AnswerGraph, thread_id: str) -> StateSnapshot:
    """The thread's last state. One that an older version saved is saved again first, in the shape of today, and a run
    that it is in the middle of goes on from there: what runs in the thread afterwards reads nothing else."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    snapshot = await graph.aget_state(config)
    version = read_version(snapshot.metadata)
    if not snapshot.values or version >= STATE_VERSION:
        return snapshot
    # Nothing follows a turn that has ended. Otherwise it is the node that made the state, for the same edges.
    node: str | None = LAST
    if snapshot.tasks:
        # A step whose writes were stored, and whose own state was not any more, has its writes in the values.
        node = next((task.name for task in snapshot.tasks if task.result is not None), None)
        if node is None and snapshot.parent_config:
            node = next(iter((await graph.aget_state(snapshot.parent_config)).next), None)
    if node is None or node == START:
        # The first step resets all that the last turn left.
        return snapshot
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    noted = {key: metadata[key] for key in ("run_id", "workspace_id", "mode") if key in metadata}
    migration = RunnableConfig(configurable={"thread_id": thread_id}, metadata={**noted, MIGRATED: "true"})
    await graph.aupdate_state(migration, complete(snapshot.values, version), as_node=node)
    return await graph.aget_state(config)
