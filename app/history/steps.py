"""What saved states say of themselves: which step made them, and whose they are."""

import json
from collections.abc import Mapping, Set
from typing import Any

from langgraph.types import StateSnapshot

_WRITTEN = {"cached": "cache", "stopped": "stop"}
"""Metadata marks of states that no node has made, and the node name that each is shown with."""


def list_runs_of(state: StateSnapshot) -> Set[str]:
    """Return the runs that stand in a state: the one that saved it and, before the first step of a question, the one
    before; in the first state of a branch, the one that it copies."""
    metadata: Mapping[str, Any] = state.metadata or {}
    copied = json.loads(metadata.get("forked_from") or "{}").get("run_id")
    return {str(each) for each in (state.values.get("run_id"), metadata.get("run_id"), copied) if each}


def checkpoint_id_of(snapshot: StateSnapshot) -> str:
    """Return the id of the checkpoint that a snapshot was read from."""
    return str(snapshot.config["configurable"]["checkpoint_id"])


def node_of(snapshot: StateSnapshot, parent: StateSnapshot | None) -> str:
    """Return the name of the node whose update the snapshot holds; or `__start__` for a question, `cache` for a cached
    answer, `stop` where somebody stopped the run, and `fork` where a replay began."""
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    if metadata.get("source") in ("update", "fork"):
        return next((node for mark, node in _WRITTEN.items() if metadata.get(mark)), "fork")
    return parent.next[0] if parent is not None and parent.next else "__start__"


def parent_id_of(snapshot: StateSnapshot) -> str | None:
    """Return the id of the checkpoint before it."""
    return snapshot.parent_config["configurable"]["checkpoint_id"] if snapshot.parent_config else None
