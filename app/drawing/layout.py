"""Places the steps and edges of a diagram on a plane, in layers from top to bottom (Sugiyama)."""

from grandalf.graphs import Edge as LayoutEdge
from grandalf.graphs import Vertex, graph_core
from grandalf.layouts import SugiyamaLayout
from PIL import ImageFont

from app.drawing.diagram import Diagram, Layout, PlacedEdge, PlacedStep, Point
from graphs.answer import STEPS

_FONT = 18
"""Size of the text of steps, in units of length."""
_MARGIN = 4


class Box:
    """A vertex as grandalf lays it out: it reads the size and sets the centre."""

    def __init__(self, text: str, font: ImageFont.FreeTypeFont, margin: Point) -> None:
        self.text = text
        self.w = font.getlength(text) + 2 * margin[0]
        self.h = sum(font.getmetrics()) + 2 * margin[1]
        self.xy: Point = (0.0, 0.0)

    def corners(self) -> tuple[float, float, float, float]:
        """Return left, top, right and bottom of the box."""
        (x, y), w, h = self.xy, self.w / 2, self.h / 2
        return (x - w, y - h, x + w, y + h)


class _Path:
    """An edge as grandalf lays it out: it sets the points on the way."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        self.points = points


def lay_out(diagram: Diagram) -> Layout:
    """Place the steps and the edges between them as closely as can be read, for a pane of a page: without start and
    end, and with labels that are told, not placed."""
    font = ImageFont.load_default(_FONT)
    assert isinstance(font, ImageFont.FreeTypeFont)
    steps = {name: _make_vertex(name, font, (6, 9)) for name in diagram.steps if not name.startswith("__")}
    edges = [edge for edge in diagram.edges if edge.source in steps and edge.target in steps]
    # Two outcomes may lead the same way.
    lines = {(edge.source, edge.target): LayoutEdge(steps[edge.source], steps[edge.target]) for edge in edges}
    _place(list(steps.values()), list(lines.values()))
    boxes: dict[str, Box] = {name: vertex.view for name, vertex in steps.items()}
    routes = [
        _clip(lines[edge.source, edge.target].view.points, boxes[edge.source], boxes[edge.target]) for edge in edges
    ]
    corners = [box.corners() for box in boxes.values()]
    xs = [x for left, _, right, _ in corners for x in (left, right)] + [x for route in routes for x, _ in route]
    ys = [y for _, top, _, bottom in corners for y in (top, bottom)] + [y for route in routes for _, y in route]
    shift = (_MARGIN - min(xs), _MARGIN - min(ys))
    return Layout(
        width=round(max(xs) + shift[0] + _MARGIN, 1),
        height=round(max(ys) + shift[1] + _MARGIN, 1),
        steps=[_describe(name, box, shift) for name, box in boxes.items()],
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


def _place(steps: list[Vertex], edges: list[LayoutEdge]) -> None:
    for edge in edges:
        edge.view = _Path()
    # `Graph` would put the edges into a set, whose order is another one each time.
    layout = SugiyamaLayout(graph_core(steps, edges))
    layout.xspace, layout.yspace = 6, 20
    layout.dw = 12  # the width that a layer keeps for a line that passes
    layout.route_edge = lambda edge, points: None
    layout.init_all()
    layout.draw(3)


def _clip(route: list[Point], source: Box, target: Box) -> list[Point]:
    """Return the part of the line between the borders of the two boxes."""
    begun = _cut_off(route, source)
    return _cut_off(begun[::-1], target)[::-1]


def _cut_off(route: list[Point], box: Box) -> list[Point]:
    """Return the line, which begins in the box, from where it leaves it."""
    corners = box.corners()
    outside = next(place for place, point in enumerate(route) if not _lies_in(point, corners))
    return [_meet(route[outside], route[outside - 1], corners), *route[outside:]]


def _lies_in(point: Point, corners: tuple[float, float, float, float]) -> bool:
    """Return True if the point is within the rectangle."""
    left, top, right, bottom = corners
    return left < point[0] < right and top < point[1] < bottom


def _meet(outside: Point, inside: Point, corners: tuple[float, float, float, float]) -> Point:
    """Return the point where the line from `outside` to `inside` enters the rectangle, found by bisection."""
    for _ in range(20):
        middle = _middle_of(outside, inside)
        if _lies_in(middle, corners):
            inside = middle
        else:
            outside = middle
    return outside


def _middle_of(a: Point, b: Point) -> Point:
    """Return the point between two points."""
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _describe(name: str, box: Box, shift: Point) -> PlacedStep:
    x, y = _round(box.xy, shift)
    return PlacedStep(name=name, label=STEPS[name].label, x=x, y=y, width=round(box.w, 1), height=round(box.h, 1))


def _round(point: Point, shift: Point) -> Point:
    return (round(point[0] + shift[0], 1), round(point[1] + shift[1], 1))
