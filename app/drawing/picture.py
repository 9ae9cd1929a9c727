"""Draws a diagram as an image."""

from io import BytesIO
from itertools import pairwise
from math import atan2, cos, hypot, pi, sin

from grandalf.graphs import Edge as LayoutEdge
from grandalf.graphs import Graph as LayoutGraph
from grandalf.graphs import Vertex
from grandalf.layouts import SugiyamaLayout
from PIL import Image, ImageDraw, ImageFont

from app.drawing.diagram import Diagram

Point = tuple[float, float]

SCALE = 4
"""Pixels per unit of length while drawing. Pillow does not smooth lines, so the image is then halved: the two pixels
per unit that remain are sharp on screens of high density."""
PAPER, INK, SOFT, LINE, ACCENT, FILL = "#ffffff", "#1c2126", "#4b545c", "#8a9299", "#0a5a68", "#e3eff0"


class _Box:
    """A vertex as grandalf lays it out: it reads the size and sets the centre."""

    def __init__(self, text: str, font: ImageFont.FreeTypeFont, margin: Point) -> None:
        self.text = text
        self.w = font.getlength(text) + 2 * margin[0]
        self.h = sum(font.getmetrics()) + 2 * margin[1]
        self.xy: Point = (0.0, 0.0)

    def corners(self, grow: float = 0) -> tuple[float, float, float, float]:
        (x, y), w, h = self.xy, self.w / 2 + grow, self.h / 2 + grow
        return (x - w, y - h, x + w, y + h)


class _Path:
    """An edge as grandalf lays it out: it sets the points on the way."""

    def __init__(self) -> None:
        self.points: list[Point] = []

    def setpath(self, points: list[Point]) -> None:
        self.points = points


def draw_picture(diagram: Diagram) -> bytes:
    """Return a PNG image of the diagram, in layers from top to bottom (Sugiyama).

    A label is laid out as a vertex in the middle of its edge, so that no line crosses its text.
    """
    step_font, label_font = _load_font(15 * SCALE), _load_font(12 * SCALE)
    steps = {name: Vertex(name) for name in diagram.steps}
    for name, vertex in steps.items():
        vertex.view = _Box(name, step_font, (16 * SCALE, 6 * SCALE))
    labels: list[Vertex] = []
    routes: list[list[LayoutEdge]] = []
    for edge in diagram.edges:
        stops = [steps[edge.source], steps[edge.target]]
        if edge.label:
            label = Vertex(edge.label)
            label.view = _Box(edge.label, label_font, (5 * SCALE, 1 * SCALE))
            labels.append(label)
            stops.insert(1, label)
        routes.append([LayoutEdge(tail, head) for tail, head in pairwise(stops)])
    _lay_out([*steps.values(), *labels], [part for route in routes for part in route])

    boxes = [vertex.view for vertex in (*steps.values(), *labels)]
    paths = [_join(route) for route in routes]
    margin = 24 * SCALE
    xs = [x for path in paths for x, _ in path] + [x for box in boxes for x in box.corners()[::2]]
    ys = [y for path in paths for _, y in path] + [y for box in boxes for y in box.corners()[1::2]]
    shift = (margin - min(xs), margin - min(ys))
    for box in boxes:
        box.xy = _move(box.xy, shift)

    image = Image.new("RGB", (round(max(xs) + shift[0]) + margin, round(max(ys) + shift[1]) + margin), PAPER)
    pen = ImageDraw.Draw(image)
    for path, route in zip(paths, routes, strict=True):
        moved = [_move(point, shift) for point in path]
        back = moved[-1][1] < moved[0][1]
        _draw_arrow(pen, moved, route[-1].v[1].view, ACCENT if back else LINE)
    for label in labels:
        pen.rectangle(label.view.corners(), fill=PAPER)
        pen.text(label.view.xy, label.view.text, fill=SOFT, font=label_font, anchor="mm")
    for name, vertex in steps.items():
        fill = PAPER if name.startswith("__") else FILL
        pen.rounded_rectangle(vertex.view.corners(), 9 * SCALE, fill=fill, outline=ACCENT, width=round(1.5 * SCALE))
        pen.text(vertex.view.xy, name, fill=INK, font=step_font, anchor="mm")
    out = BytesIO()
    image.reduce(2).save(out, "PNG")
    return out.getvalue()


def _load_font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _lay_out(vertices: list[Vertex], edges: list[LayoutEdge]) -> None:
    for edge in edges:
        edge.view = _Path()
    layout = SugiyamaLayout(LayoutGraph(vertices, edges).C[0])
    layout.xspace, layout.yspace = 22 * SCALE, 20 * SCALE
    layout.route_edge = lambda edge, points: None
    layout.init_all()
    layout.draw(3)


def _join(route: list[LayoutEdge]) -> list[Point]:
    """Return the line through an edge's parts, from centre to centre. A label hides the corner between two parts."""
    return [point for part in route for point in _smooth(part.view.points)]


def _smooth(points: list[Point], steps: int = 12) -> list[Point]:
    """Return the line with rounded corners: quadratic Bézier curves from midpoint to midpoint."""
    if len(points) < 3:
        return points
    curve = [points[0]]
    for index in range(1, len(points) - 1):
        start = _middle(points[index - 1], points[index]) if index > 1 else points[0]
        end = _middle(points[index], points[index + 1]) if index < len(points) - 2 else points[-1]
        (ax, ay), (bx, by), (cx, cy) = start, points[index], end
        for step in range(1, steps + 1):
            t = step / steps
            curve.append(
                (
                    (1 - t) ** 2 * ax + 2 * t * (1 - t) * bx + t * t * cx,
                    (1 - t) ** 2 * ay + 2 * t * (1 - t) * by + t * t * cy,
                )
            )
    return curve


def _middle(a: Point, b: Point) -> Point:
    return ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)


def _move(point: Point, by: Point) -> Point:
    return (point[0] + by[0], point[1] + by[1])


def _draw_arrow(pen: ImageDraw.ImageDraw, path: list[Point], target: _Box, colour: str) -> None:
    """Draw the line, and its head where it meets the target's box."""
    left, top, right, bottom = target.corners(grow=1.5 * SCALE)
    tip = next(i for i in range(len(path) - 2, -1, -1) if not (left < path[i][0] < right and top < path[i][1] < bottom))
    end = _meet(path[tip], path[tip + 1], (left, top, right, bottom))
    # Whole pixels: Pillow's joints wobble between them.
    pen.line(
        [(round(x), round(y)) for x, y in (*path[: tip + 1], end)], fill=colour, width=round(1.5 * SCALE), joint="curve"
    )
    near = next((p for p in reversed(path[: tip + 1]) if hypot(p[0] - end[0], p[1] - end[1]) > 6 * SCALE), path[0])
    angle = atan2(end[1] - near[1], end[0] - near[0])
    wings = [
        (end[0] + 8 * SCALE * cos(angle + turn), end[1] + 8 * SCALE * sin(angle + turn))
        for turn in (pi - pi / 7, pi + pi / 7)
    ]
    pen.polygon([end, *wings], fill=colour)


def _meet(outside: Point, inside: Point, box: tuple[float, float, float, float]) -> Point:
    """Return the point where the line from `outside` to `inside` enters the box, found by bisection."""
    left, top, right, bottom = box
    for _ in range(20):
        x, y = _middle(outside, inside)
        if left < x < right and top < y < bottom:
            inside = (x, y)
        else:
            outside = (x, y)
    return outside
