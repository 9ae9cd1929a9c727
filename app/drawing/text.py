"""Draws a diagram as text."""

from collections import defaultdict, deque

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

    The steps come in the order in which a run can first reach them.
    """
    outgoing: dict[str, list[Edge]] = defaultdict(list)
    for edge in diagram.edges:
        outgoing[edge.source].append(edge)
    ranks = _rank(diagram, outgoing)
    width = max(len(edge.label or "always") for edge in diagram.edges)
    lines = []
    for step in sorted(ranks, key=lambda step: ranks[step]):
        edges = sorted(outgoing[step], key=lambda edge: ranks[edge.target])
        lines.append(step)
        for position, edge in enumerate(edges):
            corner = "`--" if position == len(edges) - 1 else "|--"
            label = f" {edge.label or 'always'} ".ljust(width + 2, "-")
            back = "   (back)" if ranks[edge.target] <= ranks[step] else ""
            lines.append(f"  {corner}{label}--> {edge.target}{back}")
    return "\n".join(lines) + "\n"


def _rank(diagram: Diagram, outgoing: dict[str, list[Edge]]) -> dict[str, tuple[int, int]]:
    """Return each step's distance from the start and, to break ties, its place in the graph. The end comes last."""
    first, *_, last = diagram.steps
    places = {step: place for place, step in enumerate(diagram.steps)}
    ranks = {first: (0, 0)}
    queue = deque([first])
    while queue:
        step = queue.popleft()
        for edge in outgoing[step]:
            if edge.target not in ranks:
                ranks[edge.target] = (ranks[step][0] + 1, places[edge.target])
                queue.append(edge.target)
    return ranks | {last: (len(ranks), 0)}
