"""What Word computes when it shows or updates a document: fields without results, and controls that show other data."""

import re
from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from docx.document import Document
from docx.oxml import OxmlElement
from docx.oxml.ns import qn

from app.ingest.readers.archives import parse_xml
from app.ingest.readers.assembly import Assembly, spell_number, squeeze
from app.ingest.readers.word.words import FALLBACK

BLANK = "[…]"
"""Stands where something is still to be filled in."""
_MOST_OPEN, _MOST_BOUND = 20, 1000
"""Fields and bookmarks within one another, and controls that show data, against files that were made to take long."""
_REMEDY = "not computed: open it in Word, press Ctrl+A and F9, and save it"
_FIELD = re.compile(r'\s*([A-Za-z]+|=)\s*(?:"([^"]*)"|([^\s\\]*))')
_SHOWN = frozenset({
    "=", "AUTHOR", "AUTONUM", "AUTONUMLGL", "AUTONUMOUT", "CREATEDATE", "DATE", "DOCPROPERTY", "DOCVARIABLE",
    "FILENAME", "KEYWORDS", "LISTNUM", "NOTEREF", "NUMPAGES", "NUMWORDS", "PRINTDATE", "REF", "SAVEDATE", "SEQ",
    "STYLEREF", "SUBJECT", "TITLE", "USERNAME",
})  # fmt: skip
"""Fields that always show something in the text; a condition may well show nothing."""
_TAGS = [*map(qn, ("w:fldSimple", "w:fldChar", "w:instrText", "w:t", "w:bookmarkStart", "w:bookmarkEnd"))]
_PROPERTIES = {"AUTHOR": "author", "TITLE": "title", "SUBJECT": "subject", "KEYWORDS": "keywords"}
_PLACE = re.compile(r"(?:/(?:\w[\w.-]*:)?\w[\w.-]*(?:\[\d{1,6}\])?){1,50}")
_PREFIX = re.compile(r"xmlns:([\w.-]{1,100})=[\"']([^\"']{1,500})")
_CORE = "{6C3C8BC8-F283-45AE-878A-BAB7291924A1}"
"""Stands for the properties of the file."""
_LISTS = {"LEGALDEFAULT": "{}.", "OUTLINEDEFAULT": "{}.", "": "{})", "NUMBERDEFAULT": "{})"}
"""How the first level of Word's own lists looks."""


def fill_controls(document: Document) -> None:
    """Show in each control of text that is bound to a value of the file that value, as Word does on opening it."""
    stores: dict[str, Any] = {}
    for relation in (*document.part.rels.values(), *document.part.package.rels.values()):
        if relation.reltype.endswith("/customXml"):
            for each in relation.target_part.rels.values():
                name = parse_xml(each.target_part.blob).xpath("string(/*/@*[local-name() = 'itemID'])")
                stores[str(name).upper()] = parse_xml(relation.target_part.blob)
        elif relation.reltype.endswith("/core-properties"):
            stores[_CORE] = parse_xml(relation.target_part.blob)
    for binding in islice(document.element.body.iter(qn("w:dataBinding")), _MOST_BOUND):
        store = stores.get(binding.get(qn("w:storeItemID"), "").upper())
        place, prefixes = binding.get(qn("w:xpath"), ""), dict(_PREFIX.findall(binding.get(qn("w:prefixMappings"), "")))
        texts = [*binding.getparent().getparent().iter(qn("w:t"))]
        is_text = binding.getparent().find(qn("w:text")) is not None and texts and _PLACE.fullmatch(place)
        if (
            store is None
            or not is_text
            or not {each.partition(":")[0] for each in place.split("/") if ":" in each} <= prefixes.keys()
        ):
            continue
        if value := squeeze("".join("".join(each.itertext()) for each in store.xpath(place, namespaces=prefixes)[:1])):
            for text in texts:
                text.text = ""
            texts[0].text = value
            for prompt in binding.getparent().findall(qn("w:showingPlcHdr")):
                binding.getparent().remove(prompt)


def complete_fields(document: Document, assembly: Assembly, *, is_described: bool) -> None:
    """Write the results of fields that have none: numbers, properties, what a bookmark marks. Others get a sign, and
    are counted. What a file without properties of its own is said to have counts for nothing (`is_described`)."""
    body = document.element.body
    if next(body.iter(qn("w:fldSimple"), qn("w:fldChar")), None) is None:
        return
    properties = _read_properties(document) if is_described else {}
    for is_reference in (False, True):  # what a reference repeats has its numbers then
        nodes = [each for each in body.iter(*_TAGS) if next(each.iterancestors(FALLBACK), None) is None]
        _complete(nodes, _Results(_read_marked(nodes), properties, is_reference=is_reference), assembly)


def _complete(nodes: list[Any], results: "_Results", assembly: Assembly) -> None:
    opened: list[_Field] = []
    for node in nodes:
        kind = node.get(qn("w:fldCharType"))
        if node.tag == qn("w:fldSimple"):
            shown = squeeze("".join(text.text or "" for text in node.iter(qn("w:t"))))
            _write(results.find(node.get(qn("w:instr"), ""), shown), node, node.append, assembly)
        elif kind == "begin":
            opened.append(_Field())
        elif opened and node.tag == qn("w:instrText"):
            opened[-1].told += node.text or ""
        elif opened and kind == "separate":
            opened[-1].is_told = True
        elif opened and kind == "end":
            field = opened.pop()
            result = results.find(field.told, squeeze(field.shown))
            if all(each.is_told for each in opened[-_MOST_OPEN:]):
                _write(result, node, node.getparent().addprevious, assembly)
        elif node.tag == qn("w:t"):
            for field in opened[-_MOST_OPEN:]:
                field.shown += (node.text or "") * field.is_told


class _Field:
    def __init__(self) -> None:
        self.told = self.shown = ""
        self.is_told = False


def _write(result: str, field: Any, place: Any, assembly: Assembly) -> None:
    if result:
        run = OxmlElement("w:r")
        run.append(OxmlElement("w:t"))
        run[0].text = result
        place(run)
    assembly.skip("field", _REMEDY, int(result == BLANK))


class _Results:
    """Computes results in the order of the fields."""

    def __init__(self, marked: Mapping[str, str], properties: Mapping[str, str], *, is_reference: bool) -> None:
        self._marked, self._properties, self._is_reference = marked, properties, is_reference
        self._counts = Counter[str]()

    def find(self, told: str, shown: str) -> str:
        """Return what is to be shown instead of nothing; empty where the field shows something, or never does."""
        field = _FIELD.match(told)
        kind = field[1].upper() if field else ""
        if field is None or kind not in _SHOWN or (kind == "REF") != self._is_reference:
            return ""
        name = field[2] or field[3]
        if kind == "SEQ":
            number = self._count(f"SEQ {name}", told, shown)
            hidden = re.search(r"\\h\b", told) and not re.search(r"\\\*", told)
            result = "" if hidden else BLANK if re.search(r"\\s\b", told) else number
        elif kind in ("AUTONUM", "AUTONUMLGL"):
            result = self._count(kind, told, shown) + "." * (r"\e" not in told)
        elif kind == "LISTNUM" and re.search(r"\\l\s*1\b", told) and name.upper() in _LISTS:
            result = _LISTS[name.upper()].format(
                self._count(f"{kind} {name}", told, shown, is_roman="OUTLINE" in name.upper())
            )
        elif kind == "REF":
            result = BLANK if re.search(r"\\[nprtw]\b", told) else self._marked.get(name, BLANK)
        else:
            result = self._properties.get(
                name.lower() if kind == "DOCPROPERTY" else kind.lower(), "" if kind in _PROPERTIES else BLANK
            )
        return "" if shown else result

    def _count(self, name: str, told: str, shown: str, *, is_roman: bool = False) -> str:
        start = re.search(r"\\[rs]\s*(\d{1,6})\b", told)
        self._counts[name] = int(start[1]) if start else self._counts[name] + (r"\c" not in told)
        if shown.isdecimal():
            self._counts[name] = int(shown[:9])
        form = "ROMAN" if is_roman else next(iter(re.findall(r"\\\*\s*(roman|alphabetic)\b", told, re.IGNORECASE)), "")
        if not form:
            return str(self._counts[name])
        return spell_number(self._counts[name], is_roman=form.lower() == "roman", is_upper=form.isupper())


def _read_marked(nodes: list[Any]) -> dict[str, str]:
    """Return the words between the ends of each bookmark."""
    opened, found = dict[str, str](), dict[str, str]()
    for node in nodes:
        if node.tag == qn("w:bookmarkStart"):
            opened[node.get(qn("w:id"), "")] = node.get(qn("w:name"), "")
            found[node.get(qn("w:name"), "")] = ""
        elif node.tag == qn("w:bookmarkEnd"):
            opened.pop(node.get(qn("w:id"), ""), None)
        elif node.tag == qn("w:t"):
            for name in islice(opened.values(), _MOST_OPEN):
                found[name] += node.text or ""
    return {name: words for name, text in found.items() if (words := squeeze(text))}


def _read_properties(document: Document) -> dict[str, str]:
    """Return what the file says about itself, by names in small letters."""
    own = {name: str(getattr(document.core_properties, name)) for name in _PROPERTIES.values()}
    for relation in document.part.package.rels.values():
        if relation.reltype.endswith("/custom-properties"):
            for each in parse_xml(relation.target_part.blob):
                own[str(each.get("name", "")).lower()] = "".join(map(str, each.itertext()))
    return {name: words for name, value in own.items() if (words := squeeze(value))}
