"""Equations of Word, which pandoc writes as TeX."""

import io
import zipfile
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from lxml import etree

from app.ingest.readers.assembly import squeeze
from app.ingest.readers.pandoc import Walk, parse
from domain.errors import DocumentError

_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_M = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_PREFIXES = {"w": _W, "m": _M}
"""pandoc knows elements by these."""
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_KIND = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
_PARTS = {
    "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
    "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">'
    f'<Relationship Id="r" Type="{_KIND}" Target="word/document.xml"/></Relationships>',
}


def spell_equations(equations: Sequence[Any]) -> list[str]:
    """Return each `m:oMath` element as TeX between dollars, or, where pandoc cannot read them, none at all."""
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
    walk = Walk()
    spelled = [squeeze(walk.spell(block["c"][1:-1]).replace("\\ ", " ")) for block in tree["blocks"]]
    return spelled if len(spelled) == len(equations) else []
