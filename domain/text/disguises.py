"""Undoes what hides an address from whoever looks for one in text that a language model writes.

A client decodes entities, and people copy what they see: `https&#58;//…`, full-width letters, and characters without
width all lead to the plain address.
"""

import html
import re
import unicodedata

_WITHOUT_WIDTH = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff" + "".join(
    map(chr, range(0x2060, 0x2070))
)
_WIDE = "\uff0e\uff0f\uff10-\uff19\uff1a\uff20\uff21-\uff3a\uff41-\uff5a"
"""Full-width letters, digits and signs of an address."""
_DISGUISE = re.compile(
    # Characters without width. Behind other letters than these they join or part, as Persian and emoji need it.
    f"(?<=[!-~{_WIDE}])[{_WITHOUT_WIDTH}]+"
    f"|[{_WIDE}]"
    "|&(?:#[0-9]{1,7}|#x[0-9a-f]{1,6}|colon|sol|period|commat|quest|num|equals|percnt|lowbar);",
    re.IGNORECASE,
)
_UNDECIDED = re.compile("&#?[a-z0-9]{0,7}$", re.IGNORECASE)
_KEPT = "<>&\"'`\\"
"""Decoded, these would mean something else in Markdown or HTML."""


class DisguiseStream:
    """Undoes disguises in streamed text; the output does not depend on how the input is cut."""

    def __init__(self) -> None:
        self._held = ""
        self._last = ""

    def feed(self, text: str) -> str:
        """Return what can be sent now."""
        if not self._held and text.isascii() and "&" not in text:
            self._last = text[-1:] or self._last
            return text
        return self._take(self._held + text, final=False)

    def finish(self) -> str:
        """Return the rest, once no more text comes."""
        return self._take(self._held, final=True)

    def _take(self, text: str, *, final: bool) -> str:
        undecided = None if final else _UNDECIDED.search(text)
        end = undecided.start() if undecided else len(text)
        self._held = text[end:]
        # The character before decides whether one without width stays.
        before = len(self._last)
        text = self._last + text[:end]
        plain, position = "", before
        for found in _DISGUISE.finditer(text, before):
            plain += text[position : found.start()] + _undo(found[0])
            position = found.end()
        if kept := text[position:] or text[before:].rstrip(_WITHOUT_WIDTH):
            self._last = kept[-1]
        return plain + text[position:]


def _undo(disguise: str) -> str:
    if disguise[0] == "&":
        plain = html.unescape(disguise)
        return plain if plain.isascii() and plain.isprintable() and plain not in _KEPT else disguise
    folded = unicodedata.normalize("NFKC", disguise)
    return folded if folded.isascii() else ""
