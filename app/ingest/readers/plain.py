import re

from charset_normalizer import from_bytes

from app.ingest.readers.assembly import Assembly, clean
from domain.documents import ParsedDocument

MEDIA_TYPE = "text/plain"

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_UNDERLINE = re.compile(r"(={3,}|-{3,}|~{3,})\s*")
_LONGEST_HEADING = 120


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Bytes to text: byte order mark, then UTF-8, then the declared encoding, then what the bytes look like.

    UTF-8 goes before the declared encoding because text in another encoding is hardly ever valid UTF-8, while
    wrong declarations are common. Undecodable bytes become U+FFFD.
    """
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    if utf16 := _find_utf16(data):
        return data.decode(utf16, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if declared:
        try:
            return data.decode(declared)
        except (LookupError, UnicodeDecodeError):
            pass
    return data.decode(_guess(data), errors="replace")


def _guess(data: bytes) -> str:
    matches = from_bytes(data)
    best = matches.best()
    if best is None:
        return "cp1252"
    # a short text fits several code pages equally well; the Western one is by far the commonest
    tied = (match.encoding for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence))
    return "cp1252" if "cp1252" in tied else best.encoding


def _find_utf16(data: bytes) -> str | None:
    """UTF-16 without a byte order mark: in most writing, every second byte is zero, and the others are not."""
    sample = data[:4096]
    half = len(sample) // 2
    if half < 2:
        return None
    high, low = sample[0::2].count(0) / half, sample[1::2].count(0) / half
    if low > 0.4 and high < 0.02:
        return "utf-16-le"
    if high > 0.4 and low < 0.02:
        return "utf-16-be"
    return None


def read_plain(source: str, data: bytes) -> ParsedDocument:
    """Plain text. A short line underlined with ``===``, ``---`` or ``~~~`` is a heading; a short first line that
    does not end like a sentence is the title."""
    lines = clean(decode(data)).split("\n")
    assembly = Assembly()
    gap, block = "\n\n", list[str]()
    marks: list[str] = []

    def flush() -> None:
        assembly.add_block("\n".join(block), gap=gap)
        block.clear()

    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if _is_underlined(line, following):
            flush()
            mark = following[0]
            if mark not in marks:
                marks.append(mark)
            assembly.add_heading(marks.index(mark) + 1, line)
        elif number and _is_underlined(lines[number - 1], line):
            continue
        else:
            block.append(line.rstrip())
    flush()
    first = next((line.strip() for line in lines if line.strip()), "")
    looks_like_title = 0 < len(first) <= _LONGEST_HEADING and not first.endswith((".", ",", ";", ":"))
    return assembly.finish(first if looks_like_title else None, source, MEDIA_TYPE)


def _is_underlined(line: str, following: str) -> bool:
    text = line.strip()
    return (
        0 < len(text) <= _LONGEST_HEADING
        and any(map(str.isalpha, text))
        and _UNDERLINE.fullmatch(following) is not None
        and abs(len(following.rstrip()) - len(line.rstrip())) <= 3
    )
