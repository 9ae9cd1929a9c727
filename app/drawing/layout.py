"""Places the steps and edges of a diagram on a plane, in layers from top to bottom (Sugiyama)."""

from dataclasses import dataclass
from itertools import pairwise

from grandalf.graphs import Edge as LayoutEdge
from grandalf.graphs import Vertex, graph_core
from grandalf.layouts import SugiyamaLayout
from PIL import ImageFont

from app.drawing.diagram import Diagram, Layout, PlacedEdge, PlacedStep, Point
from graphs.answer import STEPS

STEP_FONT, LABEL_FONT = 15, 12
"""Sizes of the text of steps and labels, in units of length."""
_PANE_FONT = 18
"""The same where there is little room."""
_MARGIN = 4


class Box:
    """A vertex as grandalf lays it out: it reads the size and sets the centre."""

    def __init__(self, text: str, font: ImageFont.FreeTypeFont, margin: Point) -> None:
        self.text = text
        self.w = font.getlength(text) + 2 * margin[0]
        self.h = sum(font.getmetrics()) + 2 * margin[1]
        self.xy: Point = (0.0, 0.0)

    def corners(self, grow: float = 0) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of the box, or of one that is larger on every side."""
        (x, y), w, h = self.xy, self.w / 2 + grow, self.h / 2 + grow
        return (x - w, y - h, x + w, y + h)


class _Path:
    """An edge as grandalf lays it out: it sets the points on the way."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        self.points = points


@dataclass(frozen=True, slots=True)
class Plan:
    """A diagram whose parts have places."""

    steps: dict[str, Box]
    labels: list[Box]
    """Those that were laid out as vertices."""
    routes: list[list[list[Point]]]
    """For each edge the points of its parts, from centre to centre. An edge with a label among `labels` has two."""


def load_font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font of drawings."""
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def place_labelled(diagram: Diagram, scale: int) -> Plan:
    """Place steps, edges and labels, in `scale` pixels per unit of length.

    A label is laid out as a vertex in the middle of its edge, so that no line crosses its text.
    """
    step_font, label_font = load_font(STEP_FONT * scale), load_font(LABEL_FONT * scale)
    steps = {name: _make_vertex(name, step_font, (16 * scale, 6 * scale)) for name in diagram.steps}
    labels: list[Vertex] = []
    routes: list[list[LayoutEdge]] = []
    for edge in diagram.edges:
        stops = [steps[edge.source], steps[edge.target]]
        if edge.label:
            labels.append(_make_vertex(edge.label, label_font, (5 * scale, 1 * scale)))
            stops.insert(1, labels[-1])
        routes.append([LayoutEdge(tail, head) for tail, head in pairwise(stops)])
    return _place(steps, labels, routes, (22 * scale, 20 * scale))


def lay_out(diagram: Diagram) -> Layout:
    """Place the steps and the edges between them as closely as can be read, for a pane of a page: without start and
    end, and with labels that are told, not placed."""
    font = load_font(_PANE_FONT)
    steps = {name: _make_vertex(name, font, (6, 9)) for name in diagram.steps if not name.startswith("__")}
    edges = [edge for edge in diagram.edges if edge.source in steps and edge.target in steps]
    # Two outcomes may lead the same way.
    lines = {(edge.source, edge.target): LayoutEdge(steps[edge.source], steps[edge.target]) for edge in edges}
    plan = _place(steps, [], [[lines[edge.source, edge.target]] for edge in edges], (6, 20), bend=12)
    routes = [
        _clip(route, plan.steps[edge.source], plan.steps[edge.target])
        for edge, (route,) in zip(edges, plan.routes, strict=True)
    ]
    corners = [box.corners() for box in plan.steps.values()]
    xs = [x for left, _, right, _ in corners for x in (left, right)] + [x for route in routes for x, _ in route]
    ys = [y for _, top, _, bottom in corners for y in (top, bottom)] + [y for route in routes for _, y in route]
    shift = (_MARGIN - min(xs), _MARGIN - min(ys))
    return Layout(
        width=round(max(xs) + shift[0] + _MARGIN, 1),
        height=round(max(ys) + shift[1] + _MARGIN, 1),
        steps=[_describe(name, box, shift) for name, box in plan.steps.items()],
        edges=[
            PlacedEdge(
                source=edge.source,
                target=edge.target,
                label=edge.label,
                points=[_round(point, shift) for point in route],
            )
            for edge, route in zip(edges, routes, strict=True)
        ],
    )


def _make_vertex(text: str, font: ImageFont.FreeTypeFont, margin: Point) -> Vertex:
    vertex = Vertex(text)
    vertex.view = Box(text, font, margin)
    return vertex


def _place(
    steps: dict[str, Vertex],
    labels: list[Vertex],
    routes: list[list[LayoutEdge]],
    space: Point,
    bend: float | None = None,
) -> Plan:
    """Place what is given. `bend` is the width that a layer keeps for a line that passes; None: that of most boxes."""
    edges = list(dict.fromkeys(part for route in routes for part in route))
    for edge in edges:
        edge.view = _Path()
    # `Graph` would put the edges into a set, whose order is another one each time.
    layout = SugiyamaLayout(graph_core([*steps.values(), *labels], edges))
    layout.xspace, layout.yspace = space
    layout.dw = layout.dw if bend is None else bend
    layout.route_edge = lambda edge, points: None
    layout.init_all()
    layout.draw(3)
    return Plan(
        {name: vertex.view for name, vertex in steps.items()},
        [vertex.view for vertex in labels],
        [[part.view.points for part in route] for route in routes],
    )


def _clip(route: list[Point], source: Box, target: Box) -> list[Point]:
    """Return the part of the line between the borders of the two boxes."""
    begun = _cut_off(route, source)
    return _cut_off(begun[::-1], target)[::-1]


def _cut_off(route: list[Point], box: Box) -> list[Point]:
    """Return the line, which begins in the box, from where it leaves it."""
    corners = box.corners()
    outside = next(place for place, point in enumerate(route) if not lies_in(point, corners))
    return [meet(route[outside], route[outside - 1], corners), *route[outside:]]


def lies_in(point: Point, corners: tuple[float, float, float, float]) -> bool:
    """Return True if the point is within the rectangle."""
    left, top, right, bottom = corners
    return left < point[0] < right and top < point[1] < bottom


def meet(outside: Point, inside: Point, corners: tuple[float, float, float, float]) -> Point:
    """Return the point where the line from `outside` to `inside` enters the rectangle, found by bisection."""
    for _ in range(20):
        middle = middle_of(outside, inside)
        if lies_in(middle, corners):
            inside = middle
        else:
            outside = middle
    return outside


def middle_of(a: Point, b: Point) -> Point:
    """Return the point between two points."""
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _describe(name: str, box: Box, shift: Point) -> PlacedStep:
    x, y = _round(box.xy, shift)
    return PlacedStep(name=name, label=STEPS[name].label, x=x, y=y, width=round(box.w, 1), height=round(box.h, 1))


def _round(point: Point, shift: Point) -> Point:
    return (round(point[0] + shift[0], 1), round(point[1] + shift[1], 1))
