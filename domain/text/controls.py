"""Shows the characters that would do something to a terminal, a log or a list instead of standing there."""

import re

_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
)
_CONTROL_OR_LINE = re.compile(f"{_CONTROL.pattern}|[\r\n]")


def show_controls(text: str, *, lines: bool = False) -> str:
    """Return text from outside with `\\u001b` in place of an escape character, and so on: nothing in it moves the
    cursor, is hidden, or changes the order in which the rest is shown. With `lines`, its lines stay lines."""
    return (_CONTROL if lines else _CONTROL_OR_LINE).sub(lambda found: f"\\u{ord(found[0]):04x}", text)
