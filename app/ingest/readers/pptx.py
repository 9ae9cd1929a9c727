"""PowerPoint presentations: each slide is a section."""

import io
from collections.abc import Iterator
from typing import Any

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.oxml.ns import qn
from pptx.shapes.base import BaseShape
from pptx.slide import Slide
from pptx.table import Table

from app.ingest.readers.archives import parse_xml
from app.ingest.readers.assembly import Assembly, clean, squeeze
from app.ingest.readers.grids import add_table, check_cells
from app.ingest.readers.office import open_office, skip_parts
from domain.documents import ParsedDocument

MAX_DEPTH = 20
"""Levels of grouped shapes that are read."""
_LONGEST_TITLE = 120
_TITLES = (PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE)
_LEFT_OUT = (PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER)
_BULLETS = (qn("a:buChar"), qn("a:buAutoNum"), qn("a:buBlip"))
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
_MAX_CHART_ROWS = 500


def read_pptx(source: str, data: bytes) -> ParsedDocument:
    """Read a presentation: of each slide that is not hidden title, text, lists, tables, figures of charts, and
    the speaker's notes.

    Raises `OversizedDocument`, `UnreadableDocument`, and python-pptx's errors for missing or malformed parts.
    """
    archive, data = open_office(data, "PowerPoint file")
    presentation = Presentation(io.BytesIO(data))
    assembly = Assembly()
    places: dict[str, str] = {}
    own: list[str] = []
    for number, slide in enumerate(presentation.slides, start=1):
        places[slide.part.partname.lstrip("/")] = f"on slide {number}"
        own.append(_read_all(slide))
        if slide._element.get("show") in ("0", "false"):
            assembly.leave_out(_read_all(slide), f"on hidden slide {number}")
        else:
            _add_slide(assembly, slide, number)
    assembly.expect("".join(own))
    skip_parts(assembly, archive, places, {"chart", "diagramData"})
    return assembly.finish(None, source)


def _add_slide(assembly: Assembly, slide: Slide, number: int) -> None:
    shapes = list(_list_shapes(slide.shapes, MAX_DEPTH, assembly))
    titles = [shape for shape in shapes if shape.is_placeholder and shape.placeholder_format.type in _TITLES]
    title = next((shape for shape in titles if _read_text(shape)), None) or _find_topmost(shapes)
    assembly.add_heading(2, _read_text(title) if title is not None else f"Slide {number}")
    for shape in shapes:
        if shape is not title:
            _add_shape(assembly, shape)
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (notes := clean(frame.text).strip()):
        assembly.add_block(f"Notes: {notes}")


def _list_shapes(shapes: Any, depth: int, assembly: Assembly) -> Iterator[BaseShape]:
    """Yield the visible shapes from top to bottom and left to right, those of groups in the group's place."""
    placed = sorted(enumerate(shapes), key=lambda pair: (_round(pair[1].top), pair[1].left or 0, pair[0]))
    for _, shape in placed:
        if shape._element._nvXxPr.cNvPr.get("hidden") in ("1", "true"):
            assembly.leave_out(_read_all(shape), "in a hidden shape")
            continue
        if shape.is_placeholder and shape.placeholder_format.type in _LEFT_OUT:
            assembly.pass_over(_read_all(shape))
            continue
        if shape._element.tag == qn("p:grpSp"):
            if depth:
                yield from _list_shapes(shape.shapes, depth - 1, assembly)
        else:
            yield shape


def _read_all(shape: Any) -> str:
    return " ".join(t.text or "" for t in shape._element.iter(qn("a:t")))


def _round(length: int | None) -> int:
    """Return a height in fifths of an inch: shapes beside each other are seldom aligned exactly."""
    return (length or 0) // 182_880


def _find_topmost(shapes: list[BaseShape]) -> BaseShape | None:
    """Return the first shape with text if it reads like a title over others."""
    texts = [shape for shape in shapes if _read_text(shape)]
    first = min(texts, key=lambda shape: shape.top or 0, default=None)
    return first if first is not None and len(texts) > 1 and len(_read_text(first)) <= _LONGEST_TITLE else None


def _read_text(shape: Any) -> str:
    return squeeze(shape.text_frame.text) if shape.has_text_frame else ""


def _add_shape(assembly: Assembly, shape: Any) -> None:
    if shape.has_text_frame:
        _add_paragraphs(assembly, shape)
    elif getattr(shape, "has_table", False):
        _add_table(assembly, shape.table)
    elif getattr(shape, "has_chart", False):
        _add_chart(assembly, shape.chart)
    elif shape._element.tag == qn("p:graphicFrame"):
        _add_diagram(assembly, shape)


def _add_paragraphs(assembly: Assembly, shape: Any) -> None:
    lines: list[str] = []
    numbers: dict[int, int] = {}

    def flush() -> None:
        assembly.add_block("\n".join(lines))
        lines.clear()

    for paragraph in shape.text_frame.paragraphs:
        text = squeeze(paragraph.text)
        if not text:
            continue
        bullet = _find_bullet(shape, paragraph)
        if bullet is None:
            flush()
            numbers.clear()
            assembly.add_block(text)
            continue
        level = paragraph.level
        numbers = {deeper: count for deeper, count in numbers.items() if deeper <= level}
        if bullet == qn("a:buAutoNum"):
            numbers[level] = numbers.get(level, 0) + 1
            lines.append(f"{'  ' * level}{numbers[level]}. {text}")
        else:
            lines.append(f"{'  ' * level}- {text}")
    flush()


def _find_bullet(shape: Any, paragraph: Any) -> str | None:
    """Return the tag of the paragraph's bullet or numbering, None if it has none. What the paragraph does not say, its
    shape does, then the layout's placeholder, the master's, and the master's style."""
    level = f"a:lvl{paragraph.level + 1}pPr"
    properties = [paragraph._p.pPr]
    placeholder = shape
    while placeholder is not None:
        properties.append(placeholder._element.find(f"{qn('p:txBody')}/{qn('a:lstStyle')}/{qn(level)}"))
        is_inheriting = placeholder.is_placeholder and hasattr(placeholder, "_base_placeholder")
        placeholder = placeholder._base_placeholder if is_inheriting else None
    if shape.is_placeholder and shape.placeholder_format.type not in _TITLES:
        master = shape.part.slide_layout.slide_master._element
        properties.append(master.find(f"{qn('p:txStyles')}/{qn('p:bodyStyle')}/{qn(level)}"))
    for found in properties:
        for child in found if found is not None else ():
            if child.tag in _BULLETS:
                return str(child.tag)
            if child.tag == qn("a:buNone"):
                return None
    return None


def _add_table(assembly: Assembly, table: Table) -> None:
    check_cells(len(table.rows) * len(table.columns))
    rows = [["" if cell.is_spanned else cell.text for cell in row.cells] for row in table.rows]
    add_table(assembly, [row for row in rows if any(row)], has_header=table.first_row)


def _add_chart(assembly: Assembly, chart: Any) -> None:
    """Append the figures from which a chart is drawn."""
    if chart.has_title and chart.chart_title.has_text_frame:
        assembly.add_block(squeeze(chart.chart_title.text_frame.text))
    plot = next(iter(chart.plots), None)
    if plot is None:
        return
    series = list(plot.series)
    categories = [str(category) for category in plot.categories][:_MAX_CHART_ROWS]
    values = [[*each.values][:_MAX_CHART_ROWS] for each in series]
    rows = [["", *[each.name or "" for each in series]]]
    for place, category in enumerate(categories):
        rows.append([category, *[_spell(column[place]) if place < len(column) else "" for column in values]])
    if len(rows) > 1:
        add_table(assembly, rows, has_header=True)


def _spell(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def _add_diagram(assembly: Assembly, shape: Any) -> None:
    """Append the texts of a SmartArt graphic."""
    reference = next(shape._element.iter(f"{_DIAGRAM}relIds"), None)
    if reference is None:
        return
    data = parse_xml(shape.part.related_part(reference.get(qn("r:dm"))).blob)
    texts = [squeeze("".join(t.text or "" for t in point.iter(qn("a:t")))) for point in data.iter(f"{_DIAGRAM}pt")]
    assembly.add_block("\n".join(f"- {text}" for text in texts if text))
