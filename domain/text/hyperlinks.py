"""Removes images and unknown addresses from text that a language model writes.

A page that shows an answer as Markdown loads its images unasked. With an image's address, a document that commands the
model could send out the conversation. So no image passes, and no address that is not in the sources or in the question,
letter for letter. Nor does a link whose scheme is not in a short list, wherever it stands: what a document links to may
be a script, and a client may follow it.
"""

import re
from collections.abc import Sequence
from html import unescape

REMOVED = "(link removed)"

_LONGEST = 2000
"""Limit, in characters, held back while they may become a link."""

_BEFORE = 100
"""Characters that were sent and stay in the buffer: they decide whether "!" begins an image, and may begin a word that
turns out to be an address."""

SCHEMES = frozenset({"", "http", "https", "mailto"})
"""The schemes of links that pass; the empty one stands for addresses without a scheme."""
_SCRIPTS = frozenset({"javascript", "vbscript", "data"})
"""Schemes that do not pass as plain text either. Others name servers and files, of which technical texts tell."""
_OF_WEB = frozenset({"http", "https", "ftp", "ws", "wss", "file", "mailto"})
"""Schemes that a browser follows however many slashes or backslashes stand behind them (https://url.spec.whatwg.org),
and that of mail."""
_STARTS = ("http://", "https://", "ftp://", "www.")
_ADDRESS = r"[^\s<>\"'`|\\^{}]"
_BARE = (
    r"(?:(?<![a-z])(?:(?:https?|ftp|wss?|file):[/\\]+|www\.)|(?<=<)(?:https?|ftp|wss?|file):(?=\S)"
    r"|(?<![a-z0-9+.-])(?:[a-z][a-z0-9+.-]{1,15}://|(?:mailto|xmpp|javascript|vbscript):(?=\S)|data:(?=[\w.+-]*[/;,]))"
    # Without a scheme: a client completes `src=//host/`, and `host.example/path`, an IP address with a path and a mail
    # address where it makes links of plain text. The length of a network (10.0.0.0/8) is no path.
    r"|(?<![\w:/])//(?=[\w\[])"
    r"|(?<![\w@./-])(?:[\w-]{1,63}\.){1,6}[^\W\d_]{2,24}(?::\d{1,5})?[/?#](?=[\w%=&~+-])"
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?[/?#](?!\d{1,2}(?!\w))(?=[\w%=&~+-])"
    r"|(?<!\w)\w[\w.+-]{0,63}@(?:[\w-]{1,63}\.){1,6}[\w-]*\w)"
)
"""The beginnings of addresses that a client makes a link of, or that somebody may copy. Browsers read `http:/host` and
`http:\\host` as `http://host`, and `<http:host>`, too."""
_MARKS = r"(?:(?<![\w!])|(?<=\w!))!+"
"""Exclamation marks that may begin an image: all of a run, but for one that ends a word. A run is read from its start
alone, so that a long one takes linear time."""
_BLANK = r"[ \t]*+\n?[ \t]*+"
_TARGET = rf"(?:<[^<>\n]{{0,{_LONGEST}}}>?|[^\s<]\S{{0,{_LONGEST}}})"
_LINK = re.compile(
    rf"(?P<image>{_MARKS}(?=\[))"
    rf"|\]\({_BLANK}(?P<target>(?:[^()\n]|\([^()\n]*\))*+)\)"
    # Of a definition, or of a link whose end is not found so: only this decides, as titles may follow in any form.
    rf"|\](?P<opening>[(:]{_BLANK})(?P<other>{_TARGET})"
    rf"|(?P<bare>{_BARE}{_ADDRESS}*)",
    re.IGNORECASE,
)
_PREFIXES = sorted({start[:length] for start in _STARTS for length in range(1, len(start) + 1)}, key=len, reverse=True)
_UNDECIDED = re.compile(
    rf"(?:{_MARKS}|\](?:[(:]{_BLANK}{_TARGET}?|\({_BLANK}(?:[^()\n]|\([^()\n]*\))*+(?:\([^()\n]*)?)?"
    rf"|(?<![a-z])(?:{'|'.join(map(re.escape, _PREFIXES))})"
    rf"|(?<![\w:/])//?"
    # The rest of a word from its first sign of an address.
    rf"|(?<=[\w+-])[.:@]{_ADDRESS}*"
    rf"|{_BARE}{_ADDRESS}*)$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"(?:[^!\[\]()/=\"':.@]*[^!\[\]()/=\"':.@a-z])?(?:[a-egi-vx-z][a-z]*)?", re.IGNORECASE)
"""Text that is not part of a link and cannot begin one at its end: nearly every token."""
_TITLE = re.compile("[\"'(]")
_SCHEME = re.compile(r"([^/?#:]*):")
_SIGN = re.compile(r"[.:@/]")
_WORD_END = re.compile(r"\S{0,100}\Z")
_PUNCTUATION = re.compile(
    "[\u00ab\u00bb\u2010-\u2027\u2030-\u205e\u3000-\u303f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)
"""Signs that no address has as they are: “ behind one, and 。 between it and the next words."""
_PICTURE = re.compile(r"\w!\[")
_GAP = re.compile(r"\n[ \t>]*\n")
_AFTER = ".,;:!?*_)]}'\""
"""Characters behind an address that are not part of it."""


def strip_links(text: str, texts: Sequence[str]) -> str:
    """Return `text` without images, and without addresses that none of `texts` holds."""
    links = LinkStream(texts)
    return links.feed(text) + links.finish()


def strip_images(text: str) -> str:
    """Return what a document says, such as its title, without images, which clients load unasked, and without links of
    unknown schemes. Its other addresses stay."""
    return strip_links(text, [text])


class LinkStream:
    """Removes images, and addresses that none of `texts` holds, from streamed text.

    Text is held back only while it may be part of a link, so the output does not depend on how the input is cut.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._held: dict[str, bool] = {}
        self._buffer = ""
        self._start = 0
        self._is_pictured = False
        """True where an exclamation mark that ends a word may begin an image in this paragraph."""
        self.removed = False
        """True once an address was removed."""

    def feed(self, text: str) -> str:
        """Return what can be sent now."""
        if self._start == len(self._buffer) and _PLAIN.fullmatch(text):
            self._buffer = self._buffer + text
            self._note_picture(self._buffer)
            self._buffer = self._buffer[-_BEFORE:]
            self._start = len(self._buffer)
            return text
        return self._take(text, final=False)

    def finish(self) -> str:
        """Return the rest, once no more text comes."""
        return self._take("", final=True)

    def _take(self, text: str, *, final: bool) -> str:
        self._note_picture(self._buffer[: self._start])
        buffer = self._buffer[max(self._start - _BEFORE, 0) :] + text
        position = self._start = min(self._start, _BEFORE)
        recent = max(position, len(buffer) - _LONGEST)
        if not final and buffer.endswith("!!") and not _UNDECIDED.search(buffer, recent):
            # More marks than are held back. Nobody needs as many, and they may begin an image all the same.
            buffer = buffer.rstrip("!")
        self._buffer = buffer
        out = ""
        # What was sent of a word may turn out to begin an address.
        known = position - len(_WORD_END.findall(buffer[:position])[0])
        undecided = None if final else _UNDECIDED.search(buffer, recent)
        while True:
            link = _LINK.search(buffer, known)
            while link and link.end() <= position:
                link = _LINK.search(buffer, link.end())
            if undecided and undecided.start() < position:
                undecided = _UNDECIDED.search(buffer, position)
            if undecided and (link is None or undecided.start() <= _find_start(link)):
                self._start = undecided.start()
                return out + buffer[position : self._start]
            if link is None:
                self._start = len(buffer)
                return out + buffer[position:]
            if link["other"] is not None and not self._leads_away(link):
                # What stands in it may still be an address. No definition passes as one, which an image may name.
                opening = link.start("opening")
                if link["opening"][0] == ":" and self._leads(link) and opening >= position:
                    out += f"{buffer[position:opening]} "
                    position = opening
                known = link.start("other")
                out += buffer[position:known]
                position = max(position, known)
                continue
            start, end = _find_start(link), _find_end(link)
            out += buffer[position:start] + self._replace(link, start, end)
            position = known = end

    def _replace(self, link: re.Match[str], start: int, end: int) -> str:
        if link["image"]:
            return ""
        if link["other"] is not None:
            self.removed = True
            return f"]{link['opening']}{REMOVED}"
        if link["bare"] is not None:
            bare = link.string[link.start() : end]
            address = bare.rstrip(_AFTER)
            scheme = _find_scheme(address)
            is_link = link.string[link.start() - 1 : link.start()] == "<"
            if self._is_held(address) and not (is_link and scheme not in SCHEMES) and scheme not in _SCRIPTS:
                # Clients read on at such a sign.
                is_followed = _PUNCTUATION.sub("", link.string[end : link.end()]).strip(_AFTER) != ""
                return link.string[start:end] + " " * is_followed
            self.removed = True
            return REMOVED + bare[len(address) :]
        address = (link["target"].split() or [""])[0].strip("<>")
        is_image = self._find_picture(link.string[: link.start()])
        if not address or (self._is_held(address) and _find_scheme(link["target"]) in SCHEMES and not is_image):
            return link[0]
        self.removed = True
        return "]"

    def _note_picture(self, sent: str) -> None:
        if self._is_pictured or "![" in sent:
            self._is_pictured = self._find_picture(sent)

    def _find_picture(self, text: str) -> bool:
        """Return True where an image may have begun in the last paragraph of the text: `word![a](address)` is one, and
        `vec![1]` is none."""
        begun = max((found.end() for found in _PICTURE.finditer(text)), default=-1)
        gap = max((found.end() for found in _GAP.finditer(text)), default=-1)
        return self._is_pictured if begun == gap == -1 else begun > gap

    def _leads_away(self, link: re.Match[str]) -> bool:
        """Return True where a browser goes elsewhere, and no text holds the target or it is a script."""
        address = link["other"].strip("<>").rstrip(_AFTER)
        return self._leads(link) and (_find_scheme(address[:_BEFORE]) in _SCRIPTS or not self._is_held(address))

    @staticmethod
    def _leads(link: re.Match[str]) -> bool:
        """Return True where a browser goes elsewhere: by a scheme, or from the root. The beginning may be filled up
        with characters that browsers leave out."""
        begun = link["other"].strip("<>").rstrip(_AFTER)[:_BEFORE]
        is_scheme = _find_scheme(begun) in _OF_WEB | _SCRIPTS
        return is_scheme or unescape(begun).lstrip()[:1] in ("/", "\\") or begun.count("&") > 4

    def _is_held(self, address: str) -> bool:
        if address not in self._held:
            ends = rf"[{re.escape(_AFTER)}]*(?:$|(?!{_ADDRESS})|{_PUNCTUATION.pattern})"
            whole = re.compile(rf"{re.escape(address)}(?={ends})")
            self._held[address] = any(address in text and whole.search(text) for text in self._texts)
        return self._held[address]


def _find_scheme(address: str) -> str:
    """Return the scheme of an address, which a title may follow, as a browser reads it; empty where it has none."""
    bare = _TITLE.split(unescape(address), maxsplit=1)[0]
    plain = "".join(character for character in bare if character.isprintable() and character not in " \\<>")
    scheme = _SCHEME.match(plain)
    return scheme[1].lower() if scheme else ""


def _find_start(link: re.Match[str]) -> int:
    """Return where the link is taken out: an address without a known scheme begins like any word, and may have been
    sent up to its first sign."""
    if link["bare"] is None or link["bare"].lower().startswith(_STARTS):
        return link.start()
    sign = _SIGN.search(link.string, link.start(), link.end())
    return sign.start() if sign else link.start()


def _find_end(link: re.Match[str]) -> int:
    """Return where an address ends: before a sign that none has."""
    sign = _PUNCTUATION.search(link["bare"] or "")
    return link.start() + sign.start() if sign else link.end()
