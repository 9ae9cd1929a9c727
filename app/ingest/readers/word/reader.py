"""Word files."""

import io
import re
from collections.abc import Iterator
from itertools import dropwhile, islice
from typing import Any

from docx import Document
from docx.document import Document as WordDocument
from docx.oxml import parse_xml

from app.ingest.readers.archives import parse_xml as read_xml
from app.ingest.readers.assembly import BREAK, FIELD, Assembly, Looks, describes, flatten, name_title, squeeze
from app.ingest.readers.charts import CHART, DIAGRAM, add_chart, add_diagram
from app.ingest.readers.equations import read_equations
from app.ingest.readers.grids import check_cells, count_names, has_header
from app.ingest.readers.office import open_office, skip_parts
from app.ingest.readers.word.fields import BLANK, complete_fields, fill_controls
from app.ingest.readers.word.numbering import Number, Numbering
from app.ingest.readers.word.words import FALLBACK, WordReader, find_looks, has_shading, is_bold, is_on, qn, read_value
from domain.documents import ParsedDocument

_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)
_LIST_STYLE = re.compile(r"list (bullet|number)(?: ([2-5]))?", re.IGNORECASE)
_CONTENTS = re.compile(r"toc (?:\d|heading)", re.IGNORECASE)
_AGAIN = frozenset({FALLBACK, qn("w:moveFrom")})
_REFERENCES = {qn("w:footnote"): qn("w:footnoteReference"), qn("w:endnote"): qn("w:endnoteReference")}
_ABOUT = (qn("w:commentRangeStart"), qn("w:commentRangeEnd"))
_LONGEST_QUOTE, _MOST_OPEN = 100, 20
"""Characters that are quoted of what a comment is about, and comments at one place. Chosen."""
_LONGEST_HEADING = 100
"""Limit, in characters, of a bold paragraph that is a heading, in a document that has no style for headings in use."""
_BOLD_LEVEL = 2
_SAMPLE = 20
"""Rows from which it is told which name the columns. Chosen."""
_MOST_SPANNED = 100
"""Largest number of columns that a cell is taken to span."""


def read_docx(source: str, data: bytes) -> ParsedDocument:
    """Read a Word document: headings, paragraphs, lists and tables in their order, with the notes at their place,
    without table of contents and hidden text. Page headers and footers are read once, for what they alone say.

    Raises `OversizedDocument` before unpacking if the parts would be too large, `UnreadableDocument` if the archive is
    damaged, and python-docx's errors for missing or malformed parts.
    """
    archive, data = open_office(data, "Word file")
    document = Document(io.BytesIO(data))
    _join_paragraphs(document.element.body)
    fill_controls(document)
    reader = _Reader(document)
    reader.blank_prompts()
    # Where the file states none, python-docx makes some up.
    is_stated = any(each.reltype.endswith("/core-properties") for each in document.part.package.rels.values())
    complete_fields(document, reader.assembly, is_described=is_stated)
    for part in (document.element.body, *reader.notes.values()):
        reader.assembly.expect(_read_all(part))
    reader.read_edges("header")
    reader.read()
    reader.read_edges("footer")
    reader.assembly.skip("deletion", "tracked", sum(1 for _ in document.element.body.iter(qn("w:del"))))
    read = {"chart", "comments", "diagramData"}
    skip_parts(reader.assembly, archive, {document.part.partname.lstrip("/"): ""}, read)
    title = reader.shown_title or (document.core_properties.title if is_stated else "")
    if reader.add_comments() and not reader.has_headings:
        title = title or name_title(source)
    return reader.assembly.finish(title, source)


class _Reader:
    def __init__(self, document: WordDocument) -> None:
        self.assembly = Assembly()
        self.shown_title = ""
        """The first paragraph in the style Title. The property of that name is often a template's."""
        self._document = document
        self._styles = _Styles(document)
        self._numbering = Numbering(document)
        links = {key: r.target_ref for key, r in document.part.rels.items() if r.is_external}
        self.notes = _find_notes(document)
        equations = read_equations(self.assembly, [document.element.body, *self.notes.values()])
        self.words = WordReader(self.assembly, links, self._styles.looks, dict(self.notes), equations)
        self._is_in_box = False
        paragraphs = document.element.body.iter(qn("w:p"))
        self.has_headings = any(self._styles.find_level(each, self._styles.find(each)) for each in paragraphs)
        background = document.element.find(qn("w:background"))
        self._on_white = background is None or background.get(qn("w:color"), "FFFFFF").upper() in ("FFFFFF", "AUTO")

    def blank_prompts(self) -> None:
        """Show a sign in place of what says what is to be filled in."""
        for control in self._document.element.body.iter(qn("w:sdt")):
            if not is_on(control.find(f"{qn('w:sdtPr')}/{qn('w:showingPlcHdr')}")):
                continue
            texts = [text for text in control.iter(qn("w:t")) if (text.text or "").strip()]
            if texts and texts[0].text != BLANK:
                self.assembly.skip("form field", "not filled in")
                for text in texts:
                    text.text = ""
                texts[0].text = BLANK

    def read(self) -> None:
        self._add_blocks(self._document.element.body)
        self.assembly.close_items()

    def read_edges(self, kind: str) -> None:
        """Add what page headers or footers say and nothing else does."""
        body, part = self._document.element.body, self._document.part
        words = WordReader(self.assembly, {}, self._styles.looks, {}, {})
        texts: list[str] = []
        for reference in body.iter(qn(f"w:{kind}Reference")):
            is_even, is_first = (reference.get(qn("w:type")) == each for each in ("even", "first"))
            is_shown = not is_first or reference.getparent().find(qn("w:titlePg")) is not None
            is_shown &= not is_even or self._document.settings.odd_and_even_pages_header_footer
            relation = part.rels.get(reference.get(qn("r:id"), ""))
            for paragraph in relation.target_part.element.iter(qn("w:p")) if is_shown and relation else ():
                has_number = any("PAGE" in (each.text or "") for each in paragraph.iter(qn("w:instrText")))
                texts += [words.spell(paragraph) + FIELD * has_number] * (not _is_again(paragraph))
        self.assembly.add_edges({kind: texts}, " ".join(map(_read_all, body.iter(qn("w:p")))))

    def add_comments(self) -> bool:
        """Add what readers have noted, each after their name and what it is about, at the end: it is no part of that.
        Return True if there is any."""
        comments = [*self._document.comments]
        if not comments:
            return False
        about: dict[str, str] = {}
        opened: set[str] = set()
        for each in self._document.element.body.iter(*_ABOUT, qn("w:t")):
            name = each.get(qn("w:id"), "")
            if each.tag == _ABOUT[0] and len(opened) < _MOST_OPEN:
                opened.add(name)
            elif each.tag != qn("w:t"):
                opened.discard(name)
            else:
                about |= {name: (about.get(name, "") + (each.text or ""))[:_LONGEST_QUOTE] for name in opened}
        said: list[str] = []
        for comment in comments:
            quoted = squeeze(about.get(str(comment.comment_id), ""))
            head = f"Comment{f' by {comment.author}' * bool(comment.author)}{f' on “{quoted}”' * bool(quoted)}"
            words = squeeze(" ".join(map(self.words.spell, comment._comment_elm.iter(qn("w:p")))))
            said += [f"{head}: {words}"] * bool(words)
        if said:
            self.assembly.add_heading(1, "Comments")
        for each in said:
            self.assembly.add_paragraph(each)
        return bool(said)

    def _add_blocks(self, parent: Any) -> None:
        for element in _list_blocks(parent):
            if element.tag == qn("w:p"):
                self._add_paragraph(element)
            else:
                self._add_table(element)

    def _add_paragraph(self, paragraph: Any) -> None:
        style = self._styles.find(paragraph)
        name = self._styles.names.get(style, "")
        if _CONTENTS.match(name):
            self.assembly.pass_over(_read_all(paragraph))
            return
        number = self._count(paragraph, style)
        text = self.words.spell(paragraph, on_white=self._on_white and not self._is_in_box)
        level = 0 if self._is_in_box else self._styles.find_level(paragraph, style)
        if (
            not (level or self.has_headings or number or self._is_in_box)
            and len(text) <= _LONGEST_HEADING
            and is_bold(paragraph)
        ):
            level = _BOLD_LEVEL if text[-1:] not in (".", ",", ";", ":") and BREAK not in text else 0
        if not text:
            pass
        elif level:
            self.assembly.close_items()
            self.assembly.add_heading(level, f"{number.label} {text}" if number and number.label else text)
        elif number is not None and (number.step is not None or not number.label):
            self.assembly.add_item(text, number.level, number.step)
        elif number is not None and "." in number.label.rstrip("."):  # a numbered section, as in contracts
            self.assembly.close_items()
            self.assembly.add_paragraph(f"{number.label} {text}")
        elif number is not None:
            self.assembly.add_item(f"{number.label} {text}", number.level)
        else:
            self.assembly.close_items()
            if name.lower() == "title" and not self.shown_title:
                self.shown_title = squeeze(text)
            self.assembly.add_paragraph(text)
        for picture in _list_inner(paragraph, CHART, DIAGRAM, qn("wp:docPr")):
            self.assembly.close_items()
            self._add_picture(picture)
        is_in_box, self._is_in_box = self._is_in_box, True
        for box in _list_inner(paragraph, qn("w:txbxContent")):
            self.assembly.close_items()
            self._add_blocks(box)
        self._is_in_box = is_in_box

    def _add_picture(self, picture: Any) -> None:
        """Append the figures of a chart, the words of a diagram, or those that describe a picture."""
        if describes(words := picture.get("descr", "")):
            self.assembly.add_paragraph(words)
        is_chart = picture.tag == CHART
        part = self._document.part.rels.get(picture.get(qn("r:id" if is_chart else "r:dm"), ""))
        if part is not None and not part.is_external:
            (add_chart if is_chart else add_diagram)(self.assembly, read_xml(part.target_part.blob))

    def _count(self, paragraph: Any, style: str) -> Number | None:
        """Return the number or bullet of a paragraph. What it does not state itself, its styles do: the list, and apart
        from that the level, which the list may have for them."""
        if paragraph.find(f"{qn('w:pPr')}/{qn('w:rPr')}/{qn('w:del')}") is not None and not _read_all(paragraph):
            return None  # deleted
        own = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
        stated = [("", own), *self._styles.find_numbers(style)]
        lists = [(key, read_value(each, "w:numId")) for key, each in stated if each is not None]
        levels = [read_value(each, "w:ilvl") for _, each in stated if each is not None]
        holder, number_id = next(((key, found) for key, found in lists if found), ("", ""))
        if number_id == "0":
            return None
        if number_id:
            level = int(next((found for found in levels if found.isdecimal()), "0"))
            if holder and (own is None or not read_value(own, "w:ilvl")):
                linked = self._numbering.find_level(number_id, [key for key, _ in stated])
                level = level if linked is None else linked
            return self._numbering.count(number_id, level) or Number(0, "")
        if found := _LIST_STYLE.match(self._styles.names.get(style, "")):
            return Number(int(found[2] or 1) - 1, "")
        return None

    def _add_table(self, table: Any) -> None:
        self.assembly.close_items()
        rows: list[list[str]] = []
        headers = kept = 0
        has_styled_header = _has_styled_header(table)
        is_set_off = False
        width = cells = 0
        named = _find_names(table)
        for row in _list_rows(table):
            inner = [*_list_cells(row)]
            if len(inner) == 1 and next(inner[0].iter(qn("w:tbl")), None) is not None:  # a frame around tables
                self._finish_table(rows, headers, is_set_off=is_set_off, kept=kept)
                rows, headers, kept = [], 0, 0
                self._add_blocks(inner[0])
                continue
            is_header = row in named or row.find(f"{qn('w:trPr')}/{qn('w:tblHeader')}") is not None
            repeats = is_header or (len(rows) > 0 and (headers > 0 or is_set_off))
            spelled, is_whole = self._spell_row(row, rows[-1] if rows else [], width, repeats=repeats)
            cells += len(spelled)
            check_cells(cells)
            width = max(width, len(spelled))
            if is_whole:  # one cell over the whole width: a label or a text between parts of a table
                rows = self._finish_table(rows, headers, is_set_off=is_set_off, kept=kept)
                headers = kept = len(rows)
                for part in spelled[0].split(BREAK * 2):
                    self.assembly.add_paragraph(part)
            elif any(spelled):
                if len(rows) == kept > 0 and (is_header or _is_set_off(row) or len(spelled) != len(rows[0])):
                    rows, headers, kept = [], 0, 0  # it has a header of its own, or none
                headers += is_header and headers == len(rows)
                if not rows:
                    is_set_off = has_styled_header or _is_set_off(row)
                elif len(rows) == 1 and not has_styled_header and _is_set_off(row):
                    is_set_off = False  # all rows look like the first
                rows.append(spelled)
        self._finish_table(rows, headers, is_set_off=is_set_off, kept=kept)

    def _finish_table(self, rows: list[list[str]], headers: int, *, is_set_off: bool, kept: int = 0) -> list[list[str]]:
        """Append the rows, unless they are nothing but the header that was kept, and return their header."""
        spelled = [[squeeze(cell) for cell in row] for row in rows]
        if not headers and is_set_off and has_header(spelled):
            headers = 1
        headers = min(headers, len(rows) if kept else len(rows) - 1)
        spelled[headers:] = [[flatten(cell) for cell in row] for row in rows[headers:]]
        if len(rows) > kept:
            self.assembly.add_table(spelled, headers=headers)
        return rows[:headers]

    def _spell_row(self, row: Any, above: list[str], width: int, *, repeats: bool = False) -> tuple[list[str], bool]:
        """Return the row's cells, and True if there is one that spans the whole width of a wider table, or of a box.
        One that spans columns beside others `repeats` what it says in each."""
        stated = row.find(qn("w:trPr"))
        before = 0 if stated is None else _read_number(stated, "w:gridBefore")
        spelled = [""] * before
        cells = [*_list_cells(row)]
        for cell in cells:
            properties = cell.find(qn("w:tcPr"))
            span = 1 if properties is None else _read_span(properties)
            text = above[len(spelled)] if _goes_on(cell) and len(spelled) < len(above) else self._spell_cell(cell)
            spelled += [text, *[text if repeats and len(cells) > 1 else ""] * (span - 1)]
        return spelled, len(cells) == 1 and not before and len(spelled) >= width

    def _spell_cell(self, cell: Any) -> str:
        # White letters on the colour that a table's style has for its header are common, and cannot be told apart.
        texts: list[str] = []
        around = next(cell.iterancestors(qn("w:tbl")))
        for block in cell.iter(qn("w:p"), qn("w:tbl")):
            if _is_again(block) or next(block.iterancestors(qn("w:tbl"))) is not around:
                continue
            if block.tag == qn("w:tbl"):
                rows = (filter(None, self._spell_row(row, [], 0)[0]) for row in _list_rows(block))
                texts.append("; ".join(filter(None, map(", ".join, rows))).replace(BREAK, " "))
            else:
                number = self._count(block, self._styles.find(block))
                label = number.label if number else ""
                texts.append(f"{label} {self.words.spell(block, on_white=False)}".strip())
        self.assembly.skip("chart", "in cells", sum(not _is_again(each) for each in cell.iter(CHART)))
        return (BREAK * 2).join(filter(None, texts))


class _Styles:
    """Names, levels and lists of the document's styles, by id."""

    def __init__(self, document: WordDocument) -> None:
        self.names: dict[str, str] = {}
        self._parents: dict[str, str] = {}
        self._properties: dict[str, Any] = {}
        self._default = ""
        runs: dict[str, Any] = {}
        for style in document.styles.element.iterchildren(qn("w:style")):
            key = style.get(qn("w:styleId"), "")
            self.names[key] = read_value(style, "w:name")
            self._parents[key] = read_value(style, "w:basedOn")
            self._properties[key] = style.find(qn("w:pPr"))
            if style.get(qn("w:default")) == "1" and style.get(qn("w:type")) == "paragraph":
                self._default = key
            runs[key] = style.find(qn("w:rPr"))
        self.looks: dict[str, Looks] = {}
        for key in runs:
            looks: Looks = frozenset()
            for each in reversed([*self._follow(key)]):
                looks = looks if runs.get(each) is None else find_looks(runs[each], looks)
            self.looks[key] = looks

    def find(self, paragraph: Any) -> str:
        """Return the id of the paragraph's style."""
        properties = paragraph.find(qn("w:pPr"))
        return (read_value(properties, "w:pStyle") if properties is not None else "") or self._default

    def find_level(self, paragraph: Any, style: str) -> int:
        """Return the level of a heading, by its style, by a style that this is based on, or by its outline level; 0 for
        other paragraphs."""
        own = paragraph.find(f"{qn('w:pPr')}/{qn('w:outlineLvl')}")
        if own is not None and own.get(qn("w:val"), "").isdecimal():
            return (int(own.get(qn("w:val"))) + 1) % 10
        for key in self._follow(style):
            if found := _HEADING.match(self.names.get(key, "")):
                return int(found[1])
            properties = self._properties.get(key)
            level = read_value(properties, "w:outlineLvl") if properties is not None else ""
            if level.isdecimal():
                return (int(level) + 1) % 10
        return 0

    def find_numbers(self, style: str) -> Iterator[tuple[str, Any]]:
        """Yield the style and those that it is based on, each with its numbering."""
        for key in self._follow(style):
            properties = self._properties.get(key)
            yield key, None if properties is None else properties.find(qn("w:numPr"))

    def _follow(self, style: str) -> Iterator[str]:
        seen: set[str] = set()
        while style and style not in seen:
            seen.add(style)
            yield style
            style = self._parents.get(style, "")


def _read_all(element: Any) -> str:
    """Return the words of an element without what is there twice: for old readers, and where it was moved from."""
    return "".join(t.text or "" for t in element.iter(qn("w:t")) if not _is_again(t))


def _is_again(element: Any) -> bool:
    return not _AGAIN.isdisjoint(each.tag for each in element.iterancestors())


def _join_paragraphs(body: Any) -> None:
    """Move what is no paragraph of its own to the beginning of the next: a large first letter, and words whose end of
    paragraph is deleted."""
    for paragraph in reversed([*body.iter(qn("w:p"))]):
        properties, following = paragraph.find(qn("w:pPr")), paragraph.getnext()
        if properties is None or following is None or following.tag != qn("w:p"):
            continue
        frame = properties.find(qn("w:framePr"))
        is_initial = frame is not None and frame.get(qn("w:dropCap"), "none") != "none"
        if is_initial or (properties.find(f"{qn('w:rPr')}/{qn('w:del')}") is not None and _read_all(paragraph)):
            own = following.find(qn("w:pPr"))
            for each in reversed(paragraph[1:] if paragraph[0] is properties else paragraph):
                following.insert(0 if own is None else 1, each)
            paragraph.getparent().remove(paragraph)


def _list_inner(paragraph: Any, *tags: str) -> Iterator[Any]:
    """Yield such elements of a paragraph, without those in its text boxes."""
    for element in paragraph.iter(*tags):
        if next(element.iterancestors(qn("w:p"))) is paragraph and not _is_again(element):
            yield element


def _find_notes(document: WordDocument) -> dict[tuple[str, str], Any]:
    """Return footnotes and endnotes, which stand in their own parts, by the tag that refers to them and their ids."""
    notes: dict[tuple[str, str], Any] = {}
    for relation in document.part.rels.values():
        if relation.reltype.endswith(("/footnotes", "/endnotes")):
            for note in parse_xml(relation.target_part.blob):
                if note.tag in _REFERENCES and note.get(qn("w:type"), "normal") == "normal":
                    notes[_REFERENCES[note.tag], note.get(qn("w:id"), "")] = note
    return notes


def _list_blocks(body: Any) -> Iterator[Any]:
    """Yield paragraphs and tables in order, also those inside content controls, which python-docx leaves out."""
    for element in body:
        if element.tag in (qn("w:p"), qn("w:tbl")):
            yield element
        elif element.tag not in (qn("w:sectPr"), qn("w:del"), qn("w:moveFrom")) and isinstance(element.tag, str):
            yield from _list_blocks(element)


def _list_rows(table: Any) -> Iterator[Any]:
    for element in table:
        if element.tag == qn("w:tr"):
            yield element
        elif element.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:ins"), qn("w:customXml")):
            yield from _list_rows(element)


def _list_cells(row: Any) -> Iterator[Any]:
    for element in row:
        if element.tag == qn("w:tc"):
            yield element
        elif element.tag in (qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml")):
            yield from _list_cells(element)


def _find_names(table: Any) -> list[Any]:
    """Return the rows at the top that name groups of columns, and the columns, where nothing but merged cells shows
    it."""
    top = [*islice(dropwhile(lambda row: sum(1 for _ in _list_cells(row)) == 1, _list_rows(table)), _SAMPLE)]
    rows: list[list[str]] = []
    beside, below = list[set[int]](), list[set[int]]()
    for row in top:
        stated = row.find(qn("w:trPr"))
        texts = [""] * (0 if stated is None else _read_number(stated, "w:gridBefore"))
        beside.append(set())
        below.append(set())
        for cell in _list_cells(row):
            properties = cell.find(qn("w:tcPr"))
            span = 1 if properties is None else _read_span(properties)
            beside[-1].update(range(len(texts) + 1, len(texts) + span))
            below[-1].update(range(len(texts), len(texts) + span if _goes_on(cell) else 0))
            texts += ["" if _goes_on(cell) else squeeze(_read_all(cell)), *[""] * (span - 1)]
        rows.append(texts)
    return top[: count_names(rows, beside, below)]


def _goes_on(cell: Any) -> bool:
    """Return True for a cell that is merged with the one above."""
    merged = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
    return merged is not None and merged.get(qn("w:val")) != "restart"


def _read_span(properties: Any) -> int:
    return _read_number(properties, "w:gridSpan") or 1


def _read_number(properties: Any, name: str) -> int:
    """Return a number of columns, at most as many as a cell may span; 0 where none is stated."""
    number = read_value(properties, name)
    return min(int(number), _MOST_SPANNED) if number.isdecimal() else 0


def _is_set_off(row: Any) -> bool:
    """Return True if all cells with words are bold or coloured, as those of headers are."""
    cells = [cell for cell in _list_cells(row) if any((t.text or "").strip() for t in cell.iter(qn("w:t")))]
    return bool(cells) and all(
        is_bold(cell) or ((properties := cell.find(qn("w:tcPr"))) is not None and has_shading(properties))
        for cell in cells
    )


def _has_styled_header(table: Any) -> bool:
    """Return True if a style other than plain lines sets off the table's first row."""
    properties = table.find(qn("w:tblPr"))
    style = "" if properties is None else read_value(properties, "w:tblStyle")
    look = None if properties is None else properties.find(qn("w:tblLook"))
    return style not in ("", "TableGrid", "TableNormal") and look is not None and _has_first_row(look)


def _has_first_row(look: Any) -> bool:
    flag = look.get(qn("w:firstRow"))
    if flag is not None:
        return flag in ("1", "true", "on")
    bits = look.get(qn("w:val"), "0")
    return bool(int(bits, 16) & 0x20) if re.fullmatch(r"[0-9A-Fa-f]{1,8}", bits) else False
