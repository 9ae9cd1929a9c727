"""The order in which a page is read, where its content has another: programs write tables column by column, columns of
text line by line across, and last what stands first."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from app.ingest.readers.pdf.page import Run, enclose
from app.ingest.readers.pdf.tables import FIGURE, WIDE_GAP, cut_run

_FEWEST = 3
"""Lines that make a column. Chosen."""
_MOST = 0.8
"""Share of the lines of a column of figures that are figures and stand beside a label. Chosen."""
_NEAR = 1.5
"""Distance between lines, in heights of the type, from which another block begins. Chosen."""
_MOST_BLOCKS = 400
"""Blocks of a page that are put in order: of a map or a drawing there are more. Chosen."""
_WORDS, _FLOWING = 3.0, 0.5
"""Mean words of a line of running text, and the share of its lines that begin within a sentence. Chosen."""


def join_figures(runs: Sequence[Run]) -> list[Run]:
    """Return the runs, with figures that were written column by column behind what stands left of them."""
    ordered: list[Run] = []
    for part in _part(runs, lambda before, run: run.top < before.top - before.height / 2):
        fewest = max(_FEWEST, _MOST * len(part))
        if ordered and sum(all(FIGURE.fullmatch(piece.text) for piece in run.pieces) for run in part) >= fewest:
            hosts = [_find_host(run, ordered) for run in part]
            if sum(host is not None for host in hosts) >= fewest:
                for run, host in zip(part, hosts, strict=True):
                    place = next((i for i, other in enumerate(ordered) if other is host), len(ordered) - 1)
                    ordered.insert(place + 1, run)
                continue
        ordered += part
    return ordered


def put_in_order(rows: Sequence[Run]) -> list[Run]:
    """Return the rows of a page, with what stands above before what stands below it."""
    blocks = [_Block(part) for part in _part(list(_part_columns(rows)), _is_apart)]
    if len(blocks) > _MOST_BLOCKS:
        return [run for block in blocks for run in block.runs]
    below = [[i for i, other in enumerate(blocks) if block.is_above(other)] for block in blocks]
    above = Counter(i for places in below for i in places)
    waiting, ordered = list(range(len(blocks))), list[Run]()
    while waiting:
        free = next(i for i in waiting if not above[i])
        waiting.remove(free)
        above.subtract(below[free])
        ordered += blocks[free].runs
    return ordered


class _Block:
    """Lines that stand close below each other."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.left, self.top, self.right, self.bottom = enclose(runs)
        self._slack = runs[0].height / 4

    def is_above(self, other: "_Block") -> bool:
        """Return True if it stands above another, in the same column."""
        shared = min(self.right, other.right) - max(self.left, other.left)
        return self.top < other.top and shared > self._slack and self.bottom <= other.top + self._slack


def _part(runs: Sequence[Run], is_apart: Callable[[Run, Run], bool]) -> Iterator[list[Run]]:
    part: list[Run] = []
    for run in runs:
        if part and is_apart(part[-1], run):
            yield part
            part = []
        part.append(run)
    if part:
        yield part


def _is_apart(before: Run, run: Run) -> bool:
    gap = (run.top - before.bottom) / max(run.height, 1)
    return not -1 < gap < _NEAR or min(before.right, run.right) <= max(before.left, run.left)


def _find_host(run: Run, others: Sequence[Run]) -> Run | None:
    """Return what stands nearest to the left of a run, at its height."""
    middle, slack = (run.top + run.bottom) / 2, run.height / 3
    level = (other for other in others if abs((other.top + other.bottom) / 2 - middle) < slack)
    return max((other for other in level if other.right <= run.left + 1), key=lambda other: other.right, default=None)


def _part_columns(rows: Sequence[Run]) -> Iterator[Run]:
    """Yield the rows, and columns of running text that were written across one after the other."""
    band: list[Run] = []
    strip = (0.0, 0.0)
    for row in rows:
        gaps = [gap for gap in _find_strips(row) if gap[1] - gap[0] > WIDE_GAP * row.height]
        common = [(max(left, strip[0]), min(right, strip[1])) for left, right in gaps]
        common = [each for each in common if each[1] - each[0] > row.height] if band else gaps[:1]
        is_near = not band or -1 < (row.top - band[-1].bottom) / max(row.height, 1) < _NEAR
        is_beside = bool(band) and not gaps and (row.right <= strip[0] or row.left >= strip[1])
        if is_near and (common or is_beside):
            band.append(row)
            strip = common[0] if common else strip
            continue
        yield from _read_band(band, strip)
        band = [row] if gaps else []
        strip = gaps[0] if gaps else strip
        if not gaps:
            yield row
    yield from _read_band(band, strip)


def _find_strips(row: Run) -> list[tuple[float, float]]:
    return [] if row.sideways else [(before.right, after.left) for before, after in pairwise(row.pieces)]


def _read_band(band: Sequence[Run], strip: tuple[float, float]) -> list[Run]:
    """Return the columns on both sides of a strip if they are running text, else the rows."""
    parts = [cut_run(row, (strip[0] + strip[1]) / 2) for row in band]
    columns = [[run for part in parts if (run := part[side])] for side in (0, 1)]
    lines = [run for column in columns for run in column[1:]]
    is_prose = all(
        len(column) >= _FEWEST and fmean(len(run.text.split()) for run in column) >= _WORDS for column in columns
    )
    if is_prose and sum(run.text[0].isalpha() and not run.text[0].isupper() for run in lines) >= _FLOWING * len(lines):
        return [run for column in columns for run in _part_columns(column)]
    return list(band)
