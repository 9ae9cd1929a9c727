"""The LangGraph configuration of a run: its thread, its trace, and the metadata of its checkpoints."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from langchain_core.runnables import RunnableConfig

from graphs.answer import RECURSION_LIMIT


def configure_run(thread_id: str, turn: Mapping[str, Any], *, attempt: int = 1, **more: str) -> RunnableConfig:
    """Build the configuration of one attempt at a run. `more` is added to the metadata."""
    metadata = {"thread_id": thread_id, **describe_run(turn, attempt=attempt, **more)}
    return RunnableConfig(
        configurable=locate_states(metadata["workspace_id"], thread_id)["configurable"],
        run_id=UUID(trace_id(turn["run_id"], attempt)),
        run_name="answer",
        metadata=metadata,
        recursion_limit=RECURSION_LIMIT,
    )


def describe_run(turn: Mapping[str, Any], *, attempt: int = 1, **more: str) -> dict[str, Any]:
    """Build the metadata by which a run's traces and checkpoints are found, and checkpoints of an attempt refused that
    a later one has replaced."""
    return {
        "run_id": turn["run_id"],
        "workspace_id": turn["scope"]["workspace_id"],
        "mode": turn["mode"],
        "attempt": attempt,
        **more,
    }


def locate_states(workspace_id: str, thread_id: str, **more: str) -> RunnableConfig:
    """Build the configuration that finds a thread's states, or with `checkpoint_id` one of them. Without the workspace,
    or with another one, there are none."""
    return RunnableConfig(configurable={"thread_id": thread_id, "workspace_id": workspace_id, **more})


def trace_id(run_id: str, attempt: int) -> str:
    """Return the id of an attempt's trace: the run's id for the first attempt, another for each later one, because a
    trace has a single root."""
    return run_id if attempt == 1 else str(uuid5(UUID(run_id), str(attempt)))
