"""Mails as files, boxes of mails, and web pages that browsers save in the form of a mail."""

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from email import policy
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.utils import getaddresses, parsedate_to_datetime
from itertools import groupby
from quopri import decodestring

from app.ingest.decoding import decode
from app.ingest.metadata.dates import state_day
from app.ingest.readers.assembly import Assembly, clean, squeeze
from app.ingest.readers.plain import add_plain
from app.ingest.readers.web.html import add_html, read_html
from app.ingest.readers.web.markup import parse_html
from domain.documents import ParsedDocument
from domain.errors import OversizedDocument
from domain.library.metadata import Metadata, select_metadata

MAX_PARTS = 1000
"""Largest number of parts of a mail. Each attachment and each form of the text is one."""
_LONGEST_HEADER = 4000
_MOST_ADDRESSES = 20
"""Addresses of a field that are shown."""
_ABOVE = re.compile(rb"(?:\A|(?<=\n)\r?\n)From [^\r\n]{0,200}\d{4}[^\r\n]{0,40}\r?\n(?=[!-9;-~]{1,80}:)")
"""What stands above each mail in a box (RFC 4155)."""
_BLANK = re.compile(rb"\n[ \t]*\n+")
_MOST_BLANK = 3
"""Empty lines among the headers that are looked beyond."""
_FIELD = rb"[!-9;-~]{1,80}[ \t]*:"
_FIELDS = re.compile(rb"(?:(?:%s|[ \t])[^\n]*(?:\n|\Z))+" % _FIELD)
_NAMED = re.compile(rb"^(?:from|to|cc|subject|date|received|message-id|mime-version|content-\S+)[ \t]*:", re.I | re.M)
_SENDER = re.compile(rb"^from[ \t]*:", re.I | re.M)
_CONTENT = re.compile(rb"^content-type[ \t]*:", re.I | re.M)
_STRAY = re.compile(rb"^(?!%s|[ \t])[^\n]*\n" % _FIELD, re.M)
"""A line of headers that is none."""
_SPACED = re.compile(rb"^([!-9;-~]{1,80})[ \t]+:", re.M)
_BORDER = re.compile(r"\s*(?:.{0,100}\n){0,3}?--(\S{1,70})[ \t]*\nContent-", re.IGNORECASE)
_BASE64 = re.compile(r"^(?:[A-Za-z0-9+/]{60,76}\n)+[A-Za-z0-9+/]+={0,2}[ \t]*$", re.M)
_QUOTED = re.compile(rb"=(?:[0-9A-F]{2}|\r?\n)")
_SURELY_QUOTED = re.compile(rb"=\r?\n|(?:=[89A-F][0-9A-F]){2}")
_UUENCODED = re.compile(r"^begin [0-7]{3} (\S[^\n]*)\n(?:[ -`]{1,61}\n)*end$", re.M)
_ADDRESS = re.compile(r"https?://\S+")
_MUCH_LONGER = 1.25
"""How many times as many words a plain text has than its page where the page lacks some. Chosen: addresses of pictures
and footers make it a bit longer."""
_ARMOUR = re.compile(r"-----BEGIN PGP MESSAGE-----.*?(?:-----END PGP MESSAGE-----|\Z)", re.DOTALL)
_SIGNED = re.compile(
    r"-----BEGIN PGP SIGNED MESSAGE-----\n(?:\w+:[^\n]*\n)*"
    r"|-----BEGIN PGP SIGNATURE-----.*?(?:-----END PGP SIGNATURE-----|\Z)",
    re.DOTALL,
)
_SIGNATURES = frozenset({"application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature"})
_UNREAD = {
    "multipart/encrypted": "encrypted with PGP",
    "application/pkcs7-mime": "encrypted or signed with S/MIME",
    "application/x-pkcs7-mime": "encrypted or signed with S/MIME",
    "message/partial": "one of several mails",
    "message/external-body": "kept elsewhere",
}
_SHOWN = {
    "SUMMARY": "Event", "STATUS": "Status", "DTSTART": "Start", "DTEND": "End", "DURATION": "Duration",
    "RRULE": "Repeated", "EXDATE": "Not on", "LOCATION": "Place", "DESCRIPTION": "Description",
}  # fmt: skip
_STATED = re.compile(r"[^\W\d_][^\n:：]{0,25}[:：][ \t]*(.*)")
"""A line of what programs write above an older mail, in any language."""
_MOMENT = re.compile(r"\d{4}.{0,40}\d[:.]\d\d|\d[:.]\d\d.{0,40}\d{4}")
_HALF_OF_DAY = re.compile(r"\d\s?([ap])\.?m\b", re.IGNORECASE)
_ANSWER = re.compile(r"^(?:[^\W\d_]{1,5}(?:\[\d{1,3}\])?[:：][ \t]*)+")
_MARKS = re.compile(r"(?!>From )(?:> ?)++")
"""What quotes a line. Boxes put the same sign before "From"."""
_DEEPEST_QUOTE = 9
_EVENT_LINE = re.compile(r"(\w+)(?:;([^:]*))?:(.*)")

# The modern policy parses each header by rules whose time grows with the square of its length.
_PARSER = BytesParser(policy=policy.compat32)


def read_eml(source: str, data: bytes) -> ParsedDocument:
    """Read a mail: who wrote it to whom and when, its text, mails that are forwarded with it, and the names of its
    attachments, which are not opened. A box is the mails in it, and a saved page is read as such.

    Raises `OversizedDocument`, and `RecursionError` for parts nested a thousand levels deep.
    """
    mails, stray = _split(data)
    message = _PARSER.parsebytes(mails[0])
    if message.get_content_type() == "multipart/related" and "@" not in _read_addresses(message, "From"):
        for part in message.walk():
            if part.get_content_type() == "text/html":
                return replace(read_html(source, _read_text(part).encode()), metadata=_describe(message))
    reader = _Reader()
    reader.assembly.skip("mail part", "lines among the headers", stray)
    for each in mails:
        reader.add_mail(_PARSER.parsebytes(each), 1)
    if len(mails) > 1:
        return reader.assembly.finish(None, source)
    return replace(reader.assembly.finish(_read_header(message, "Subject"), source), metadata=_describe(message))


def read_mail_metadata(data: bytes) -> Metadata:
    """Return sender, recipients, subject and date of a mail without reading its text."""
    mails, _ = _split(data)
    return _describe(_PARSER.parsebytes(mails[0], headersonly=True)) if len(mails) == 1 else {}


def _split(data: bytes) -> tuple[list[bytes], int]:
    """Return the mails of a box, or the one that the file is, and how many lines among their headers are none."""
    data = re.sub(rb"\r{1,9}\n", b"\n", data.removeprefix(b"\xef\xbb\xbf")).lstrip()
    data = data if b"\n" in data else data.replace(b"\r", b"\n")  # old Macs
    mails = _ABOVE.split(data) if data.startswith(b"From ") else []
    mended = [_mend(each) for each in mails if each.strip()] or [_mend(data)]
    return [mail for mail, _ in mended], sum(stray for _, stray in mended)


def _mend(mail: bytes) -> tuple[bytes, int]:
    """Return a mail without what parts its headers: empty lines, and lines of queues and gateways, which are counted. A
    subject or a list of addresses may go on in one."""
    head, *rest = _BLANK.split(mail, maxsplit=1)
    for _ in range(_MOST_BLANK):
        following, *after = _BLANK.split(rest[0], maxsplit=1) if rest else [b""]
        lost = _CONTENT if _SENDER.search(head) else _NAMED
        if _CONTENT.search(head) or not (_FIELDS.fullmatch(following) and lost.search(following)):
            break
        head, rest = head + b"\n" + following, after
    last = max((field.start() for field in _NAMED.finditer(head)), default=0)
    stray = 0

    def mend(line: re.Match[bytes]) -> bytes:
        nonlocal stray
        if line.start() > last:
            return line[0]
        above = head[head.rfind(b"\n", 0, max(line.start() - 1, 0)) + 1 : line.start()]
        if above.endswith(b",\n") or above[:7].lower() == b"subject":
            return b" " + line[0]
        stray += not line[0].lstrip(b">").startswith(b"From ")
        return b""

    head = _SPACED.sub(rb"\1:", _STRAY.sub(mend, head))
    return b"\n\n".join([head, *rest]), stray


class _Mails(Assembly):
    """Puts older mails that stand below or within another under headings that say when they were written."""

    level, subject, _above, _is_quoted = 1, "", "", False

    def add_block(self, text: str, *, gap: str = "\n\n") -> int:
        """Append a block, also within a quote."""
        return self._add(text.strip("\n").rstrip(), "block") if self._containers else super().add_block(text, gap=gap)

    def _append(self, text: str, gap: str) -> int:
        above, last = self._above, [line.lstrip("> ") for line in text.split("\n")[-2:]]
        words = _date_earlier(text, self.subject)
        is_quoted = text.startswith(">")
        if not words and is_quoted and above.endswith(":") and any(map(str.isdigit, above)):
            words = above[:-1]
        elif self._is_quoted and not is_quoted:
            words = "Reply"
        goes_on, self._is_quoted = is_quoted and (self._is_quoted or bool(words)), False
        if words:
            around, self._containers = self._containers, []
            self.add_heading(self.level + 1, words if words == "Reply" else f"Earlier mail: {words}")
            self._containers = around
        self._is_quoted = goes_on
        self._above = (" ".join(last) if _MOMENT.search(" ".join(last)) else last[-1]).lstrip("> ")
        return super()._append(text, "\n\n" if words else gap)


def _date_earlier(text: str, subject: str) -> str:
    """Return when a mail was written, as a block says that begins with the fields of one of this subject, or of an
    answer to it; empty for any other block."""
    fields = [squeeze(field[1]) for line in text.split("\n") if (field := _STATED.fullmatch(line))]
    is_named = subject and _ANSWER.sub("", subject).casefold() in (_ANSWER.sub("", each).casefold() for each in fields)
    return next(filter(_MOMENT.search, fields), "") if is_named and len(fields) > 2 else ""


class _Reader:
    def __init__(self) -> None:
        self.assembly = _Mails()
        self._parts = 0
        self._counts: dict[int, Counter[str]] = {}
        self._said: set[str] = set()
        """Lines that need not be quoted again."""

    def add_mail(self, message: Message, level: int) -> None:
        """Append a mail under its subject. Each mail of a box may have so many parts."""
        self._parts = self._parts if level > 1 else 0
        if subject := _read_header(message, "Subject"):
            self.assembly.add_heading(level, subject)
        fields = [f"{name}: {value}" for name in ("From", "To", "Cc") if (value := _read_addresses(message, name))]
        if sent := _read_date(message):
            fields.append(f"Date: {sent}")
        if subject:
            # Also here, where it can be quoted: headings are not.
            fields.append(f"Subject: {subject}")
        self.assembly.add_block("\n".join(fields))
        self.assembly.level, self.assembly.subject = level, subject
        forwarded: list[Message] = []
        names: list[str] = []
        self._add_part(message, forwarded, names, is_whole=True)
        self.assembly.subject = ""
        if names:
            self.assembly.add_block("Attachments:")
            self.assembly.add_block("\n".join(f"- {name}" for name in names), gap="\n")
        for each in forwarded:
            self.add_mail(each, level + 1)

    def _add_part(self, part: Message, forwarded: list[Message], names: list[str], *, is_whole: bool = False) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise OversizedDocument(f"The mail has more than {MAX_PARTS:,} parts. Save its text and attachments.")
        part = _restore(part)
        kind, payload = part.get_content_type(), part.get_payload()
        inner = [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []
        shown_as, name = part.get_content_disposition(), _read_name(part)
        is_shown = is_whole or shown_as == "inline" or not (shown_as or name)
        if kind in _UNREAD:
            self.assembly.skip("mail part", _UNREAD[kind])
        elif mail := _read_forwarded(part, name):
            forwarded.append(mail)
        elif kind == "multipart/alternative" and inner:
            for each in (self._choose(inner), *(form for form in inner if form.get_content_type() == "text/calendar")):
                self._add_part(each, forwarded, names)
        elif inner and kind.startswith("message/"):  # a report of delivery
            fields = (f"{key}: {squeeze(str(value))}" for each in inner for key, value in each.items())
            self.assembly.add_block("\n".join(fields))
        elif inner:
            for each in self._drop_repeated(inner):
                self._add_part(each, forwarded, names)
        elif is_shown and kind == "text/calendar":
            self._add_events(_read_text(part))
        elif is_shown and (kind in ("text/plain", "text/html") or kind.startswith("multipart/")):
            self._add_text(part, kind, names)
        elif kind.startswith("image/") and part["Content-ID"]:
            self.assembly.skip("picture")
        elif kind not in _SIGNATURES:
            names.append(name or kind)
            self.assembly.skip("attachment", names[-1])

    def _add_text(self, part: Message, kind: str, names: list[str]) -> None:
        text = _read_text(part)
        if kind == "text/html":
            _add_page(self.assembly, text)
            return
        text, count = _ARMOUR.subn("", text)
        self.assembly.skip("mail part", "encrypted with PGP", count)
        for file in _UUENCODED.findall(text):
            names.append(squeeze(file)[:200])
            self.assembly.skip("attachment", names[-1])
        text = _BASE64.sub(self._decode_block, _UUENCODED.sub("", text))
        lines = [(line, line.lstrip("> \t").rstrip()) for line in _SIGNED.sub("", text).split("\n")]
        kept = [line for line, words in lines if not (words in self._said and line.startswith(">"))]
        self._said.update(words for _, words in lines if words)
        self._add_lines(kept)

    def _add_lines(self, lines: Sequence[str]) -> None:
        """Append plain text, of which lines that begin with ">" are quotes, however deep."""
        marked: list[tuple[int, str]] = []
        for line in lines:
            marks = _MARKS.match(line)
            words = line[marks.end() :] if marks else line.removeprefix(">")
            depth = min(marks[0].count(">"), _DEEPEST_QUOTE) if marks else 0
            marked.append((depth if words.strip() or not marked else marked[-1][0], words))
        depth = 0
        for wanted, run in groupby([*marked, (0, "")], lambda each: each[0]):
            for _ in range(depth, wanted):
                self.assembly.open_quote()
            for _ in range(wanted, depth):
                self.assembly.close_quote()
            add_plain(self.assembly, "\n".join(words for _, words in run))
            depth = wanted

    def _decode_block(self, block: re.Match[str]) -> str:
        """Return the words of lines in base64; none of what is no text, which is counted. Checksums are letters."""
        if len({each.isupper() for each in block[0] if each.isalpha()}) < 2:
            return block[0]
        text = decode(_decode_base64(block[0].encode()))
        if text.replace("\n", "").isprintable():
            return text
        self.assembly.skip("mail part", "encoded in base64")
        return ""

    def _add_events(self, text: str) -> None:
        """Append the events of a calendar (RFC 5545)."""
        head, *events = re.sub(r"\n[ \t]", "", text).split("\nBEGIN:VEVENT\n")
        is_off = "\nMETHOD:CANCEL\n" in f"{head}\n"
        for event in events:
            lines = map(_EVENT_LINE.match, re.split(r"\n(?:BEGIN|END):", event, maxsplit=1)[0].split("\n"))
            said = {line[1]: _read_value(line) for line in lines if line is not None and line[1] in _SHOWN}
            said |= {"STATUS": "CANCELLED"} if is_off else {}
            subject, self.assembly.subject = self.assembly.subject, ""  # fields of an event are not those of a mail
            self.assembly.add_block("\n".join(f"{_SHOWN[name]}: {said[name]}" for name in _SHOWN if name in said))
            self.assembly.subject = subject

    def _choose(self, forms: list[Message]) -> Message:
        """Return the richest of several forms of a text: the page, unless the plain text says much more."""
        counts = [(self._count_words(form).total(), form) for form in forms]
        longest = max(count for count, _ in counts)
        return next((form for count, form in reversed(counts) if 0 < count >= longest / _MUCH_LONGER), forms[0])

    def _drop_repeated(self, parts: list[Message]) -> list[Message]:
        """Return the parts without a plain text whose words a page beside it has, too."""
        shown = [part for part in parts if not part.get_filename()]
        pages = [self._count_words(part) for part in shown if part.get_content_type() == "text/html"]
        texts = [part for part in shown if pages and part.get_content_type() == "text/plain"]
        again = [part for part in texts if any(self._count_words(part) <= page for page in pages)]
        return [part for part in parts if part not in again]

    def _count_words(self, form: Message) -> Counter[str]:
        """Count the words of a text that is shown, or of those in a part of several."""
        if id(form) not in self._counts:
            text = ""
            if form.is_multipart():
                inner = (each for each in form.get_payload() if isinstance(each, Message))
                self._counts[id(form)] = sum(map(self._count_words, inner), Counter[str]())
                return self._counts[id(form)]
            if form.get_content_type() == "text/plain":
                text = _read_text(form)
            elif form.get_content_type() == "text/html":
                assembly = Assembly()
                _add_page(assembly, _read_text(form))
                text = assembly.finish(None, "").text
            self._counts[id(form)] = Counter(re.findall(r"\w+", _ADDRESS.sub("", text)))
        return self._counts[id(form)]


def _add_page(assembly: Assembly, page: str) -> None:
    add_html(assembly, parse_html(page))


def _read_value(line: re.Match[str]) -> str:
    value = squeeze(re.sub(r"\\([,;\\nN])", lambda sign: " " if sign[1] in "nN" else sign[1], line[3]))
    moment = re.fullmatch(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?", value)
    if moment is None:
        return value
    zone = "UTC" if moment[6] else "".join(re.findall(r"TZID=([^;]*)", line[2] or ""))
    return f"{moment[1]}-{moment[2]}-{moment[3]}" + (f" {moment[4]}:{moment[5]} {zone}".rstrip() if moment[4] else "")


def _describe(message: Message) -> Metadata:
    found = {
        "from": _read_addresses(message, "From"),
        "to": _read_addresses(message, "To"),
        "subject": _read_header(message, "Subject"),
        **state_day(_read_date(message)),
    }
    return select_metadata({key: value for key, value in found.items() if value})


def _restore(part: Message) -> Message:
    """Return a part that holds parts within another border than it says, or than it says any, as it is meant."""
    payload = part.get_payload()
    is_meant = part.get_content_maintype() == "multipart" or "Content-Type" not in part
    border = _BORDER.match(payload) if is_meant and isinstance(payload, str) else None
    if border is None:
        return part
    kind = part.get_content_type() if "Content-Type" in part else "multipart/mixed"
    stated = f'Content-Type: {kind}; boundary="{border[1]}"\n\n{payload}'
    return _PARSER.parsebytes(stated.encode("utf-8", "surrogateescape"))


def _read_forwarded(part: Message, name: str) -> Message | None:
    """Return the mail that a part or a file is; None for anything else."""
    payload = part.get_payload()
    is_mail = part.get_content_type() == "message/rfc822"
    mail = payload[0] if is_mail and isinstance(payload, list) and payload else None
    if isinstance(mail, Message) and "quoted" in _find_header(part, "Content-Transfer-Encoding").lower():
        data: object = decodestring(mail.as_bytes())
    elif isinstance(mail, Message) and not mail.keys() and isinstance(encoded := mail.get_payload(), str):
        data = _decode_base64(encoded.encode("utf-8", "surrogateescape"))
    elif is_mail or not name.lower().endswith(".eml"):
        return mail if isinstance(mail, Message) else None
    else:
        data = part.get_payload(decode=True)
    found = _PARSER.parsebytes(_split(data)[0][0]) if isinstance(data, bytes) else None
    return found if found is not None and found.keys() else None


def _decode_base64(data: bytes) -> bytes:
    try:
        return b64decode(data + b"=" * (-len(b"".join(data.split())) % 4))
    except ValueError:
        return b"\0"


def _read_text(part: Message) -> str:
    encoding = _find_header(part, "Content-Transfer-Encoding").lower()
    known = next((each for each in ("base64", "quoted-printable") if each in encoding), "")
    if known:
        part.replace_header("Content-Transfer-Encoding", known)
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    if not known and _BASE64.fullmatch(payload.decode("latin-1").strip()):
        payload = _decode_base64(payload)
    signs = len(_QUOTED.findall(payload)) if not known and _SURELY_QUOTED.search(payload) else 0
    if signs > 1 and signs == payload.count(b"="):
        payload = decodestring(payload)
    text = clean(decode(payload, declared=part.get_content_charset()))
    if part.get_param("format") == "flowed":
        text = _reflow(text, "" if part.get_param("delsp") == "yes" else " ")
    return text


def _reflow(text: str, glue: str) -> str:
    """Return text whose lines go on in the next one of the same depth of quoting, where they end in a space."""
    lines, last = list[str](), ""
    for line in text.split("\n"):
        words = line.lstrip(">").removeprefix(" ")
        mark = line[: len(line) - len(line.lstrip(">"))]
        if lines and mark == last and lines[-1].endswith(" ") and not lines[-1].endswith("-- ") and words:
            lines[-1] = f"{lines[-1][:-1]}{glue}{words}"
        else:
            lines.append(f"{mark} {words}" if mark else words)
        last = mark
    return "\n".join(lines)


def _read_header(message: Message, name: str) -> str:
    return squeeze(_decode(_find_header(message, name)))


def _read_name(part: Message) -> str:
    """Return the name of a file that is attached, also where its letters are not encoded."""
    for name in ("Content-Disposition", "Content-Type"):
        if name in part:
            part.replace_header(name, _find_header(part, name))
    return squeeze(_decode(part.get_filename() or ""))[:200]


def _find_header(message: Message, name: str) -> str:
    """Return a field as it is written, also where its letters are not encoded."""
    raw = next((str(value) for key, value in message.raw_items() if key.lower() == name.lower()), "")[:_LONGEST_HEADER]
    return raw if raw.isascii() else decode(raw.encode("ascii", "surrogateescape"))


def _read_addresses(message: Message, name: str) -> str:
    """Return names and addresses: ``Ada <ada@example.com>, bob@example.com``."""
    addresses = [
        (squeeze(_decode(shown)), squeeze(address)) for shown, address in getaddresses([_find_header(message, name)])
    ]
    spelled = [f"{shown} <{address}>" if shown and shown != address else address for shown, address in addresses]
    more = len(spelled) - _MOST_ADDRESSES
    return ", ".join(filter(None, spelled[:_MOST_ADDRESSES])) + (f" and {more} more" if more > 0 else "")


def _read_date(message: Message) -> str:
    """Return the date in the form of ISO 8601, to the minute and with the sender's zone; as it is written where that
    cannot be read, and where none is written when it was received."""
    stated = squeeze(_find_header(message, "Date"))[:100]
    written = stated or squeeze(_find_header(message, "Received").rpartition(";")[2])[:100]
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            moment = read(written)
            if half := _HALF_OF_DAY.search(written):  # which the library drops
                moment = moment.replace(hour=moment.hour % 12 + 12 * (half[1].lower() == "p"))
            return moment.isoformat(" ", "minutes")
    return _decode(stated)


def _decode(value: str) -> str:
    """Return a field with its encoded words as they are meant; a charset that is not known is guessed."""
    try:
        return "".join(
            words if isinstance(words, str) else decode(words, declared=charset)
            for words, charset in decode_header(value)
        )
    except ValueError:
        return value
