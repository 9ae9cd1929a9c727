"""A graph that is quick to import, for a process to trace."""

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict):
    text: str


def build() -> StateGraph[State, None, State, State]:
    graph: StateGraph[State, None, State, State] = StateGraph(State)
    graph.add_node("first", lambda state: {"text": state["text"] + "1"})
    graph.add_node("second", lambda state: {"text": state["text"] + "2"})
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    graph.add_edge("second", END)
    return graph
