"""Read saved states of any version in the shape of today.

Each checkpoint's metadata holds the version of its types (`domain.state.STATE_VERSION`). A field that is newer than the
state gets its blank value; `UPGRADES` makes all other changes.
"""

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.types import StateSnapshot
from pydantic import TypeAdapter, ValidationError

from app.history.thread_states import locate_states
from domain.errors import StateError
from domain.profile import Profile
from domain.state import STATE_VERSION, AnswerState, blank_question
from graphs.answer import FINAL_NODE, AnswerGraph

UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""By version of the state: what takes the fields that a state of it has, and returns them in the shape of the next.

It never sees a field that the graph no longer declares, which LangGraph drops when it reads a checkpoint."""

MIGRATED = "migrated"
"""Metadata key of a state that was upgraded to today's version."""

_STATE = TypeAdapter(AnswerState)


def read_version(metadata: Mapping[str, Any] | None) -> int:
    """Return the version of a checkpoint; 1 where its metadata holds none."""
    return int((metadata or {}).get("state_version", 1))


def migrate(values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the fields that a state has, in the shape of today.

    A state of a newer version, or one without the shape that its version says, stays as it is.
    """
    migrated = dict(values)
    for older in range(version, STATE_VERSION):
        try:
            migrated = UPGRADES[older](migrated)
        except (TypeError, ValueError, AttributeError, KeyError):
            break
    return migrated


def complete_state(values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return a whole state in the shape of today. Fields that the saved one lacks are blank, and those that are no more
    are left out."""
    known = {name: value for name, value in values.items() if name in AnswerState.__annotations__}
    return {**blank_question(), "turns": [], **migrate(known, version)}


def read_values(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return a snapshot's whole state in the shape of today."""
    return complete_state(snapshot.values, read_version(snapshot.metadata))


def find_problem(values: Mapping[str, Any], version: int = STATE_VERSION) -> tuple[str, str] | None:
    """Return why this version's nodes cannot read a complete state: the path of the field, and the problem. None where
    they can."""
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


async def bring_up_to_date(graph: AnswerGraph, workspace_id: str, thread_id: str) -> StateSnapshot:
    """Return the thread's last state. A state of an older version is first saved again in the shape of today, so that
    whatever runs in the thread afterwards goes on from there."""
    config = locate_states(workspace_id, thread_id)
    snapshot = await graph.aget_state(config)
    version = read_version(snapshot.metadata)
    if not snapshot.values or version >= STATE_VERSION:
        return snapshot
    # Save it under the name of the node that made it, so that the same edges follow; none follow a turn that has ended.
    node: str | None = FINAL_NODE
    if snapshot.tasks:
        # If a step's writes were stored but not the state after it, the values include these writes.
        node = next((task.name for task in snapshot.tasks if task.result is not None), None)
        if node is None and snapshot.parent_config:
            node = next(iter((await graph.aget_state(snapshot.parent_config)).next), None)
    if node is None or node == START:
        # route resets all that the last turn left.
        return snapshot
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    noted = {key: metadata[key] for key in ("run_id", "workspace_id", "mode") if key in metadata}
    migration = RunnableConfig(configurable=config["configurable"], metadata={**noted, MIGRATED: "true"})
    await graph.aupdate_state(migration, complete_state(snapshot.values, version), as_node=node)
    return await graph.aget_state(config)
