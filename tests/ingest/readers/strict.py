"""Office files in the strict form of the standard."""

import io
import zipfile
from typing import Any


def make_strict(document: Any) -> bytes:
    """Return the file of a document, workbook or presentation with the names of the strict form."""
    plain, strict = io.BytesIO(), io.BytesIO()
    document.save(plain)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(strict, "w") as target:
        for part in source.namelist():
            content = source.read(part)
            for kind in (b"officeDocument", b"wordprocessingml", b"spreadsheetml", b"presentationml", b"drawingml"):
                old = b"http://schemas.openxmlformats.org/%s/2006/" % kind
                content = content.replace(old, b"http://purl.oclc.org/ooxml/%s/" % kind)
            target.writestr(part, content)
    return strict.getvalue()
