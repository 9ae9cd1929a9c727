"""Decoding text files, whether or not they say their encoding."""

import codecs
import re
from functools import lru_cache
from itertools import filterfalse, islice

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_DECLARED = re.compile(
    rb"""\s*<(?:\?xml[^<>]{0,99}\sencoding=|(?s:.{0,4096}?)<meta\b[^<>]{0,200}\bcharset\s*=)\s*["']?\s*([\w.:-]{1,40})""",
    re.IGNORECASE,
)
"""What a page or an XML file says at its beginning."""
_SEVEN_BITS = re.compile(r"iso2022|hz$|utf-7$")
"""Codecs whose bytes are all ASCII, so that they are valid UTF-8, too."""
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"})
"""Codecs of Python's own, which take long for hostile bytes."""
_WIDER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "tis-620": "cp874", "shift_jis": "cp932",
    "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030", "big5": "big5hkscs",
}  # fmt: skip
"""What programs write that declare less, as browsers know (WHATWG, Encoding Standard)."""
_MOST_ROWS = 3
"""Rows of 256 characters of Unicode that a text in UTF-16 is of whose bytes are valid UTF-8. Chosen: an alphabet."""
_MOST_WORDS = 1000
"""Words by which two encodings are compared."""
_WORD = re.compile(rb"[^\s\x80-\xff]*[\x80-\xff]\S*")
_WIDE = rb"[\x81-\x84\x88-\x9f][\x40-\x7e\x80-\xfc]"
_JAPANESE = re.compile(
    rb"(?:[\x00-\x7f\xa1-\xa5]|" + _WIDE + rb"|(?:[\xb6-\xc4\xca-\xce]\xde|[\xca-\xce]\xdf|\xb3\xde|[\xa6\xb1-\xdc])"
    rb"[\xa7-\xae]?[\xaf\xb0\xdd]{0,2})*+"
)
"""Shift-JIS without rare signs, and with marks and small letters of narrow katakana only where they may stand."""
_NARROW = re.compile(_WIDE + rb"|([\xa1-\xdf]++)")
_SHORTEST = 3
"""Bytes of a word in narrow katakana that is no sign such as µ or ². Chosen."""


def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decode by byte order mark, else as UTF-8, else in the encoding that the file or `declared` names, else in the
    likeliest one; what was decoded wrongly and encoded again before ("3â€“1") is set right, line by line.

    UTF-8 comes before what is declared because text in another encoding is hardly ever valid UTF-8, while wrong
    declarations are common; encodings of seven bits are an exception. Undecodable bytes become U+FFFD.
    """
    return _read(data, declared)[0]


def note_guess(data: bytes) -> str:
    """Return a sentence that says which encoding was guessed; empty where none had to be."""
    return _read(data, None)[1]


@lru_cache(maxsize=1)
def _read(data: bytes, declared: str | None) -> tuple[str, str]:
    """Return text and note. The last text is kept, because its format is told from it before it is read."""
    text, note = _decode(data, declared)
    # U+0085 ends a line; it is no ellipsis of another encoding.
    text = text.replace("\u0085", "\n")
    if text.isascii():
        return text, note
    # Imported where a text needs them, which is seldom: the import takes as long as that of a parser.
    from ftfy import fix_encoding
    from ftfy.badness import is_bad

    # What was decoded wrongly is never ASCII. Looking at whole lines would take as long as reading the file.
    if not is_bad(" ".join(dict.fromkeys(filterfalse(str.isascii, text.split(" "))))):
        return text, note
    return "\n".join(line if line.isascii() else fix_encoding(line) for line in text.split("\n")), note


def _decode(data: bytes, declared: str | None) -> tuple[str, str]:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace"), ""
    if utf16 := _find_utf16(data):
        return data.decode(utf16, errors="replace"), ""
    stated = _DECLARED.match(data)
    named = _find_codec(declared or (stated[1].decode() if stated else ""))
    if data.isascii() and (shifted := named if _SEVEN_BITS.match(named) else _find_shifts(data)):
        return data.decode(shifted, errors="replace"), ""
    end = codecs.utf_8_decode(data, "replace")[1]  # before a character that is cut off
    for encoding, held in (("utf-8", data[:end]), (named, data)):
        if encoding:
            text = held.decode(encoding, errors="replace")
            cut = "It is cut off within a character: a part may be missing." if len(held) < len(data) else ""
            bad = text.count("\ufffd") - (data.count(b"\xef\xbf\xbd") if encoding == "utf-8" else 0)
            if (
                b"\0" in data
                and (utf16 := _try_utf16(data))
                and (bad or len({ord(c) >> 8 for c in utf16}) <= _MOST_ROWS)
            ):
                return utf16, ""
            if not bad and not (cut and text.isascii()):
                return text, cut
            if bad < len(text) - len(text.encode("ascii", "ignore")) - bad:  # most of what is not ASCII can be decoded
                text = held.decode(encoding, errors="stray" if encoding == "utf-8" else "replace")
                return text, f"Characters that are not in the encoding of the rest: {bad:,}. {cut}".rstrip()
    lines = data.splitlines(keepends=True)
    other = b"".join(line for line in lines if not _is_utf8(line))
    guess = _guess(other)
    if guess.startswith("windows-125") and not all(line.isascii() for line in lines if _is_utf8(line)):
        text = "".join(line.decode("utf-8" if _is_utf8(line) else guess, "replace") for line in lines)
        return text, f"Some of its lines are in UTF-8; the others were read as {guess}."
    text = data.decode(guess := _guess(data), "replace")
    lost = f"; {bad:,} characters are none of it" if (bad := text.count("\ufffd")) else ""
    return text, f"It does not say its encoding, and was read as {guess}{lost}. If words look wrong, save it as UTF-8."


def _is_utf8(line: bytes) -> bool:
    return "\ufffd" not in line.decode("utf-8", "replace")


def _find_codec(label: str) -> str:
    """Return the codec that a declaration means; empty for one that is none of text or not known."""
    try:
        name = codecs.lookup(label.removeprefix("x-")).name
    except LookupError:
        return ""
    return "" if name in _NO_CHARSETS else _WIDER.get(name, name)


def _find_shifts(data: bytes) -> str:
    """Return the codec of the sequences that shift between alphabets; empty where there are none."""
    if b"\x1b$)C" in data:
        return "iso2022_kr"
    return "iso2022_jp_ext" if b"\x1b$B" in data or b"\x1b$@" in data else ""


def _try_utf16(data: bytes) -> str:
    """Return text of scripts whose letters have no zero byte, and whose blanks and line ends do; empty for others."""
    for encoding in ("utf-16-le", "utf-16-be"):
        text = data.decode(encoding, errors="replace")
        if "\ufffd" not in text and "".join(text.split()).isprintable():
            return text
    return ""


def _read_stray(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("stray", _read_stray)


def _guess(data: bytes) -> str:
    from chardetng_py import detect
    from ftfy.badness import badness

    found: str = detect(data)
    if _is_narrow(data, found):
        return "cp932"
    if found != "windows-1252":
        return found
    # Browsers meet no text of DOS, which consoles still write.
    words = b" ".join(dict.fromkeys(islice(_WORD.findall(data), _MOST_WORDS)))
    read = {encoding: words.decode(encoding, "replace") for encoding in (found, "cp850")}
    return min(read, key=lambda encoding: badness(read[encoding]) + read[encoding].count("\ufffd"))


def _is_narrow(data: bytes, found: str) -> bool:
    """Return True for Japanese in narrow katakana whose words are none in the encoding that was found."""
    words = [*filter(None, _NARROW.findall(data))] if found not in ("Shift_JIS", "cp874") else []
    long = [word for word in words if len(word) >= _SHORTEST]
    if 2 * len(long) <= len(words) or not _JAPANESE.fullmatch(data):
        return False
    read = "".join(word.decode(found, "replace") for word in long)
    if read.isalpha() and read.lower() == read.upper():  # Chinese: only a mark tells
        return any({0xDE, 0xDF} & {*word} for word in long)
    cases = (word.decode(found, "replace") for word in long)
    return any(not each.isalpha() or each not in (each.lower(), each.upper(), each.title()) for each in cases)


def _find_utf16(data: bytes) -> str | None:
    """Detect UTF-16 without a byte order mark: in most scripts every second byte is zero and the others are not."""
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
