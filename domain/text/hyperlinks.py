"""Removes images and unknown addresses from text that a language model writes.

A page that shows an answer as Markdown loads its images unasked. With an image's address, a document that commands the
model could send out the conversation. So no image passes, and no address that is not in the sources or in the question,
letter for letter.
"""

import re
from collections.abc import Sequence

REMOVED = "(link removed)"

_LONGEST = 2000
"""Limit, in characters, held back while they may become a link."""

_BEFORE = 2
"""Characters that were sent and stay in the buffer, because they decide whether "!" begins an image."""

_STARTS = ("http://", "https://", "ftp://", "www.")
_BARE = r"(?:(?<![a-z])(?:https?://|ftp://|www\.)|(?<=[=(\"'])//)"
"""Whole addresses, and those without a scheme where HTML or Markdown would take them for one: `src=//host/`."""
_ADDRESS = r"[^\s<>\"'`|\\^{}]"
_MARKS = r"(?:(?<![\w!])|(?<=\w!))!+"
"""Exclamation marks that may begin an image: all of a run, but for one that ends a word. A run is read from its start
alone, so that a long one takes linear time."""
_LINK = re.compile(
    rf"(?P<image>{_MARKS}(?=\[))"
    rf"|\]\([ \t]*(?P<target>(?:[^()\n]|\([^()\n]*\))*)\)"
    rf"|(?P<bare>{_BARE}{_ADDRESS}+)",
    re.IGNORECASE,
)
_PREFIXES = sorted({start[:length] for start in _STARTS for length in range(1, len(start) + 1)}, key=len, reverse=True)
_UNDECIDED = re.compile(
    rf"(?:{_MARKS}|\](?:\((?:[^()\n]|\([^()\n]*\))*(?:\([^()\n]*)?)?"
    rf"|(?<![a-z])(?:{'|'.join(map(re.escape, _PREFIXES))})"
    rf"|{_BARE}{_ADDRESS}*|(?<=[=(\"'])/)$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?:[^!\[\]()/=\"':.]*[^!\[\]()/=\"':.a-z])?(?:[a-egi-vx-z][a-z]*)?", re.IGNORECASE)
"""Text that is not part of a link and cannot begin one at its end: nearly every token."""
_AFTER = ".,;:!?*_)]}'\""
"""Characters behind an address that are not part of it."""


def strip_links(text: str, texts: Sequence[str]) -> str:
    """Return `text` without images, and without addresses that none of `texts` holds."""
    links = LinkStream(texts)
    return links.feed(text) + links.finish()


class LinkStream:
    """Removes images, and addresses that none of `texts` holds, from streamed text.

    Text is held back only while it may be part of a link, so the output does not depend on how the input is cut.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._buffer = ""
        self._start = 0
        self.removed = False
        """True once an address was removed."""

    def feed(self, text: str) -> str:
        """Return what can be sent now."""
        if self._start == len(self._buffer) and _PLAIN.fullmatch(text):
            self._buffer = (self._buffer + text)[-_BEFORE:]
            self._start = len(self._buffer)
            return text
        return self._take(text, final=False)

    def finish(self) -> str:
        """Return the rest, once no more text comes."""
        return self._take("", final=True)

    def _take(self, text: str, *, final: bool) -> str:
        buffer = self._buffer[max(self._start - _BEFORE, 0) :] + text
        position = self._start = min(self._start, _BEFORE)
        recent = max(position, len(buffer) - _LONGEST)
        if not final and buffer.endswith("!!") and not _UNDECIDED.search(buffer, recent):
            # More marks than are held back. Nobody needs as many, and they may begin an image all the same.
            buffer = buffer.rstrip("!")
        self._buffer = buffer
        out = ""
        while True:
            link = _LINK.search(buffer, position)
            undecided = None if final else _UNDECIDED.search(buffer, max(position, recent))
            if undecided and (link is None or undecided.start() <= link.start()):
                self._start = undecided.start()
                return out + buffer[position : self._start]
            if link is None:
                self._start = len(buffer)
                return out + buffer[position:]
            out += buffer[position : link.start()] + self._replace(link)
            position = link.end()

    def _replace(self, link: re.Match[str]) -> str:
        if link["image"]:
            return ""
        if link["bare"] is not None:
            address = link["bare"].rstrip(_AFTER)
            if self._is_held(address):
                return link[0]
            self.removed = True
            return REMOVED + link["bare"][len(address) :]
        address = (link["target"].split() or [""])[0].strip("<>")
        if not address or self._is_held(address):
            return link[0]
        self.removed = True
        return "]"

    def _is_held(self, address: str) -> bool:
        whole = re.compile(rf"{re.escape(address)}(?=[{re.escape(_AFTER)}]*(?:$|(?!{_ADDRESS})))")
        return any(whole.search(text) for text in self._texts)
