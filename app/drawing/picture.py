"""Draws a diagram as an image."""

from io import BytesIO
from math import atan2, cos, hypot, pi, sin

from PIL import Image, ImageDraw

from app.drawing.diagram import Diagram, Point
from app.drawing.layout import (
    LABEL_FONT,
    STEP_FONT,
    Box,
    lies_in,
    load_font,
    meet,
    middle_of,
    place_labelled,
)

SCALE = 4
"""Pixels per unit of length while drawing. Pillow does not smooth lines, so the image is then halved: the two pixels
per unit that remain are sharp on screens of high density."""
_CURVE_STEPS = 12
"""Straight pieces that a rounded corner is drawn with."""
PAPER, INK, SOFT, LINE, ACCENT, FILL = "#ffffff", "#1c2126", "#4b545c", "#8a9299", "#0a5a68", "#e3eff0"


def draw_picture(diagram: Diagram) -> bytes:
    """Return a PNG image of the diagram."""
    plan = place_labelled(diagram, SCALE)
    boxes = [*plan.steps.values(), *plan.labels]
    paths = [_join(route) for route in plan.routes]
    margin = 24 * SCALE
    xs = [x for path in paths for x, _ in path] + [x for box in boxes for x in box.corners()[::2]]
    ys = [y for path in paths for _, y in path] + [y for box in boxes for y in box.corners()[1::2]]
    shift = (margin - min(xs), margin - min(ys))
    for box in boxes:
        box.xy = _move(box.xy, shift)

    image = Image.new("RGB", (round(max(xs) + shift[0]) + margin, round(max(ys) + shift[1]) + margin), PAPER)
    pen = ImageDraw.Draw(image)
    for path, edge in zip(paths, diagram.edges, strict=True):
        moved = [_move(point, shift) for point in path]
        back = moved[-1][1] < moved[0][1]
        _draw_arrow(pen, moved, plan.steps[edge.target], ACCENT if back else LINE)
    step_font, label_font = load_font(STEP_FONT * SCALE), load_font(LABEL_FONT * SCALE)
    for label in plan.labels:
        pen.rectangle(label.corners(), fill=PAPER)
        pen.text(label.xy, label.text, fill=SOFT, font=label_font, anchor="mm")
    for name, box in plan.steps.items():
        fill = PAPER if name.startswith("__") else FILL
        pen.rounded_rectangle(box.corners(), 9 * SCALE, fill=fill, outline=ACCENT, width=round(1.5 * SCALE))
        pen.text(box.xy, name, fill=INK, font=step_font, anchor="mm")
    out = BytesIO()
    image.reduce(2).save(out, "PNG")
    return out.getvalue()


def _join(route: list[list[Point]]) -> list[Point]:
    """Return the line through an edge's parts, from centre to centre. A label hides the corner between two parts."""
    return [point for part in route for point in _smooth(part)]


def _smooth(points: list[Point]) -> list[Point]:
    """Return the line with rounded corners: quadratic Bézier curves from midpoint to midpoint."""
    if len(points) < 3:
        return points
    curve = [points[0]]
    for index in range(1, len(points) - 1):
        start = middle_of(points[index - 1], points[index]) if index > 1 else points[0]
        end = middle_of(points[index], points[index + 1]) if index < len(points) - 2 else points[-1]
        (ax, ay), (bx, by), (cx, cy) = start, points[index], end
        for step in range(1, _CURVE_STEPS + 1):
            t = step / _CURVE_STEPS
            curve.append(
                (
                    (1 - t) ** 2 * ax + 2 * t * (1 - t) * bx + t * t * cx,
                    (1 - t) ** 2 * ay + 2 * t * (1 - t) * by + t * t * cy,
                )
            )
    return curve


def _move(point: Point, by: Point) -> Point:
    return (point[0] + by[0], point[1] + by[1])


def _draw_arrow(pen: ImageDraw.ImageDraw, path: list[Point], target: Box, colour: str) -> None:
    """Draw the line, and its head where it meets the target's box."""
    corners = target.corners(grow=1.5 * SCALE)
    tip = next(i for i in range(len(path) - 2, -1, -1) if not lies_in(path[i], corners))
    end = meet(path[tip], path[tip + 1], corners)
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
