"""Recognising file formats, and the messages for files that cannot be read."""

import io
from pathlib import Path

import pytest
from docx import Document
from fpdf import FPDF
from PIL import Image
from pypdf import PdfReader, PdfWriter

from app.ingest.formats import find_format
from app.ingest.reading import read_document
from domain.documents import tell_unread
from domain.errors import (
    DocumentError,
    EmptyDocument,
    EncryptedDocument,
    MistypedDocument,
    OversizedDocument,
    UnreadableDocument,
    UnsupportedDocument,
)
from tests.ingest.readers.test_office_readers import bomb, pack, save

DOCX_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def make_pdf(text: str = "The gauge holds four litres of rain water.") -> bytes:
    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=12)
    pdf.multi_cell(0, 6, text)
    return bytes(pdf.output())


def make_docx(text: str = "The gauge holds four litres.") -> bytes:
    document = Document()
    document.add_paragraph(text)
    return save(document)


def encrypt(data: bytes, *, user: str, owner: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password=user, owner_password=owner, algorithm="AES-256")
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def make_png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "PNG")
    return buffer.getvalue()


ENCRYPTED_DOCX = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "EncryptedPackage".encode("utf-16-le") + bytes(64)
OLD_DOC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "WordDocument".encode("utf-16-le") + bytes(64)


@pytest.mark.parametrize(
    ("name", "data", "error", "hint"),
    [
        ("cut.pdf", b"%PDF-1.7\n" + b"garbage " * 50, UnreadableDocument, "damaged"),
        ("cut.docx", make_docx()[:9000], UnreadableDocument, "damaged"),
        ("noise.pdf", bytes(range(256)) * 8, UnreadableDocument, "damaged"),
        ("part-missing.docx", pack({"word/document.xml": b"<w:document/>"}), UnreadableDocument, "Save it again"),
        ("secret.pdf", encrypt(make_pdf(), user="a", owner="b"), EncryptedDocument, "password"),
        ("secret.docx", ENCRYPTED_DOCX, EncryptedDocument, "password"),
        ("nothing.md", b"", EmptyDocument, "empty"),
        ("blank.txt", b" \n\t\r\n ", EmptyDocument, "empty"),
        ("blank.html", b"<html><script>x()</script><body></body></html>", EmptyDocument, "no text"),
        ("blank.docx", make_docx(" "), EmptyDocument, "no text"),
        ("blank.pdf", make_pdf(" "), EmptyDocument, "no text"),
        ("bomb.docx", bomb(make_docx(), "word/appendix.xml"), OversizedDocument, "unpacks"),
        ("page.pdf", b"<!DOCTYPE html><html><body>404</body></html>", MistypedDocument, "HTML"),
        ("words.pdf", b"only words", MistypedDocument, "plain text"),
        ("report.pdf", make_docx(), MistypedDocument, "DOCX"),
        ("report.docx", make_pdf(), MistypedDocument, "PDF"),
        ("plain.docx", pack({"readme": b"hello"}), MistypedDocument, "ZIP"),
        ("sheet.docx", pack({"xl/workbook.xml": b"<x/>"}), MistypedDocument, "Excel"),
        ("old.docx", OLD_DOC, MistypedDocument, "save it as DOCX"),
        ("picture.txt", make_png(), MistypedDocument, "PNG"),
        ("paper.txt", make_pdf(), MistypedDocument, "PDF"),
        ("zeros.md", b"# Title\n\nText with \x00 zero bytes\x00.", MistypedDocument, "binary"),
        ("noise.html", bytes(range(1, 32)) * 40, MistypedDocument, "binary"),
        ("table.xlsx", pack({"xl/workbook.xml": b"<x/>"}), UnreadableDocument, "Save it again"),
        ("table.xlsb", pack({"xl/workbook.bin": b""}), UnsupportedDocument, "save it as XLSX"),
        ("table.ods", pack({"content.xml": b"<x/>"}), MistypedDocument, "OpenDocument"),
        ("table.pptx", pack({"xl/workbook.xml": b"<x/>"}), MistypedDocument, "Excel"),
        ("deck.pptx", pack({"ppt/presentation.xml": b"<x/>"}), UnreadableDocument, "Save it again"),
        ("book.epub", pack({"META-INF/container.xml": b"<x/>"}), UnreadableDocument, "where its content is"),
        ("table.csv", make_png(), MistypedDocument, "PNG"),
        ("letter.rtf", b"Dear Sir", MistypedDocument, "plain text"),
        ("letter.txt", b"{\\rtf1 Dear Sir}", MistypedDocument, "RTF"),
        ("letter.odt", make_docx(), MistypedDocument, "DOCX"),
        ("photo", b"GIF89a" + bytes(20), UnsupportedDocument, "GIF"),
        ("letter.doc", OLD_DOC, UnsupportedDocument, "save it as DOCX"),
        ("tool.3pm.gz", b"\x1f\x8b" + bytes(20), UnsupportedDocument, "unpack it"),
    ],
)
def test_unusable_files_say_what_is_wrong(name: str, data: bytes, error: type[DocumentError], hint: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_document(f"/some/folder/{name}", data)
    assert type(caught.value) is error
    assert name not in caught.value.message, "who reports it names the file"
    assert hint in caught.value.message


def test_a_file_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(OversizedDocument, match=r"^The file has 3.0 MB; 2 MB are the limit"):
        read_document("big.txt", b"x" * 3_000_000, max_bytes=2_000_000)


def test_text_over_the_limit_is_refused() -> None:
    with pytest.raises(OversizedDocument, match="characters"):
        read_document("big.txt", b"word " * 2_100_000)


def test_a_pdf_that_only_restricts_printing_is_read() -> None:
    document = read_document("open.pdf", encrypt(make_pdf(), user="", owner="b"))
    assert "four litres" in document.text


@pytest.mark.parametrize(
    ("source", "data", "media_type", "expected"),
    [
        ("upload", make_pdf(), None, "application/pdf"),
        ("upload.final", make_docx(), "application/octet-stream", DOCX_TYPE),
        ("https://example.org/page?id=3.pdf", b"<!-- a --><html><p>Hi</html>", None, "text/html"),
        ("https://example.org/notes.md?raw=1", b"# Notes", "text/plain", "text/markdown"),
        ("upload.tmp", b"# Notes", "text/markdown; charset=utf-8", "text/markdown"),
        ("README", b"Read me.", None, "text/plain"),
        ("C:\\docs\\PAPER.PDF", make_pdf(), None, "application/pdf"),
        ("upload", b"From: a@example.com\r\nDate: 1 May 2024\r\n\r\nHello", None, "message/rfc822"),
        ("upload", b"From: here to there\n\nis no mail", None, "text/plain"),
        ("mail.txt", b"From: a@example.com\nDate: 1 May 2024\n\nHello", None, "text/plain"),
        ("upload", b"{\\rtf1 Hello}", None, "application/rtf"),
        ("upload", b"a;b\n1;2", "text/csv; header=present", "text/csv"),
        ("about.md", b"A file that starts with %PDF- is a PDF; one with RIFF is a sound.", None, "text/markdown"),
        ("riff.txt", b"RIFFs and %PDF- strings are words here.", None, "text/plain"),
    ],
)
def test_content_and_name_decide_the_type(source: str, data: bytes, media_type: str | None, expected: str) -> None:
    assert read_document(source, data, media_type=media_type).media_type == expected


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a/b.MD", "Markdown"), ("x.htm", "HTML"), ("x.tar.gz", None), (".md", None), ("docx", None), ("a.pdf", "PDF")],
)
def test_extensions_name_a_format(name: str, kind: str | None) -> None:
    found = find_format(name)
    assert (found.name if found else None) == kind


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Über die Straße gehen 5 € an Frau Müller.", "utf-8"),
        ("Über die Straße gehen 5 € an Frau Müller.", "utf-8-sig"),
        ("Über die Straße gehen 5 € an Frau Müller.", "cp1252"),
        ("El niño comió una piña mañana", "latin-1"),
        ("naïve café déjà vu", "utf-16"),
        ("naïve café déjà vu", "utf-16-le"),
        ("naïve café déjà vu", "utf-16-be"),
        ("Ключ висит в комнате 12.", "utf-16-le"),
        ("naïve café déjà vu", "utf-32"),
        ("Привет, мир. Это простой текст на русском языке.", "cp1251"),
        ("Section §4.1 applies.", "cp1252"),
        ("L’accès est fermé – déjà", "cp1252"),
        ("Die Gebühr beträgt 40 Euro für Mitglieder.", "cp850"),
        ("Zażółć gęślą jaźń, opłata wynosi 40 zł.", "iso8859-2"),
        ("会議は三月二十三日の午後二時に大阪の事務所で開きます。", "iso2022_jp"),
        ("사무실은 월요일부터 열려 있습니다.", "iso2022_kr"),
        ("辦公室週一至週五開放，鑰匙在前台。", "big5"),
        ("会議は三月 二十三日", "utf-16-le"),
        ("👩‍👩‍👧 emoji 🎉", "utf-8"),
    ],
)
@pytest.mark.parametrize("name", ["note.txt", "note.md", "note.html"])
def test_text_in_many_encodings_is_read(name: str, text: str, encoding: str) -> None:
    assert read_document(name, text.encode(encoding)).text == text


@pytest.mark.parametrize(
    ("label", "text", "encoding"),
    [
        ("koi8-r", "Привет", "koi8-r"),
        ("iso-2022-jp", "大阪", "iso2022_jp"),
        ("hz-gb-2312", "钥匙", "hz"),
        ("utf-7", "Grüße", "utf-7"),
        ("gb2312", "镕 钥匙", "gbk"),
        ("Shift_JIS", "①", "cp932"),
        ("utf-8", "40 €", "cp1252"),
        ("windows-1251", "Grüße", "utf-8"),
    ],
)
def test_a_declared_encoding_counts_unless_it_is_wrong(label: str, text: str, encoding: str) -> None:
    page = f'<html><head><meta charset="{label}"></head><body><p>{text}</p></body></html>'
    mail = (
        f"From: a@a.example\nDate: Mon, 18 Mar 2024 09:00:00 +0900\nContent-Type: text/plain; charset={label}\n\n{text}"
    )
    assert read_document("a.html", page.encode(encoding)).text == text
    assert read_document("a.txt", text.encode(encoding), media_type=f"text/plain; charset={label}").text == text
    assert read_document("a.eml", mail.encode(encoding)).text.endswith(text)


@pytest.mark.parametrize(
    ("data", "text", "remark"),
    [
        ("Grüße – ".encode() * 5 + "Müller".encode("cp1252"), "– Müller", "rest: 1"),
        ("§4.1 applies".encode("cp1252"), "§4.1 applies", "windows-1252"),
        ("§4.1 applies".encode(), "§4.1 applies", ""),
        ("It goes to ﾎﾝﾀﾞ in May".encode("cp932"), "It goes to ホンダ in May", "cp932"),
        ("日付,摘要\n4/1,ｺｳｻﾞﾌﾘｶｴ".encode("cp932"), "日付,摘要\n4/1,コウザフリカエ", "cp932"),
        ("上海".encode("gb18030"), "上海", "gb18030"),
        ("Zoë Müller\n".encode() + "café Renée 5 €".encode("cp1252"), "Zoë Müller\ncafé Renée 5 €", "others"),
        ("The café’s Zoë".encode()[:-1], "The café’s Zo", "cut off"),
    ],
)
def test_an_encoding_that_was_guessed_is_named(data: bytes, text: str, remark: str) -> None:
    document = read_document("a.txt", data)
    assert document.text.endswith(text)
    assert remark in (told := tell_unread(document.unread))
    assert bool(remark) == bool(told)


@pytest.mark.parametrize("name", ["odd.txt", "odd.md", "odd.html"])
def test_what_cannot_be_stored_goes_and_the_rest_stays(name: str) -> None:
    odd = "one\x07 two\u200b\ufeff three\u00ad-four\x1b[0m five\r\nsix\u2028seven\u0085eight e\u0301"
    text = read_document(name, odd.encode()).text
    assert not any(character < " " and character not in "\n\t" for character in text)
    text.encode("utf-8")
    assert "one two three-four" in text
    assert "é" in text
    for word in ("five", "six", "seven", "eight"):
        assert word in text.split()


def test_an_undecodable_byte_costs_one_character() -> None:
    text = read_document("cut.txt", b"\xef\xbb\xbfgood \xff text").text
    assert text == "good � text"


def test_every_file_of_the_sample_library_is_read() -> None:
    from app.samples import FOLDER

    files = [file for file in Path(FOLDER).iterdir() if find_format(file.name)]
    assert len(files) == 8
    documents = [read_document(str(file), file.read_bytes()) for file in files]
    assert len({document.title for document in documents}) == 8
    assert all(len(document.sections) > 3 for document in documents)


def test_many_leading_comments_do_not_hold_the_process() -> None:
    """Comments that can be matched in many ways would take longer than the universe has."""
    data = b"<!---->" * 500 + b"<p>Licence notice.</p>"
    assert "Licence notice." in read_document("fragment.html", data).text
