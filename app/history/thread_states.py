"""The graph, and the states of threads that its checkpointer saves."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, cast
from uuid import UUID, uuid5

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from domain.runs import NEW_THREAD
from domain.state import AnswerState
from graphs.answer import FINAL_NODE, RECURSION_LIMIT, AnswerGraph


class ThreadStates:
    """Reads and writes the saved states of threads."""

    def __init__(
        self,
        graph: AnswerGraph,
        flush: Callable[[str, str], Awaitable[None]],
        translating_errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`flush` returns once the states of a thread, by workspace and id, are stored, and raises what storing them
        failed with.
        `translating_errors` turns the checkpointer's driver errors into ours."""
        self.graph = graph
        self.translating_errors = translating_errors
        self._flush = flush

    async def read(self, workspace_id: str, thread_id: str) -> StateSnapshot:
        """Return the thread's latest state; its `created_at` is None where the thread has none.

        Raises `DatabaseUnavailable` and `DamagedState`.
        """
        with self.translating_errors():
            return await self.graph.aget_state(locate_states(workspace_id, thread_id))

    async def write(
        self, thread_id: str, state: AnswerState, *, attempt: int = 1, begins_thread: bool = False, **metadata: str
    ) -> None:
        """Make `state`, which no node has produced, the thread's latest; with `begins_thread` its first.

        Raises `DatabaseUnavailable`.
        """
        config = configure_run(thread_id, state, attempt=attempt, begins_thread=begins_thread, **metadata)
        with self.translating_errors():
            await self.graph.aupdate_state(config, cast("dict[str, object]", state), as_node=FINAL_NODE)

    async def flush(self, workspace_id: str, thread_id: str) -> None:
        """Return once every process can read all states of the thread.

        Raises `DatabaseUnavailable` where they could not be stored.
        """
        with self.translating_errors():
            await self._flush(workspace_id, thread_id)


def configure_run(
    thread_id: str, turn: Mapping[str, Any], *, attempt: int = 1, begins_thread: bool = False, **more: str
) -> RunnableConfig:
    """Build the configuration of one attempt at a run. By the metadata, to which `more` is added, its traces and
    checkpoints are found, and checkpoints of an attempt refused that a later one has replaced. `begins_thread` says
    that the thread has no states, which need not be looked for."""
    workspace_id = turn["scope"]["workspace_id"]
    metadata = {
        "thread_id": thread_id,
        "run_id": turn["run_id"],
        "workspace_id": workspace_id,
        "mode": turn["mode"],
        "attempt": attempt,
        **more,
    }
    return RunnableConfig(
        configurable=locate_states(workspace_id, thread_id)["configurable"]
        | ({NEW_THREAD: True} if begins_thread else {}),
        run_id=UUID(trace_id(turn["run_id"], attempt)),
        run_name="answer",
        metadata=metadata,
        recursion_limit=RECURSION_LIMIT,
    )


def locate_states(workspace_id: str, thread_id: str, **more: str) -> RunnableConfig:
    """Build the configuration that finds a thread's states, or with `checkpoint_id` one of them. Without the workspace,
    or with another one, there are none."""
    return RunnableConfig(configurable={"thread_id": thread_id, "workspace_id": workspace_id, **more})


def trace_id(run_id: str, attempt: int) -> str:
    """Return the id of an attempt's trace: the run's id for the first attempt, another for each later one, because a
    trace has a single root."""
    return run_id if attempt == 1 else str(uuid5(UUID(run_id), str(attempt)))
