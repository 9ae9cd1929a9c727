"""Makes text from outside storable: Postgres holds no NUL, and UTF-8 no half of a surrogate pair.

Programs that cut text at a number of characters send halves; broken documents and small models send both."""

import re

_ESCAPE = re.compile(
    r"((?:\\\\)++|\\u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2})|\\u(?:0000|[Dd][89A-Fa-f][0-9A-Fa-f]{2})"
)
"""Escapes in JSON. The group holds what stays: backslashes, which may stand before a u, and whole pairs."""


def make_storable(text: str) -> str:
    """Return `text` with each surrogate pair as the one character that it stands for, and U+FFFD for each lone half and
    each NUL."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


def make_json_storable(written: str) -> str:
    """Return JSON whose texts are storable."""
    return _ESCAPE.sub(lambda escape: escape[1] or r"\ufffd", written) if "\\u" in written else written


def replace_surrogates(text: str) -> str:
    """Return `text` with a question mark for each half of a surrogate pair, which tokenizers and servers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")
