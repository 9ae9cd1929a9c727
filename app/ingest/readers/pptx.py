"""PowerPoint presentations: each slide is a section."""

import io
from collections.abc import Iterator, Mapping
from typing import Any

from pptx import Presentation
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.oxml.ns import qn
from pptx.shapes.base import BaseShape
from pptx.slide import Slide
from pptx.table import Table

from app.ingest.readers.archives import parse_xml
from app.ingest.readers.assembly import (
    BREAK,
    Assembly,
    Looks,
    clean,
    describes,
    flatten,
    join_headers,
    mark,
    spell_number,
    squeeze,
    unlink,
)
from app.ingest.readers.boxes import Box, find_top, put_in_order
from app.ingest.readers.charts import DIAGRAM, add_chart, add_diagram
from app.ingest.readers.equations import EQUATION, read_equations
from app.ingest.readers.grids import add_table, check_cells, is_figure
from app.ingest.readers.office import open_office, skip_parts
from app.ingest.readers.symbols import PRIVATE, spell_symbols
from domain.documents import ParsedDocument

MAX_DEPTH = 20
"""Levels of grouped shapes that are read."""
_LONGEST_TITLE = 120
_TITLES = (PP_PLACEHOLDER.TITLE, PP_PLACEHOLDER.CENTER_TITLE, PP_PLACEHOLDER.VERTICAL_TITLE)
_LEFT_OUT = (PP_PLACEHOLDER.DATE, PP_PLACEHOLDER.FOOTER, PP_PLACEHOLDER.SLIDE_NUMBER, PP_PLACEHOLDER.HEADER)
_BULLETS = (qn("a:buChar"), qn("a:buAutoNum"), qn("a:buBlip"))
_WRAPPER = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_STRUCK = frozenset({"sngStrike", "dblStrike"})

Equations = Mapping[Any, str]
"""Equations as TeX, by their elements."""


def read_pptx(source: str, data: bytes) -> ParsedDocument:
    """Read a presentation: of each slide that is not hidden title, text, lists, tables, figures of charts, and
    the speaker's notes; at the end what footers say.

    Raises `OversizedDocument`, `UnreadableDocument`, and python-pptx's errors for missing or malformed parts.
    """
    archive, data = open_office(data, "PowerPoint file")
    presentation = Presentation(io.BytesIO(data))
    assembly = Assembly()
    places: dict[str, str] = {}
    slides = [slide._element for slide in presentation.slides]
    for slide in slides:
        _unwrap(slide)
    equations = read_equations(assembly, slides)
    for number, slide in enumerate(presentation.slides, start=1):
        places[slide.part.partname.lstrip("/")] = f"on slide {number}"
        _respell(slide._element)
        assembly.expect(_read_all(slide))
        _link(assembly, slide)
        if slide._element.get("show") in ("0", "false"):
            assembly.leave_out(_read_all(slide), f"on hidden slide {number}")
        else:
            _add_slide(assembly, slide, number, equations)
    shown = (slide for slide in presentation.slides if slide._element.get("show") not in ("0", "false"))
    placed = (shape for slide in shown for shape in slide.placeholders)
    footers = [_read_all(shape) for shape in placed if shape.placeholder_format.type == PP_PLACEHOLDER.FOOTER]
    assembly.add_edges({"footer": footers})
    skip_parts(assembly, archive, places, {"chart", "diagramData"})
    return assembly.finish(None, source)


def _add_slide(assembly: Assembly, slide: Slide, number: int, equations: Equations) -> None:
    shapes = list(_list_shapes(slide.shapes, MAX_DEPTH, assembly))
    titles = [shape for shape in shapes if shape.is_placeholder and shape.placeholder_format.type in _TITLES]
    title = next((shape for shape in titles if _read_text(shape, equations)), None) or _find_topmost(shapes, equations)
    assembly.add_heading(2, _read_text(title, equations) if title is not None else f"Slide {number}")
    for shape in shapes:
        if shape is not title:
            _add_shape(assembly, shape, equations)
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (notes := clean(frame.text).strip()):
        assembly.add_block(f"Notes: {notes}")


def _unwrap(slide: Any) -> None:
    """Put what new programs show, such as a box with an equation, in place of what wraps it up with a form for old
    ones."""
    for wrapper in [*slide.iter(_WRAPPER)]:
        for element in reversed(next(iter(wrapper), ())):
            wrapper.addnext(element)
        wrapper.getparent().remove(wrapper)


def _respell(slide: Any) -> None:
    """Write the signs that fonts of symbols show for the characters of their words."""
    for words in slide.iter(qn("a:t")):
        properties = words.getparent().find(qn("a:rPr"))
        for font in properties.iterchildren(qn("a:latin"), qn("a:sym")) if properties is not None else ():
            if font.tag == qn("a:latin") or PRIVATE.search(words.text or ""):
                words.text = spell_symbols(words.text or "", font.get("typeface", ""))


def _link(assembly: Assembly, slide: Slide) -> None:
    """Mark the words of each link to an address."""
    for link in slide._element.iter(qn("a:hlinkClick")):
        relation = slide.part.rels.get(link.get(qn("r:id"), ""))
        run = link.getparent().getparent()
        words = run.find(qn("a:t")) if run.tag in (qn("a:r"), qn("a:fld")) else None
        if words is not None and relation is not None and relation.is_external:
            words.text = assembly.link(words.text or "", relation.target_ref)


def _list_shapes(shapes: Any, depth: int, assembly: Assembly) -> Iterator[BaseShape]:
    """Yield the visible shapes as they are read, titles first, and those of groups in the group's place."""
    shown: list[BaseShape] = []
    for shape in shapes:
        if shape._element._nvXxPr.cNvPr.get("hidden") in ("1", "true"):
            assembly.leave_out(_read_all(shape), "in a hidden shape")
        elif shape.is_placeholder and shape.placeholder_format.type in _LEFT_OUT:
            assembly.pass_over(_read_all(shape))
        elif shape.is_placeholder and shape.placeholder_format.type in _TITLES:
            yield shape
        else:
            shown.append(shape)
    for shape in put_in_order([*map(_measure, shown)]):
        if shape._element.tag != qn("p:grpSp"):
            yield shape
        elif depth:
            yield from _list_shapes(shape.shapes, depth - 1, assembly)


def _measure(shape: BaseShape) -> Box:
    left, top, width, height = (length or 0 for length in (shape.left, shape.top, shape.width, shape.height))
    is_frame = shape._element.tag == qn("p:graphicFrame")
    paragraphs = () if is_frame else shape._element.iter(qn("a:p"))
    lines = (unlink("".join(t.text or "" for t in each.iter(qn("a:t")))) for each in paragraphs)
    words = "\n".join(line for line in lines if line.strip())
    is_other = is_frame or (not words and describes(shape._element._nvXxPr.cNvPr.get("descr", "")))
    number = shape.placeholder_format.idx if shape.is_placeholder else None
    look = next(((each.get("b"), each.get("sz")) for each in shape._element.iter(qn("a:rPr"))), (None, None))
    return Box(shape, left, top, left + width, top + height, words, is_other, number, look)


def _read_all(shape: Any) -> str:
    return unlink(" ".join(t.text or "" for t in shape._element.iter(qn("a:t"))))


def _find_topmost(shapes: list[BaseShape], equations: Equations) -> BaseShape | None:
    """Return the first shape with text if it reads like a title over others."""
    texts = [shape for shape in shapes if _read_text(shape, equations)]
    first: BaseShape | None = find_top([*map(_measure, texts)])
    is_title = first is not None and len(texts) > 1 and len(_read_text(first, equations)) <= _LONGEST_TITLE
    return first if is_title else None


def _read_text(shape: Any, equations: Equations) -> str:
    paragraphs = shape.text_frame.paragraphs if shape.has_text_frame else ()
    return squeeze(" ".join(_spell(paragraph._p, equations) for paragraph in paragraphs))


def _spell(paragraph: Any, equations: Equations) -> str:
    """Return the words of an `a:p` element, with what of their looks has a meaning."""
    runs: list[tuple[Looks, str]] = []
    for node in paragraph:
        if node.tag in (qn("a:r"), qn("a:fld")):
            runs.append((_look(node.find(qn("a:rPr"))), node.findtext(qn("a:t")) or ""))
        elif node.tag == qn("a:br"):
            runs.append((frozenset(), " "))
        else:
            runs += ((frozenset(), equations[each]) for each in node.iter(EQUATION))
    return squeeze(mark(runs))


def _look(properties: Any) -> Looks:
    if properties is None:
        return frozenset()
    height = properties.get("baseline", "0").rstrip("%")
    raised = {"sub"} if height.startswith("-") else {"sup"} if height.strip("0") else ()
    return frozenset({*raised, *(["s"] if properties.get("strike") in _STRUCK else [])})


def _add_shape(assembly: Assembly, shape: Any, equations: Equations) -> None:
    if shape.has_text_frame:
        _add_paragraphs(assembly, shape, equations)
    elif getattr(shape, "has_table", False):
        _add_table(assembly, shape.table, equations)
    elif getattr(shape, "has_chart", False):
        add_chart(assembly, shape.chart._chartSpace)
    elif (reference := next(shape._element.iter(DIAGRAM), None)) is not None:
        add_diagram(assembly, parse_xml(shape.part.related_part(reference.get(qn("r:dm"))).blob))
    if describes(words := shape._element._nvXxPr.cNvPr.get("descr", "")):
        assembly.add_paragraph(words)


def _add_paragraphs(assembly: Assembly, shape: Any, equations: Equations) -> None:
    lines: list[str] = []
    numbers: dict[int, tuple[int, str, int]] = {}
    """By level: where the numbers begin, of which kind they are, and the last one."""

    def flush() -> None:
        assembly.add_block("\n".join(lines))
        lines.clear()

    for paragraph in shape.text_frame.paragraphs:
        text = _spell(paragraph._p, equations)
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
        marker = "-"
        if bullet.tag == qn("a:buAutoNum"):
            stated, kind = bullet.get("startAt", "1"), bullet.get("type", "arabicPeriod")
            first = int(stated[:9]) if stated.isdecimal() else 1
            last = numbers.get(level, (0, "", 0))
            number = last[2] + 1 if last[:2] == (first, kind) else first
            numbers[level] = first, kind, number
            marker = f"{number}."
            if kind.startswith(("alpha", "roman")):
                shown = spell_number(number, is_roman=kind[0] == "r", is_upper="Uc" in kind)
                marker = f"- ({shown})"
        lines.append(f"{'  ' * level}{marker} {text}")
    flush()


def _find_bullet(shape: Any, paragraph: Any) -> Any:
    """Return the element of the paragraph's bullet or numbering, None if it has none. What the paragraph does not say,
    its shape does, then the layout's placeholder, the master's, and the master's style."""
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
                return child
            if child.tag == qn("a:buNone"):
                return None
    return None


def _add_table(assembly: Assembly, table: Table, equations: Equations) -> None:
    check_cells(len(table.rows) * len(table.columns))
    rows: list[list[str]] = []
    for row in table.rows:
        above = rows[-1] if rows else []
        rows.append([])
        for place, cell in enumerate(row.cells):
            glue = " " if table.first_row and not above else BREAK * 2
            spelled = flatten(glue.join(_spell(paragraph._p, equations) for paragraph in cell.text_frame.paragraphs))
            # What is merged over rows is said in each, and so is the name of a group of columns.
            is_named = cell._tc.hMerge and place and not above and table.first_row
            merged = rows[-1][place - 1] if is_named else ""
            rows[-1].append(above[place] if cell._tc.vMerge and above else merged if cell.is_spanned else spelled)
    if (
        table.first_row
        and len(rows) > 2
        and any(cell._tc.hMerge for cell in table.rows[0].cells)
        and len({*rows[0]}) > 1
        and not any(map(is_figure, rows[1]))
    ):
        rows[:2] = [join_headers(rows[:2])]
    add_table(assembly, [row for row in rows if any(row)], has_header=table.first_row)
