"""The steps and edges of the answer graph, as drawings need them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Edge:
    """An arrow from one step to another."""

    source: str
    target: str
    label: str | None
    """The outcome that leads this way; None for an edge that is always taken."""


@dataclass(frozen=True, slots=True)
class Diagram:
    """Steps by name, from `__start__` to `__end__`, and the edges between them."""

    steps: tuple[str, ...]
    edges: tuple[Edge, ...]


class PlacedStep(TypedDict):
    """A step as a rectangle; `x` and `y` are its centre."""

    name: str
    """The step's name."""
    label: str
    """What the step does, in words."""
    x: float
    """From the left."""
    y: float
    """From the top."""
    width: float
    """From left to right."""
    height: float
    """From top to bottom."""


class PlacedEdge(TypedDict):
    """An edge as a line, from the border of one rectangle to that of the other."""

    source: str
    """The step that it leaves."""
    target: str
    """The step that it leads to."""
    label: str | None
    """The outcome that leads this way; null for an edge that is always taken."""
    points: list[Point]
    """Corners of the line: x and y of each."""


class Layout(TypedDict):
    """A diagram with positions, in units of length from the top left corner."""

    width: float
    """From left to right."""
    height: float
    """From top to bottom."""
    steps: list[PlacedStep]
    edges: list[PlacedEdge]


def read_graph(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> Diagram:
    """Return the diagram of a compiled graph."""
    drawable = graph.get_graph()
    edges = [Edge(edge.source, edge.target, str(edge.data) if edge.data else None) for edge in drawable.edges]
    return Diagram(tuple(drawable.nodes), tuple(edges))
