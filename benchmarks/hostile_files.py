# ruff: noqa: E501 - a file is a line

"""Sends files that are built to stop the service, and shows for each what it cost, while the service goes on answering.

    python -m benchmarks.hostile_files http://127.0.0.1:8000 [NAME...]

Prints the table of docs/measurements/hostile.md, a line a file: what became of it, the seconds it took and those that
parser workers computed, the most memory of the server and of a worker, the slowest reply of /healthz meanwhile, and the
status of a question asked afterwards. The server must run on this machine, for its memory to be read.
"""

import asyncio
import io
import os
import re
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ODF = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
PATIENCE = 240
"""Seconds that a file is waited for."""
QUESTION = "How many days of holiday does an employee have?"


def pack(parts: dict[str, str | bytes], *, first: tuple[str, str] | None = None) -> bytes:
    """Return a ZIP archive; `first` is a part that is stored uncompressed, at the beginning."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        if first:
            archive.writestr(zipfile.ZipInfo(first[0]), first[1])
        for name, content in parts.items():
            archive.writestr(name, content)
    return file.getvalue()


def docx(body: str, part: str = "word/document.xml", /, **more: str | bytes) -> bytes:
    """Return a Word file with this body."""
    types = f'<Types xmlns="{TYPES}"><Override PartName="/{part}" ContentType="{WORD}"/></Types>'
    rels = (
        f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="{OFFICE}" Target="{part}"/></Relationships>'
    )
    document = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    named = {} if part == "word/document.xml" else {"word/document.xml": f"<w:document {W}/>"}
    return pack({"[Content_Types].xml": types, "_rels/.rels": rels, part: document, **named, **more})


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def merged_rows(count: int) -> str:
    cell = f"<w:tc><w:tcPr><w:vMerge/></w:tcPr>{paragraph('x')}</w:tc>"
    return f"<w:tbl>{f'<w:tr>{cell}</w:tr>' * count}</w:tbl>"


def nested_tables(depth: int) -> str:
    return "<w:tbl><w:tr><w:tc>" * depth + paragraph("x") + "</w:tc></w:tr></w:tbl>" * depth


def xlsx(rows: str, dimension: str = "A1:B2", **more: str | bytes) -> bytes:
    """Return a workbook with these rows."""
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f'<Types xmlns="{TYPES}"><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="{OFFICE}" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><dimension ref="{dimension}"/><sheetData>{rows}</sheetData></worksheet>',
    }
    return pack({**parts, **more})


def odt(body: str) -> bytes:
    content = f"<office:document-content {ODF}><office:body><office:text>{body}</office:text></office:body></office:document-content>"
    manifest = '<manifest xmlns="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    return pack(
        {"META-INF/manifest.xml": manifest, "content.xml": content},
        first=("mimetype", "application/vnd.oasis.opendocument.text"),
    )


def epub(chapter: str, times: int = 1) -> bytes:
    container = '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="p.opf"/></rootfiles></container>'
    items = "".join(f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(times))
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(times))
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
    )
    chapters: dict[str, str | bytes] = {f"c{n}.xhtml": chapter for n in range(times)}
    parts: dict[str, str | bytes] = {"META-INF/container.xml": container, "p.opf": package}
    return pack(parts | chapters, first=("mimetype", "application/epub+zip"))


def pdf(objects: dict[int, bytes]) -> bytes:
    """Return a PDF of these objects; 1 is the catalogue."""
    written = b"%PDF-1.7\n"
    starts = {}
    for number, content in objects.items():
        starts[number] = len(written)
        written += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    table += b"".join(b"%010d 00000 n \n" % starts[number] for number in sorted(starts))
    trailer = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(written))
    return written + table + trailer


def stream(content: bytes, more: bytes = b"") -> bytes:
    packed = zlib.compress(content, 9)
    return b"<< /Length %d /Filter /FlateDecode %s >>\nstream\n%s\nendstream" % (len(packed), more, packed)


def pdf_page(content: bytes, resources: bytes = b"", **forms: bytes) -> bytes:
    """Return a PDF with one page; `forms` are further objects, from number 6 on."""
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> %s >> >>"
        % resources,
        4: stream(content),
        5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    return pdf(objects | {6 + number: form for number, form in enumerate(forms.values())})


def nested_forms(depth: int, width: int) -> bytes:
    """Return a PDF whose page shows width to the power of depth words."""
    forms = {}
    for level in range(depth):
        inner = b"/Resources << /XObject << /X %d 0 R >> /Font << /F 5 0 R >> >>" % (7 + level)
        show = b"BT /F 9 Tf (word) Tj ET" if level == depth - 1 else b"/X Do " * width
        forms[f"f{level}"] = stream(show, b"/Type /XObject /Subtype /Form /BBox [0 0 600 800] " + inner)
    return pdf_page(b"/X Do " * width, b"/XObject << /X 6 0 R >>", **forms)


def mail(body: str, kind: str = "text/plain") -> bytes:
    return f"From: a@b.c\nDate: Mon, 1 Jan 2024 10:00:00 +0000\nSubject: x\nMIME-Version: 1.0\nContent-Type: {kind}\n\n{body}".encode()


def nested_mails(depth: int) -> bytes:
    return mail("Content-Type: message/rfc822\n\n" * depth + "\ntext", "message/rfc822")


def pptx(slide: str, relations: str = "") -> bytes:
    """Return a presentation with one slide."""
    names = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    kind = "application/vnd.openxmlformats-officedocument.presentationml"
    office = OFFICE.rpartition("/")[0]
    return pack(
        {
            "[Content_Types].xml": f'<Types xmlns="{TYPES}"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/ppt/presentation.xml" ContentType="{kind}.presentation.main+xml"/><Override PartName="/ppt/slides/slide1.xml" ContentType="{kind}.slide+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="{OFFICE}" Target="ppt/presentation.xml"/></Relationships>',
            "ppt/presentation.xml": f'<p:presentation {names}><p:sldIdLst><p:sldId id="256" r:id="rId1"/></p:sldIdLst></p:presentation>',
            "ppt/_rels/presentation.xml.rels": f'<Relationships xmlns="{RELATIONS}"><Relationship Id="rId1" Type="{office}/slide" Target="slides/slide1.xml"/></Relationships>',
            "ppt/slides/slide1.xml": f"<p:sld {names}><p:cSld><p:spTree><p:nvGrpSpPr/><p:grpSpPr/>{slide}</p:spTree></p:cSld></p:sld>",
            "ppt/slides/_rels/slide1.xml.rels": f'<Relationships xmlns="{RELATIONS}">{relations}</Relationships>',
        }
    )


def shape(text: str) -> str:
    return f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="s"/><p:cNvSpPr/><p:nvPr/></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>'


def strings(text: str) -> dict[str, str | bytes]:
    """Return the parts of a workbook's table of texts, which has one."""
    shared = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    types = f'<Types xmlns="{TYPES}"><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/><Override PartName="/xl/sharedStrings.xml" ContentType="{shared}"/></Types>'
    return {
        "[Content_Types].xml": types,
        "xl/sharedStrings.xml": f'<sst xmlns="{SHEET}"><si><t>{text}</t></si></sst>',
    }


def laughs(root: str) -> str:
    """Return a document type in which &j; stands for ten to the power of nine words, and &file; for a file of ours."""
    entities = "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    return f'<!DOCTYPE {root} [<!ENTITY a "ha ">{entities}<!ENTITY file SYSTEM "file:///etc/passwd">]>'


def many_pages(count: int) -> bytes:
    kids = b" ".join(b"%d 0 R" % (5 + n) for n in range(count))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, count),
        3: stream(b"BT /F 9 Tf 10 10 Td (A page with a few words.) Tj ET"),
        4: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    page = (
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 3 0 R /Resources << /Font << /F 4 0 R >> >> >>"
    )
    return pdf(objects | {5 + n: page for n in range(count)})


def deep_page_tree(depth: int) -> bytes:
    objects = {1: b"<< /Type /Catalog /Pages 2 0 R >>"}
    for number in range(2, depth + 2):
        objects[number] = b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (number + 1)
    return pdf(objects | {depth + 2: b"<< /Type /Page /MediaBox [0 0 9 9] >>"})


def repeated_filters(count: int) -> bytes:
    """Return a PDF whose page is packed many times over."""
    content = b"BT /F 9 Tf 10 10 Td " + b"(a) Tj " * 1_000_000 + b"ET"
    for _ in range(count):
        content = zlib.compress(content, 9)
    whole = b"<< /Length %d /Filter [%s] >>\nstream\n%s\nendstream" % (len(content), b"/FlateDecode " * count, content)
    return pdf(
        {
            1: b"<< /Type /Catalog /Pages 2 0 R >>",
            2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font << /F 5 0 R >> >> >>",
            4: whole,
            5: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        }
    )


def reach_out(path: str, address: str) -> dict[str, bytes]:
    """Return files that name another file of the machine and an address, for a reader that would open them."""
    entity = f'<!DOCTYPE x [<!ENTITY f SYSTEM "file://{path}"><!ENTITY u SYSTEM "{address}/entity">]>'
    subset = f'<!DOCTYPE x SYSTEM "{address}/dtd" [<!ENTITY % p SYSTEM "file://{path}"> %p;]>'
    picture = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
    linked = f'<Relationship Id="rId9" Type="{picture}" Target="{address}/picture" TargetMode="External"/><Relationship Id="rId8" Type="{picture}" Target="file://{path}" TargetMode="External"/>'
    drawing = '<a:blip xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" r:link="rId9" r:embed="rId8"/>'
    directives = (
        f".. include:: {path}",
        f".. raw:: html\n   :file: {path}",
        f".. raw:: html\n   :url: {address}/raw",
        f".. csv-table:: t\n   :file: {path}",
        f".. csv-table:: t\n   :url: {address}/table",
        f".. literalinclude:: {path}",
        f".. figure:: {address}/figure",
        f".. image:: file://{path}",
        f".. code-include:: {path}",
        ".. role:: raw-html(raw)\n   :format: html",
        f".. list-table:: t\n   :file: {path}",
        f".. math::\n   :file: {path}",
        f".. plantuml:: {path}",
    )
    page = (
        f"<html><head><base href='{address}/'><link rel=stylesheet href='{address}/style'>"
        f"<meta http-equiv=refresh content='0;url={address}/next'></head><body><p>text</p><img src='{address}/picture'>"
        f"<iframe src='file://{path}'></iframe><object data='file://{path}'></object><script src='{address}/script'></script>"
        f"<svg><use href='{address}/use'/><image href='file://{path}'/></svg></body></html>"
    )
    rooted = path.removeprefix("/")
    sheet = xlsx('<row r="1"><c r="A1" t="inlineStr"><is><t>text &f; &u;</t></is></c></row>')
    return {
        "outside.rst": "\n\n".join(("text", *directives)).encode(),
        "outside.html": page.encode(),
        "outside.md": f"---\ntitle: !!python/object/apply:os.popen ['cat {path}']\n---\n\n![a]({address}/picture)\n\n{{% include {path} %}}\n\ntext\n".encode(),
        "outside.docx": docx(
            paragraph("text") + f"<w:p><w:r>{drawing}</w:r></w:p>",
            **{
                "word/_rels/document.xml.rels": f'<Relationships xmlns="{RELATIONS}">{linked}<Relationship Id="rId7" Type="{OFFICE.rpartition("/")[0]}/attachedTemplate" Target="{address}/template" TargetMode="External"/></Relationships>'
            },
        ),
        "entity.docx": _retyped(docx(paragraph("text &f; &u;")), "word/document.xml", entity),
        "outside.pptx": pptx(
            shape("text")
            + f"<p:pic><p:nvPicPr><p:cNvPr id='3' name='p'/><p:cNvPicPr/><p:nvPr/></p:nvPicPr><p:blipFill>{drawing}</p:blipFill><p:spPr/></p:pic>",
            linked,
        ),
        "entity.pptx": _retyped(pptx(shape("text &f; &u;")), "ppt/slides/slide1.xml", entity),
        "entity.xlsx": _retyped(
            sheet,
            "xl/worksheets/sheet1.xml",
            entity,
        ),
        "entity.odt": _retyped(odt("<text:p>text &f; &u;</text:p>"), "content.xml", entity),
        "outside.epub": _rewritten(
            epub("<html><body><p>text</p></body></html>"),
            "p.opf",
            lambda package: (
                package.replace('href="c0.xhtml"', f'href="../../../../{rooted}"')
                .replace(
                    "<manifest>",
                    f'<manifest><item id="u" href="{address}/chapter" media-type="application/xhtml+xml"/>',
                )
                .replace("<spine>", '<spine><itemref idref="u"/>')
            ),
        ),
        "entity.epub": _retyped(epub("<html><body><p>text &f; &u;</p></body></html>"), "c0.xhtml", entity),
        "subset.docx": _retyped(docx(paragraph("text &f; &u;")), "word/document.xml", subset),
        "subset.xlsx": _retyped(sheet, "xl/worksheets/sheet1.xml", subset),
        "subset.odt": _retyped(odt("<text:p>text &f; &u;</text:p>"), "content.xml", subset),
        "outside.rtf": (
            r"{\rtf1 text {\field{\*\fldinst INCLUDETEXT "
            + f'"{path}"'
            + r"}{\fldrslt x}}{\field{\*\fldinst INCLUDEPICTURE "
            + f'"{address}/picture"'
            + r"}{\fldrslt y}}{\*\template "
            + f"{address}/template"
            + "}}"
        ).encode(),
        "outside.eml": mail(
            f'--b\nContent-Type: message/external-body; access-type=local-file; name="{path}"\n\n\n--b\nContent-Type: text/html\n\n{page}\n--b--',
            "multipart/mixed; boundary=b",
        ),
        "outside.csv": f'a,b\n"=WEBSERVICE(""{address}/cell"")",1\n"=cmd|\' /C calc\'!A0",2\n'.encode(),
        "outside.pdf": pdf_page(b"BT /F 9 Tf 10 10 Td (text) Tj ET").replace(
            b"/Type /Catalog",
            f"/Type /Catalog /OpenAction << /S /URI /URI ({address}/open) >> /AA << /O << /S /Launch /F ({path}) >> >>".encode(),
        ),
    }


def _rewritten(data: bytes, part: str, change: Callable[[str], str]) -> bytes:
    """Return the archive with one part changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts[part] = change(parts[part].decode()).encode()
    first = parts.pop("mimetype", None)
    return pack(dict(parts), first=("mimetype", first.decode()) if first else None)


def _retyped(data: bytes, part: str, kind: str) -> bytes:
    """Return the archive with a document type in front of a part."""
    return _rewritten(data, part, lambda xml: kind + xml)


def nested_parts(depth: int) -> bytes:
    body = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(depth))
    return mail(body, "multipart/mixed; boundary=b0")


def _reaching(name: str) -> bytes:
    return reach_out("/etc/passwd", "http://127.0.0.1:9")[name]


FILES: dict[str, Callable[[], bytes]] = {
    "spaces-in-front-matter.md": lambda: b"---\ntitle: a" + b" " * 34_000 + b"b\n---",
    "aliases-in-front-matter.md": lambda: b"---\na: &a [x]\n" + b"".join(b"b%d: &b%d [*a,*a,*a,*a]\n" % (n, n) for n in range(9)) + b"---\ntext",
    "deep-front-matter.md": lambda: b"---\na: " + b"[" * 30_000 + b"\n---\ntext",
    "brackets.md": lambda: b"[" * 50_000,
    "images.md": lambda: b"![" * 50_000,
    "brackets-and-parentheses.md": lambda: b"[a](" * 50_000,
    "emphasis.md": lambda: b"*a_ " * 50_000,
    "backticks.md": lambda: b"".join(b"`" * n + b" " for n in range(700)),
    "quotes.md": lambda: b">" * 50_000 + b"a",
    "lists.md": lambda: b"\n".join(b" " * (2 * n) + b"- a" for n in range(1_000)),
    "divs.md": lambda: b"<div>\n\n" * 30_000,
    "entities.md": lambda: b"&amp" * 100_000,
    "link-definitions.md": lambda: b"".join(b"[a%d]: b\n" % n for n in range(50_000)),
    "table.md": lambda: b"|a" * 5_000 + b"\n" + b"|-" * 5_000 + b"\n" + (b"|b" * 5_000 + b"\n") * 50,
    "blanks.md": lambda: b"a" + b" " * 5_000_000 + b"b",
    "tabs-in-lines.md": lambda: (b"\t" * 5_000 + b"x\n") * 200,
    "headings.md": lambda: b"# a\n" * 1_000_000,
    "braces.md": lambda: b"{: .a " * 60_000,
    "nested-b.html": lambda: b"<html>" + b"".join(b"<b id=%d><p>" % n for n in range(3_000)),
    "nested-b-twice.html": lambda: b"<html>" + b"".join(b"<b id=%d><p>" % n for n in range(6_000)),
    "nested-main.html": lambda: b"<html>" + b"<main>" * 20_000 + b"text",
    "nested-tables.html": lambda: b"<html>" + b"<table><tr><td>" * 2_000 + b"text",
    "attributes.html": lambda: b"<html><p " + b"".join(b"a%d=b " % n for n in range(300_000)) + b">text",
    "lists.html": lambda: b"<html>" + b"<ul><li>a" * 5_000,
    "colspan.html": lambda: b"<html><table>" + b"<tr><td colspan=1000 rowspan=65534>a" * 500 + b"</table>",
    "comments.html": lambda: b"<html>" + b"<!--" * 200_000,
    "formatting.html": lambda: b"<html>" + b"<a><i><u><font>" * 3_000 + b"text",
    "selects.html": lambda: b"<html>" + b"<select><option>a" * 100_000,
    "merged-rows.docx": lambda: docx(merged_rows(900)),
    "merged-rows-many.docx": lambda: docx(merged_rows(20_000)),
    "wide-cell.docx": lambda: docx(f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="50000000"/></w:tcPr>{paragraph("x")}</w:tc></w:tr></w:tbl>'),
    "body-in-a-binary-part.docx": lambda: docx(paragraph("word ") * 1_500_000, "word/d.bin"),
    "empty-paragraphs.docx": lambda: docx("<w:p/>" * 666_000),
    "nested-tables.docx": lambda: docx(nested_tables(80)),
    "deep-list.docx": lambda: docx(paragraph("x", '<w:pPr><w:numPr><w:ilvl w:val="999999999"/><w:numId w:val="1"/></w:numPr></w:pPr>') * 100),
    "zip-bomb.docx": lambda: docx(paragraph("a"), **{"word/media/a.bin": b"\0" * 600_000_000}),
    "many-parts.docx": lambda: docx(paragraph("a"), **{f"word/{n}.xml": "<a/>" for n in range(30_000)}),
    "entities.docx": lambda: pack({"word/document.xml": '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>' + f"<w:document {W}>&b;</w:document>"}),
    "nested-forms.pdf": lambda: nested_forms(8, 10),
    "nested-forms-endless.pdf": lambda: nested_forms(20, 10),
    "inflating-content.pdf": lambda: pdf_page(b"BT /F 9 Tf 10 10 Td " + b"(a) Tj " * 3_000_000 + b"ET"),
    "paths.pdf": lambda: pdf_page(b"0 0 m 9 9 l S " * 1_500_000),
    "many-pages.pdf": lambda: pdf({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [" + b"3 0 R " * 100_000 + b"] /Count 100000 >>", 3: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"}),
    "page-tree-in-a-circle.pdf": lambda: pdf({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [2 0 R] /Count 9 >>"}),
    "huge-page.pdf": lambda: pdf_page(b"BT /F 9 Tf (a) Tj ET").replace(b"600 800", b"1e9 1e9"),
    "far-cell.xlsx": lambda: xlsx('<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>a</t></is></c></row>', "A1:XFD1048576"),
    "wide-rows.xlsx": lambda: xlsx("".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 2_000)), "A1:XFD2000"),
    "merged.xlsx": lambda: xlsx('<row r="1"><c r="A1"><v>1</v></c></row></sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells><sheetData>'),
    "zip-bomb.xlsx": lambda: xlsx('<row r="1"><c r="A1"><v>1</v></c></row>' + " " * 80_000_000),
    "repeated-cells.odt": lambda: odt('<table:table><table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="16384"><text:p>a</text:p></table:table-cell></table:table-row></table:table>'),
    "spaces.odt": lambda: odt('<text:p>a<text:s text:c="2000000000"/>b</text:p>'),
    "nested-lists.odt": lambda: odt("<text:list><text:list-item>" * 100 + "<text:p>a</text:p>" + "</text:list-item></text:list>" * 100),
    "zip-bomb.epub": lambda: epub("<html><body><p>" + "a " * 30_000_000),
    "nested.epub": lambda: epub("<html><body>" + "<b id='a'><p>" * 5_000),
    "zip-bomb.pptx": lambda: pack({"ppt/presentation.xml": "<p>" + " " * 100_000_000 + "</p>"}),
    "multiparts.eml": lambda: nested_parts(1_000),
    "multiparts-many.eml": lambda: nested_parts(20_000),
    "header.eml": lambda: b"From: a@b.c\nDate: x\nSubject: " + b"=?utf-8?q?a?= " * 100_000 + b"\n\ntext",
    "addresses.eml": lambda: b"From: " + b"(" * 100_000 + b"\nDate: x\n\ntext",
    "groups.rtf": lambda: b"{\\rtf1 " + b"{" * 500_000 + b"a" + b"}" * 500_000 + b"}",
    "words.rtf": lambda: b"{\\rtf1 " + b"\\b" * 1_000_000 + b" a}",
    "binary.rtf": lambda: b"{\\rtf1 \\bin2000000000 a}",
    "one-line.csv": lambda: b"a," * 20_000_000,
    "one-quote.csv": lambda: b'"' + b"a,b\n" * 5_000_000,
    "lines.csv": lambda: b"a,b\n" * 3_000_000,
    "nested.rst": lambda: b"\n\n".join(b" " * n + b"* a" for n in range(600)),
    "quotes.rst": lambda: b"\n\n".join(b" " * n + b"a" for n in range(2_000)),
    "stars.rst": lambda: b"*a " * 100_000,
    "backticks.rst": lambda: b":a:`" * 50_000,
    "substitutions.rst": lambda: b".. |a| replace:: |b| |b|\n.. |b| replace:: |a| |a|\n\n|a|\n",
    "table.rst": lambda: b"+" + b"-+" * 2_000 + b"\n|" + b" |" * 2_000 + b"\n+" + b"-+" * 2_000,
    "unknown-encoding.txt": lambda: bytes(range(128, 256)) * 40_000,
    "mojibake.txt": lambda: "Ã¢â‚¬â„¢".encode() * 200_000,
    "zeros.txt": lambda: b"\0" * 20_000_000,
    "one-word.txt": lambda: b"a" * 9_900_000,
    "zero-width.txt": lambda: ("a\u200b\u2060\ufeff" * 2_000_000).encode(),
    "line-separators.txt": lambda: ("a\u2028" * 3_000_000).encode(),
    "long-addresses.md": lambda: b"[a]: /" + b"x" * 100_000 + b"\n\n" + b"[a] " * 100_000,
    "long-address-in-html.html": lambda: b"<html><base href='http://e.example/" + b"x" * 100_000 + b"/'>" + b"<a href=y>z</a> " * 50_000,
    "long-addresses.rst": lambda: b".. _a: http://e.example/" + b"x" * 100_000 + b"\n\n" + b"a_ " * 50_000,
    "html-comments.md": lambda: b"<!-- " * 100_000,
    "autolinks.md": lambda: b"<http:a" * 100_000,
    "escapes.md": lambda: b"\\[" * 500_000,
    "strikes.md": lambda: b"~~a" * 100_000,
    "footnotes.md": lambda: b"".join(b"[^%d]: [^%d]\n\n" % (n, n + 1) for n in range(30_000)),
    "details.html": lambda: b"<html>" + b"<details><summary>a" * 5_000,
    "templates.html": lambda: b"<html>" + b"<template><svg><math>" * 20_000 + b"text",
    "definitions.html": lambda: b"<html><dl>" + b"<dt>a<dd><dl>" * 5_000,
    "columns.html": lambda: b"<html><table>" + (b"<tr>" + b"<td>a" * 5_000) * 40,
    "columns.csv": lambda: (b",".join(b"c%d" % n for n in range(16_384)) + b"\n") * 10,
    "one-cell.csv": lambda: b"a" * 49_000_000,
    "columns.xlsx": lambda: xlsx("".join(f'<row r="{n}">' + "<c><v>1</v></c>" * 16_384 + "</row>" for n in range(1, 12))),
    "shared-text.xlsx": lambda: xlsx("".join(f'<row r="{n}">' + '<c t="s"><v>0</v></c>' * 500 + "</row>" for n in range(1, 201)), **strings("word " * 200_000)),  # type: ignore[arg-type]
    "entities.xlsx": lambda: _retyped(xlsx('<row r="1"><c r="A1" t="inlineStr"><is><t>&j;&file;</t></is></c></row>'), "xl/worksheets/sheet1.xml", laughs("worksheet")),
    "entities.odt": lambda: _retyped(odt("<text:p>a &j; &file;</text:p>"), "content.xml", laughs("x")),
    "nested-tables.odt": lambda: odt("<table:table><table:table-row><table:table-cell>" * 80 + "<text:p>a</text:p>" * 100_000 + "</table:table-cell></table:table-row></table:table>" * 80),
    "nested-groups.pptx": lambda: pptx("<p:grpSp><p:nvGrpSpPr><p:cNvPr id='1' name='g'/></p:nvGrpSpPr><p:grpSpPr/>" * 80 + shape("a") + "</p:grpSp>" * 80),
    "many-shapes.pptx": lambda: pptx(shape("a") * 100_000),
    "spine.epub": lambda: epub("<html><body><p>a</p></body></html>", 9_000),
    "name-of-a-part.epub": lambda: pack({"META-INF/container.xml": '<container><rootfiles><rootfile full-path="' + "../" * 1_000_000 + 'etc/passwd"/></rootfiles></container>'}, first=("mimetype", "application/epub+zip")),
    "10000-pages.pdf": lambda: many_pages(10_000),
    "deep-page-tree.pdf": lambda: deep_page_tree(20_000),
    "repeated-filters.pdf": lambda: repeated_filters(50),
    "nested-mails.eml": lambda: nested_mails(5_000),
    "fields.eml": lambda: b"From: a@b.c\nDate: x\n" + b"X: y\n" * 1_000_000 + b"\ntext",
    "parameters.eml": lambda: mail("text", "text/plain; " + "".join(f"name*{n}*=utf-8''a; " for n in range(50_000))),
    "quoted-parameters.eml": lambda: mail("text", "text/plain; a=" + '";' * 100_000),
    "fields-in-fields.rtf": lambda: b"{\\rtf1 " + b"{\\field{\\fldinst a}{\\fldrslt " * 20_000 + b"a" + b"}}" * 20_000 + b"}",
    "picture.rtf": lambda: b"{\\rtf1 {\\pict " + b"ff" * 20_000_000 + b"} a}",
    "substitution-bomb.rst": lambda: b"".join(b".. |a%d| replace:: %s\n" % (n, b"|a%d| " % (n + 1) * 10) for n in range(12)) + b".. |a12| replace:: ha\n\n|a0|\n",
    "grid.rst": lambda: (b"+-" * 150 + b"+\n" + b"| " * 150 + b"|\n") * 150 + b"+-" * 150 + b"+\n",
    "definitions.rst": lambda: b"\n".join(b" " * n + b"a" for n in range(1_500)),
    "roles.rst": lambda: b"".join(b":r%d:`a` " % n for n in range(30_000)),
    "lines-of-code.rst": lambda: b".. unknown::\n\n   " + b"(" * 100_000,
    "combining.txt": lambda: ("a" + "\u0301" * 1_000_000).encode(),
    **{f"reach-{name}": partial(_reaching, name) for name in reach_out("/etc/passwd", "http://127.0.0.1:9")},
}  # fmt: skip


@dataclass(slots=True)
class Cost:
    """What a file has taken so far."""

    server_mb: float = 0.0
    worker_mb: float = 0.0
    slowest_reply: float = 0.0
    worker_ticks: dict[int, int] = field(default_factory=dict)
    """Computing time of each parser worker."""

    @property
    def worker_seconds(self) -> float:
        return sum(self.worker_ticks.values()) / os.sysconf("SC_CLK_TCK")

    def measure(self, url: str) -> None:
        """Note memory and computing time of the process that listens at the address, and of its parser workers."""
        port = f"{int(url.rpartition(':')[2]):04X}"
        inodes = {
            line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if f":{port} 00000000:" in line
        }
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):  # it has ended
                command = (process / "cmdline").read_bytes()
                status = re.search(r"VmRSS:\s*(\d+)", (process / "status").read_text())
                memory = int(status[1]) / 1024 if status else 0.0
                if b"app.ingest.parser_process" in command:
                    self.worker_mb = max(self.worker_mb, memory)
                    times = (process / "stat").read_text().rpartition(")")[2].split()[11:13]
                    self.worker_ticks[int(process.name)] = sum(map(int, times))
                elif any(str(link.readlink()).strip("socket:[]") in inodes for link in (process / "fd").iterdir()):
                    self.server_mb = max(self.server_mb, memory)


async def send(client: httpx.AsyncClient, name: str, data: bytes) -> None:
    """Send a file, and print its line."""
    url = str(client.base_url).rstrip("/")
    before, cost = Cost(), Cost()
    before.measure(url)
    started = time.monotonic()
    sending = asyncio.create_task(client.post("/api/documents", files=[("files", (name, data))]))
    while not sending.done() and time.monotonic() - started < PATIENCE:
        asked = time.monotonic()
        (await client.get("/healthz")).raise_for_status()
        cost.slowest_reply = max(cost.slowest_reply, time.monotonic() - asked)
        await asyncio.to_thread(cost.measure, url)
        await asyncio.wait([sending], timeout=0.1)
    seconds = time.monotonic() - started
    answer = await client.post("/api/chat", json={"question": QUESTION})
    if sending.done():
        response = sending.result()
        [report] = response.json().get("documents") or [{"status": "refused", "error": response.text}]
        said = report.get("error") or f"{report.get('chunks')} chunks"
    else:
        sending.cancel()
        report, said = {"status": "given up"}, f"after {PATIENCE} s"
        for document in (await client.get("/api/documents")).json()["documents"]:
            if document["source"] == name:
                report, said = {"status": "added"}, f"{document['chunks']} chunks, not all embedded after {PATIENCE} s"
                await client.delete(f"/api/documents/{document['id']}")
    reading = cost.worker_seconds - sum(before.worker_ticks.get(pid, 0) for pid in cost.worker_ticks) / os.sysconf(
        "SC_CLK_TCK"
    )
    print(
        f"| `{name}` | {len(data) / 1e3:,.0f} | {report['status']} | {seconds:.1f} | {reading:.1f} | {cost.server_mb:.0f} "
        f"| {cost.worker_mb:.0f} | {1000 * cost.slowest_reply:.0f} | {answer.status_code} | {show(said)} |",
        flush=True,
    )


def show(said: str) -> str:
    """Return a message as a cell of a table."""
    line = " ".join(said.split()).replace("|", "\\|").replace("<", "&lt;")
    return line if len(line) <= 110 else f"{line[:109]}…"


async def main(url: str, names: list[str]) -> None:
    """Send the files of these names, or all."""
    async with httpx.AsyncClient(base_url=url, timeout=900, trust_env=False) as client:
        print(
            "| file | kB | what became of it | s | s of parser workers | server MB | worker MB | `/healthz` ms | ask | it said |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|")
        for name in names or FILES:
            await send(client, name, FILES[name]())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
