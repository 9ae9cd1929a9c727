"""A graph with the steps and the state of ours, and next to no work in them, for LangGraph's server.

`benchmarks.side_by_side` runs it in an environment of its own, so nothing of askgraph is imported here. The state holds
as much as ours does after each step; the answer is streamed by LangChain's client for OpenAI.
"""

from typing import Annotated, Any

from langchain_core.messages import AnyMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

CANDIDATES, KEPT = 40, 5


class State(TypedDict):
    """The state of a thread."""

    messages: Annotated[list[AnyMessage], add_messages]
    route: str
    candidates: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    confidence: float


async def route(state: State) -> dict[str, Any]:
    """Every question needs retrieval."""
    return {"route": "needs_retrieval"}


async def retrieve(state: State) -> dict[str, Any]:
    """Find the same candidates for every question."""
    ids = (f"00000000-0000-0000-0000-{number:012}" for number in range(CANDIDATES))
    return {"candidates": [{"chunk_id": i, "document_id": i, "score": 1 / (n + 1)} for n, i in enumerate(ids)]}


async def rerank(state: State) -> dict[str, Any]:
    """Keep the best, with their text."""
    best = sorted(state["candidates"], key=lambda candidate: -candidate["score"])[:KEPT]
    text = "An employee has 30 days of holiday a year. " * 12
    return {"sources": [candidate | {"title": "Handbook", "text": text} for candidate in best]}


async def grade(state: State) -> dict[str, Any]:
    """Judge the best score."""
    return {"confidence": state["sources"][0]["score"]}


async def generate(state: State) -> dict[str, Any]:
    """Write the answer."""
    model = ChatOpenAI(model="gpt-4.1-mini", streaming=True, stream_usage=True, temperature=0.2)
    sources = "\n\n".join(f"[{number}] {source['text']}" for number, source in enumerate(state["sources"], 1))
    asked = [SystemMessage(f"Answer from these sources, and cite them.\n\n{sources}"), state["messages"][-1]]
    return {"messages": [await model.ainvoke(asked)]}


_steps = {"route": route, "retrieve": retrieve, "rerank": rerank, "grade": grade, "generate": generate}
_builder = StateGraph(State)
for _name, _step in _steps.items():
    _builder.add_node(_name, _step)
for _before, _after in zip([START, *_steps], [*_steps, END], strict=True):
    _builder.add_edge(_before, _after)
graph = _builder.compile()
