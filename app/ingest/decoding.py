"""Decoding text files of unknown encoding."""

from functools import lru_cache
from itertools import filterfalse

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


@lru_cache(maxsize=1)
def decode(data: bytes, *, declared: str | None = None) -> str:
    """Decode by byte order mark, else as UTF-8, else in the declared encoding, else in the likeliest one; what was
    decoded wrongly and encoded again before ("3â€“1") is set right, line by line.

    UTF-8 comes before the declared encoding because text in another encoding is hardly ever valid UTF-8, while wrong
    declarations are common. Undecodable bytes become U+FFFD. The last text is kept, because its format is told from it
    before it is read.
    """
    text = _decode(data, declared)
    # U+0085 ends a line; it is no ellipsis of another encoding.
    text = text.replace("\u0085", "\n")
    if text.isascii():
        return text
    # Imported where a text needs them, which is seldom: the import takes as long as that of a parser.
    from ftfy import fix_encoding
    from ftfy.badness import is_bad

    # What was decoded wrongly is never ASCII. Looking at whole lines would take as long as reading the file.
    if not is_bad(" ".join(dict.fromkeys(filterfalse(str.isascii, text.split(" "))))):
        return text
    return "\n".join(line if line.isascii() else fix_encoding(line) for line in text.split("\n"))


def _decode(data: bytes, declared: str | None) -> str:
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
    from charset_normalizer import from_bytes

    matches = from_bytes(data)
    best = matches.best()
    if best is None:
        return "cp1252"
    # A short text fits several code pages equally well; the Western one is by far the commonest.
    tied = (match.encoding for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence))
    return "cp1252" if "cp1252" in tied else best.encoding


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
