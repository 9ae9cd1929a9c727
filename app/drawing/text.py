"""Draws a diagram as text."""

from collections import defaultdict

from app.drawing.diagram import Diagram, Edge


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
