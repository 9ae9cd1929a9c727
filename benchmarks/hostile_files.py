# ruff: noqa: E501 - a file is a line

"""Sends files that are built to stop the service, and shows for each what it cost, while the service goes on answering.

    python -m benchmarks.hostile_files http://127.0.0.1:8000 [NAME...]

A line a file: what became of it, the seconds it took, the most memory of the server and of its parser workers, and the
slowest reply of /healthz meanwhile. The server must run on this machine, for its memory to be read.
"""

import asyncio
import io
import re
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import httpx

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
ODF = 'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
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


def nested_parts(depth: int) -> bytes:
    body = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(depth))
    return mail(body, "multipart/mixed; boundary=b0")


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
    "combining.txt": lambda: ("a" + "\u0301" * 1_000_000).encode(),
}  # fmt: skip


def read_memory(url: str) -> tuple[float, float]:
    """Return the memory in MB of the process that listens at the address, and of its largest parser worker."""
    server = workers = 0.0
    port = f"{int(url.rpartition(':')[2]):04X}"
    inodes = {
        line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines() if f":{port} 00000000:" in line
    }
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
            status = re.search(r"VmRSS:\s*(\d+)", (process / "status").read_text())
            memory = int(status[1]) / 1024 if status else 0.0
            if b"app.ingest.parser_process" in command:
                workers = max(workers, memory)
            elif any(str(link.readlink()).strip("socket:[]") in inodes for link in (process / "fd").iterdir()):
                server = memory
        except OSError:  # it has ended
            continue
    return server, workers


async def send(client: httpx.AsyncClient, name: str, data: bytes) -> None:
    """Send a file, and print its line."""
    peak_server = peak_workers = slowest = 0.0
    started = time.monotonic()
    sending = asyncio.create_task(client.post("/api/documents", files=[("files", (name, data))]))
    while not sending.done():
        asked = time.monotonic()
        (await client.get("/healthz")).raise_for_status()
        slowest = max(slowest, time.monotonic() - asked)
        server, workers = await asyncio.to_thread(read_memory, str(client.base_url).rstrip("/"))
        peak_server, peak_workers = max(peak_server, server), max(peak_workers, workers)
        await asyncio.wait([sending], timeout=0.1)
    seconds = time.monotonic() - started
    answer = await client.post("/api/chat", json={"question": QUESTION})
    [report] = (await sending).json().get("documents") or [{"status": "refused", "error": (await sending).text}]
    said = report.get("error") or f"{report.get('chunks')} chunks"
    print(
        f"{name:28} {len(data) / 1e3:8.0f} kB  {report['status']:9} {seconds:6.1f} s  server {peak_server:5.0f} MB  "
        f"worker {peak_workers:5.0f} MB  healthz {1000 * slowest:5.0f} ms  ask {answer.status_code}  {said[:110]}",
        flush=True,
    )


async def main(url: str, names: list[str]) -> None:
    """Send the files of these names, or all."""
    async with httpx.AsyncClient(base_url=url, timeout=900, trust_env=False) as client:
        for name in names or FILES:
            await send(client, name, FILES[name]())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
