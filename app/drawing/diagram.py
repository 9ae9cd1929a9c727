"""The steps and edges of the answer graph, as drawings need them.

`answer_graph.json` stores them beside this module, because compiling the graph to draw it takes two seconds of CPU, and
drawing it a tenth. A test compares the file with the compiled graph; `python -m app.drawing` writes it.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Point = tuple[float, float]

STORED = Path(__file__).with_name("answer_graph.json")


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
    x: float
    y: float
    width: float
    height: float


class PlacedEdge(TypedDict):
    """An edge as a line, from the border of one rectangle to that of the other."""

    source: str
    target: str
    label: str | None
    """The outcome that leads this way; null for an edge that is always taken."""
    points: list[Point]
    """Corners of the line: x and y of each."""


class Layout(TypedDict):
    """A diagram with positions, in units of length from the top left corner."""

    width: float
    height: float
    steps: list[PlacedStep]
    edges: list[PlacedEdge]


def read_graph(graph: "CompiledStateGraph[Any, Any, Any, Any]") -> Diagram:
    """Return the diagram of a compiled graph."""
    drawable = graph.get_graph()
    edges = [Edge(edge.source, edge.target, str(edge.data) if edge.data else None) for edge in drawable.edges]
    return Diagram(tuple(drawable.nodes), tuple(edges))


def load_diagram() -> Diagram:
    """Return the stored diagram of the answer graph."""
    stored = json.loads(STORED.read_text("utf-8"))
    return Diagram(tuple(stored["steps"]), tuple(Edge(**edge) for edge in stored["edges"]))


def store_diagram(diagram: Diagram) -> None:
    """Store the diagram of the answer graph."""
    STORED.write_text(json.dumps(asdict(diagram), indent=1) + "\n", "utf-8")
