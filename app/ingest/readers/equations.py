"""Equations of Office files and web pages, which pandoc writes as TeX."""

import io
import zipfile
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from lxml import etree
from selectolax.lexbor import LexborNode

from app.ingest.readers.assembly import Assembly, squeeze
from app.ingest.readers.pandoc import Node, Walk, parse
from domain.errors import DocumentError

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
EQUATION = f"{{{_M}}}oMath"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_PREFIXES = {"w": _W, "m": _M}
"""pandoc knows elements by these."""
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">'
    f'<Relationship Id="r" Type="{_KIND}" Target="word/document.xml"/></Relationships>',
}


def read_equations(assembly: Assembly, parts: Iterable[Any]) -> dict[Any, str]:
    """Return the equations of these elements as TeX between dollars, by their elements. Where pandoc cannot read them,
    they are their letters."""
    equations = [
        each for part in parts for each in part.iter(EQUATION) if next(each.iterancestors(_FALLBACK), None) is None
    ]
    if not equations:
        return {}
    spelled = _spell(equations)
    if len(spelled) != len(equations):
        assembly.skip("equation", "letters alone", len(equations))
        spelled = ["".join(t.text or "" for t in each.iter(f"{{{_M}}}t")) for each in equations]
    assembly.expect("".join(spelled))
    return dict(zip(equations, spelled, strict=True))


def read_mathml(assembly: Assembly, formulas: Sequence[LexborNode]) -> dict[int, str]:
    """Return formulas in MathML as TeX between dollars, by their `mem_id`; none where pandoc cannot read them."""
    page = "".join(f"<p>={formula.html}=</p>" for formula in formulas)
    try:
        blocks = parse(page.encode(), "html")["blocks"] if formulas else []
    except (DocumentError, RecursionError):
        blocks = []
    if len(blocks) != len(formulas):
        assembly.skip("equation", "letters alone", len(formulas))
        return {}
    return {formula.mem_id: _read_block(block) for formula, block in zip(formulas, blocks, strict=True)}


def _read_block(block: Node) -> str:
    return squeeze(Walk().spell(block["c"][1:-1]).replace("\\ ", " "))


def _spell(equations: Sequence[Any]) -> list[str]:
    document = etree.Element(f"{{{_W}}}document", nsmap=_PREFIXES)
    body = etree.SubElement(document, f"{{{_W}}}body")
    for equation in equations:
        paragraph = etree.SubElement(body, f"{{{_W}}}p")
        copied = deepcopy(equation)
        copied.tail = None
        # Words before and after it: pandoc would drop a paragraph without any.
        for part in ("=", copied, "="):
            if isinstance(part, str):
                run = etree.SubElement(paragraph, f"{{{_W}}}r")
                etree.SubElement(run, f"{{{_W}}}t").text = part
            else:
                paragraph.append(part)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, part in (_PARTS | {"word/document.xml": etree.tostring(document)}).items():
            archive.writestr(name, part)
    try:
        tree = parse(file.getvalue(), "docx")
    except (DocumentError, RecursionError):
        return []
    return [_read_block(block) for block in tree["blocks"]]
