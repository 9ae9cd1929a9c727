"""The order in which boxes that stand freely on a slide are read. Programs keep them in the order in which they were
drawn."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from statistics import fmean
from typing import Any

_MOST = 150
"""Boxes of a slide whose columns are looked for: a map or a drawing has more. Chosen."""
_SLACK = 0.01
"""Share of a slide's width by which boxes may overlap and edges differ that are meant to meet. Chosen."""
_LONGEST_CELL = 60
"""Characters of one paragraph that may be a cell of a grid or a heading. Chosen."""
_ALIKE = 0.75
"""Ratio of two lengths that are meant to be the same. Chosen."""
_WIDER = 1.5
"""How much wider than the gaps within columns the gap between them is that shows what belongs together. Chosen."""


@dataclass(frozen=True, eq=False)
class Box:
    """What stands in a rectangle: words, something else such as a table, or nothing but decoration."""

    thing: Any
    left: float
    top: float
    right: float
    bottom: float
    words: str = ""
    """Its paragraphs as lines."""
    is_other: bool = False
    number: int | None = None
    """Of the layout's placeholder that it fills: a content has the number after its heading's."""
    look: object = None
    """How its first letters look."""

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top

    def holds(self, other: "Box", slack: float) -> bool:
        """Return True if another box stands on this one."""
        return (
            self.width * self.height > other.width * other.height > 0
            and self.left - slack <= other.left <= other.right <= self.right + slack
            and self.top - slack <= other.top <= other.bottom <= self.bottom + slack
        )


def put_in_order(boxes: Sequence[Box]) -> list[Any]:
    """Return the things in the boxes as they are read. A box comes before those that stand on it, and each column with
    its heading before the next; rows of a grid that is a table stay rows."""
    slack = _SLACK * (max((box.right for box in boxes), default=0) - min((box.left for box in boxes), default=0))
    turns = [unicodedata.bidirectional(letter) for box in boxes for letter in box.words]
    if sum(turn in ("R", "AL") for turn in turns) > turns.count("L"):
        boxes = [replace(box, left=-box.right, right=-box.left) for box in boxes]
    if len(boxes) > _MOST:
        return [box.thing for box in _sort_rows(boxes, slack)]
    said = [box for box in boxes if box.words or box.is_other]
    cards = [box for box in boxes if not (box.words or box.is_other) and _is_card(box, said, slack)]
    inner = defaultdict[Box | None, list[Box]](list)
    for box in (*said, *cards):
        holders = [other for other in (*said, *cards) if other is not box and other.holds(box, slack)]
        inner[min(holders, key=lambda other: other.width * other.height, default=None)].append(box)
    ordered = [box.thing for box in _unfold(inner, None, slack)]
    return ordered + [box.thing for box in boxes if not any(box.thing is thing for thing in ordered)]


def find_top(boxes: Sequence[Box]) -> Any:
    """Return the thing that stands above all others, with nothing beside it that is not much smaller; None if there is
    none."""
    first = min(boxes, key=lambda box: box.top, default=None)
    if first is None:
        return None
    row = [first, *(box for box in boxes if box is not first and _stands_beside(box, first))]
    widest = max(row, key=lambda box: box.width)
    return widest.thing if 2 * (sum(box.width for box in row) - widest.width) <= widest.width else None


def _stands_beside(box: Box, other: Box) -> bool:
    shared = min(box.bottom, other.bottom) - max(box.top, other.top)
    is_apart = min(box.right, other.right) <= max(box.left, other.left)
    return is_apart and 2 * shared > min(box.height, other.height)


def _is_card(box: Box, said: Sequence[Box], slack: float) -> bool:
    """Return True for a frame around some of the boxes that stand below each other; around a row it is a bar."""
    held = [other for other in said if box.holds(other, slack)]
    return len(held) < len(said) and len(_cut(held, slack, is_down=True)) > 1


def _unfold(inner: dict[Box | None, list[Box]], holder: Box | None, slack: float) -> Iterator[Box]:
    for box in _arrange(inner[holder], slack):
        yield box
        yield from _unfold(inner, box, slack)


def _sort_rows(boxes: Sequence[Box], slack: float) -> list[Box]:
    """Return boxes from top to bottom and left to right: those beside each other are seldom aligned exactly."""
    return sorted(boxes, key=lambda box: (box.top // (2 * slack or 1), box.left))


def _arrange(boxes: list[Box], slack: float) -> list[Box]:
    bands, columns = (_cut(boxes, slack, is_down=is_down) for is_down in (True, False))
    if len(bands) == 1:
        parts = columns
    else:
        blocks = _join_bands(bands, slack)
        is_grid = len(blocks) == 1
        parts = [[*chain(*block)] for block in blocks]
        if is_grid:
            parts = columns if _stands_in_columns(bands, columns) else bands
    return [box for part in parts for box in _arrange(part, slack)] if len(parts) > 1 else _sort_rows(boxes, slack)


def _cut(boxes: Sequence[Box], slack: float, *, is_down: bool) -> list[list[Box]]:
    """Return the boxes in bands from top to bottom, or in columns from left to right, between which none stands."""
    parts: list[list[Box]] = []
    end = 0.0
    for box in sorted(boxes, key=lambda box: (box.top, box.bottom) if is_down else (box.left, box.right)):
        start, stop = (box.top, box.bottom) if is_down else (box.left, box.right)
        shrunk = min(slack, (stop - start) / 4)
        if not parts or start + shrunk >= end:
            parts.append([])
            end = stop - shrunk
        parts[-1].append(box)
        end = max(end, stop - shrunk)
    return parts


def _join_bands(bands: Sequence[list[Box]], slack: float) -> list[list[list[Box]]]:
    """Return blocks of bands that stand in the same columns. What is alone belongs to one if it is as wide."""
    blocks: list[list[list[Box]]] = []
    count = 0
    for band in bands:
        above = [*chain(*blocks[-1])] if blocks else []
        columns = _cut([*above, *band], slack, is_down=False)
        is_same = count > 1 and sum(any(box in column for box in above) for column in columns) == count
        own = len(_cut(band, slack, is_down=False))
        is_same &= len(columns) < count + own
        if len(band) == 1:
            is_same &= any(
                max(abs(box.left - band[0].left), abs(box.right - band[0].right)) <= 2 * slack for box in above
            )
        if is_same:
            blocks[-1].append(band)
        else:
            blocks.append([band])
        count = len(columns) if is_same else own
    return blocks


def _stands_in_columns(bands: Sequence[list[Box]], columns: Sequence[list[Box]]) -> bool:
    """Return True if what stands below each other belongs together: it differs as headings from contents do, while
    what stands beside each other is alike. In a table it is the other way round."""
    grid = [[next((box for box in band if box in column), None) for column in columns] for band in bands]
    if grid[0][0] is None:
        return False  # the empty corner above the names of rows
    has_cells = not any(map(_is_long, chain(*bands)))
    is_table = has_cells and len(bands) > 2
    across, down = (
        fmean(_compare(*pair, is_table=is_table) for line in lines for pair in pairwise(filter(None, line)))
        for lines in (grid, zip(*grid, strict=True))
    )
    if abs(across - down) > _SLACK or (has_cells and len(bands) >= len(columns)):
        return across - down > _SLACK
    edges = [(max(box.right for box in one), min(box.left for box in other)) for one, other in pairwise(columns)]
    between = min(start - end for end, start in edges)
    edges = [(max(box.bottom for box in one), min(box.top for box in other)) for one, other in pairwise(bands)]
    return between > _WIDER * max(0.0, *(start - end for end, start in edges))


def _compare(box: Box, other: Box, *, is_table: bool) -> float:
    """Return how much alike two boxes are, from 0 to 1. The header of a table may have another height and look."""
    is_next = box.number is not None and other.number == box.number + 1
    return fmean(
        (
            box.is_other == other.is_other,
            _is_long(box) == _is_long(other),
            _has_digits(box) == _has_digits(other),
            is_table or _are_near(box.height, other.height),
            is_table or box.look == other.look,
            _are_near(box.width, other.width),
            not is_next,
        )
    )


def _are_near(length: float, other: float) -> bool:
    return min(length, other) >= _ALIKE * max(length, other)


def _is_long(box: Box) -> bool:
    return box.is_other or "\n" in box.words or len(box.words) > _LONGEST_CELL


def _has_digits(box: Box) -> bool:
    return any(map(str.isdigit, box.words))
