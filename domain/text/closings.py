"""Takes the list of sources off the end of an answer that a model writes itself: the sources are those cited."""

import re
from functools import cache

from domain.text.blocks import find_item
from domain.text.languages import LANGUAGES, read_file

_LONGEST = 4000
_STATES = re.compile(r"[^\W\d].*(?:\][\s.]*|[.!?…]\s*)", re.DOTALL)
"""An item that ends with a marker, or as a sentence does."""


@cache
def _list_names() -> frozenset[str]:
    return frozenset(name for language in LANGUAGES for name in read_file(language, "reading")["claims"]["closings"])


def _is_entry(line: str) -> bool:
    begin = find_item(line)
    is_item = bool(begin) or line.lstrip().startswith("[")
    return not line.strip() or (is_item and not _STATES.match(line[begin:].strip()))


class ClosingStream:
    """Passes streamed text on without a heading such as "Sources" with nothing below it but names. Such a list waits
    for the end; one with a statement, or at the beginning, or after a question for sources stays."""

    def __init__(self, question: str) -> None:
        asked = question.casefold()
        self._names = () if any(name.rstrip("s") in asked for name in _list_names()) else tuple(_list_names())
        self._held = ""
        self._begun = self._said = False
        """True in a line that begun to go out, and once there is text above."""

    def feed(self, text: str, *, final: bool = False) -> str:
        """Return what can be sent now; all that is left if `final`."""
        self._held += text
        out = ""
        while self._held:
            line, newline, rest = self._held.partition("\n")
            name = line.strip(" \t#*_:").casefold()
            if not self._said or self._begun or not (name in self._names if newline else self._may_open(name)):
                pass
            elif not newline and not final:
                return out
            elif newline and len(rest) < _LONGEST:
                lines = rest.split("\n")
                if all(map(_is_entry, lines if final else lines[:-1])):
                    if not final:
                        return out
                    self._held = "" if rest.strip() else self._held
                    return out + self._held
            out += line + newline
            self._begun = not newline
            self._said = self._said or bool(line.strip())
            self._held = rest
        return out

    def _may_open(self, name: str) -> bool:
        return any(each.startswith(name) for each in self._names)
