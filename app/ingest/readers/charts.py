"""Charts and diagrams of Office files: the figures and words that are kept with them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from lxml import etree

from app.ingest.readers.assembly import Assembly, squeeze
from app.ingest.readers.grids import add_table, check_cells
from app.ingest.readers.number_formats import show_value

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}chart"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_C = CHART.removesuffix("chart")
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_COLUMNS = (("val", ""), ("yVal", ""), ("bubbleSize", " (size)"))
_AXES = ("catAx", "dateAx", "valAx")


def add_chart(assembly: Assembly, chart: etree._Element) -> None:
    """Append the title of a chart and the figures that it is drawn from: a table for all series with the same
    categories, or places on the first axis."""
    assembly.add_paragraph(_read_text(chart.find(f"{_C}chart/{_C}title")))
    tables: dict[tuple[tuple[int, str], ...], list[tuple[str, Mapping[int, str]]]] = {}
    count = 0
    for series in chart.iter(f"{_C}ser"):
        keys = _read_points(series, "cat") or _read_points(series, "xVal")
        for kind, told in _COLUMNS:
            if values := _read_points(series, kind):
                count += len(values)
                check_cells(count)
                columns = tables.setdefault(tuple(keys.items()), [])
                columns.append((f"{_read_text(series.find(f'{_C}tx'))}{told}", values))
    axes = (_read_text(axis.find(f"{_C}title")) for kind in _AXES for axis in chart.iter(_C + kind))
    name = next(axes, "")
    for stated, columns in tables.items():
        keys = dict(stated)
        places = sorted({*keys, *(place for _, values in columns for place in values)})
        rows = [[keys.get(place, ""), *(values.get(place, "") for _, values in columns)] for place in places]
        add_table(assembly, [[name, *(title for title, _ in columns)], *rows], has_header=True)


def add_diagram(assembly: Assembly, data: etree._Element) -> None:
    """Append the texts of a SmartArt graphic."""
    points = data.iter(DIAGRAM.replace("relIds", "pt"))
    texts = [squeeze("".join(t.text or "" for t in point.iter(f"{_A}t"))) for point in points]
    assembly.add_block("\n".join(f"- {text}" for text in texts if text))


def _read_text(element: etree._Element | None) -> str:
    texts: Iterable[Any] = () if element is None else element.iter(f"{_A}t", f"{_C}v")
    return squeeze(" ".join(text.text or "" for text in texts))


def _read_points(series: etree._Element, kind: str) -> dict[int, str]:
    """Return what a chart shows of the values of a series, by their places. Of categories within others it is both."""
    found = series.find(_C + kind)
    points: dict[int, str] = {}
    if found is None:
        return points
    levels = [*found.iter(f"{_C}lvl")]
    code = next((each.text for each in found.iter(f"{_C}formatCode")), "") or ""
    for level in levels or [found]:
        stated = {_read_place(point): _spell(point, code) for point in level.iter(f"{_C}pt")}
        outer = ""
        for place in sorted({*points, *stated}):
            outer = stated.get(place, outer)
            points[place] = f"{outer} {points.get(place, '')}".strip()
    return points


def _read_place(point: etree._Element) -> int:
    place = point.get("idx", "0")
    return int(place) if place.isdecimal() and len(place) < 7 else 0


def _spell(point: etree._Element, code: str) -> str:
    text = point.findtext(f"{_C}v") or ""
    code = point.get("formatCode") or code
    try:
        number = float(text)
        if not code or not math.isfinite(number):
            return text
        # Imported where a chart needs it: takes a tenth of a second and 25 MB.
        from openpyxl.styles.numbers import is_date_format
        from openpyxl.utils.datetime import from_excel

        return show_value(from_excel(number) if is_date_format(code) else number, code)
    except (ValueError, OverflowError):
        return text
