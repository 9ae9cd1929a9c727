"""The graph, and the states of threads that its checkpointer saves."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import cast

from langgraph.types import StateSnapshot

from app.answering.run_config import configure_run, locate_states
from domain.state import AnswerState
from domain.threads import state_key
from graphs.answer import FINAL_NODE, AnswerGraph


class ThreadStates:
    """Reads and writes the saved states of threads."""

    def __init__(
        self,
        graph: AnswerGraph,
        flush: Callable[[str], Awaitable[None]],
        translating_errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`flush` returns once the states of the thread with this key (`domain.threads`) are stored, and raises what
        storing them failed with.
        `translating_errors` turns the checkpointer's driver errors into ours."""
        self.graph = graph
        self.translating_errors = translating_errors
        self._flush = flush

    def over(self, graph: AnswerGraph) -> "ThreadStates":
        """Return the same states under another compiled form of the graph."""
        return self if graph is self.graph else ThreadStates(graph, self._flush, self.translating_errors)

    async def read(self, workspace_id: str, thread_id: str) -> StateSnapshot:
        """Return the thread's latest state; its `created_at` is None where the thread has none.

        Raises `DatabaseUnavailable` and `DamagedState`.
        """
        with self.translating_errors():
            return await self.graph.aget_state(locate_states(workspace_id, thread_id))

    async def write(self, thread_id: str, state: AnswerState, *, attempt: int = 1, **metadata: str) -> None:
        """Make `state`, which no node has produced, the thread's latest.

        Raises `DatabaseUnavailable`.
        """
        config = configure_run(thread_id, state, attempt=attempt, **metadata)
        with self.translating_errors():
            await self.graph.aupdate_state(config, cast("dict[str, object]", state), as_node=FINAL_NODE)

    async def flush(self, workspace_id: str, thread_id: str) -> None:
        """Return once every process can read all states of the thread.

        Raises `DatabaseUnavailable` where they could not be stored.
        """
        with self.translating_errors():
            await self._flush(state_key(workspace_id, thread_id))
