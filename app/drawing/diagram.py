"""The steps and edges of the answer graph, as drawings need them."""

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

Format = Literal["mermaid", "ascii", "json"]

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


def draw_mermaid(diagram: Diagram) -> str:
    """Return the diagram in Mermaid's language, one edge a line."""
    lines = ["graph TD;"]
    for edge in diagram.edges:
        arrow = f"-. {edge.label} .->" if edge.label else "-->"
        lines.append(f"    {edge.source} {arrow} {edge.target};")
    return "\n".join(lines) + "\n"


def draw_ascii(diagram: Diagram) -> str:
    """Return a drawing for a terminal of 120 columns: every step with the steps it leads to, and when.

    The steps come in the order of the graph's file, which is that of a run.
    """
    outgoing: dict[str, list[Edge]] = defaultdict(list)
    for edge in diagram.edges:
        outgoing[edge.source].append(edge)
    places = {step: place for place, step in enumerate(diagram.steps)}
    width = max(len(edge.label or "always") for edge in diagram.edges)
    lines = []
    for step in diagram.steps:
        edges = sorted(outgoing[step], key=lambda edge: places[edge.target])
        lines.append(step)
        for position, edge in enumerate(edges):
            corner = "`--" if position == len(edges) - 1 else "|--"
            label = f" {edge.label or 'always'} ".ljust(width + 2, "-")
            back = "   (back)" if places[edge.target] <= places[step] else ""
            lines.append(f"  {corner}{label}--> {edge.target}{back}")
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=8)
def draw(diagram: Diagram, format: Format) -> bytes:
    """Return the drawing: UTF-8 text; as JSON, a `Layout`. Every page asks for it."""
    if format != "json":
        return (draw_mermaid(diagram) if format == "mermaid" else draw_ascii(diagram)).encode()
    # Pillow is needed for this format alone.
    from app.drawing.layout import lay_out

    return json.dumps(lay_out(diagram)).encode()
