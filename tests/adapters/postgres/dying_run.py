"""A run that hangs in its second step, for a test to kill.

python -m tests.adapters.postgres.dying_run DATABASE_URL THREAD_ID
"""

import asyncio
import sys
from operator import add
from typing import Annotated, Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from app.adapters.postgres.checkpoints.saver import open_saver
from app.adapters.postgres.pool import open_pool


class State(TypedDict):
    seen: Annotated[list[str], add]


def build_run(saver: BaseCheckpointSaver[str], name: str, seconds: float) -> Any:
    """Build quick → slow. Each step records `name` as its executor."""

    async def quick(state: State) -> dict[str, Any]:
        return {"seen": [f"quick in {name}"]}

    async def slow(state: State) -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {"seen": [f"slow in {name}"]}

    graph = StateGraph(State)
    graph.add_node("quick", quick)
    graph.add_node("slow", slow)
    graph.add_edge(START, "quick")
    graph.add_edge("quick", "slow")
    graph.add_edge("slow", END)
    return graph.compile(checkpointer=saver)


async def main(database_url: str, thread_id: str) -> None:
    """Start a run that does not end."""
    async with open_pool(database_url) as pool, open_saver(pool) as saver:
        await build_run(saver, "the first", 3600).ainvoke({"seen": []}, {"configurable": {"thread_id": thread_id}})


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
