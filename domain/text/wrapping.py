"""Takes the fence off a text that stands whole in a block of Markdown, as some models write their answers."""

import re

_OPENS = re.compile(r"\s*(`{3,}|~{3,})[ \t]*(?:markdown|md|te?xt|plaintext)[ \t\r]*\n", re.IGNORECASE)
_MAY_OPEN = re.compile(r"\s*(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[ \t]*[a-z]{0,9}[ \t\r]*)", re.IGNORECASE)
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t\r]*(\S*)")


class UnwrapStream:
    """Passes streamed text on without such a fence. Only its first line, and later ones that may be a fence, wait."""

    def __init__(self) -> None:
        self._held = ""
        self._fence: str | None = None
        """The fence around the text; empty where there is none, or none any more, None while nobody knows."""
        self._is_inner = self._within = False
        """True in a block within it, and in a line that begun to go out."""

    def feed(self, text: str) -> str:
        """Return what can be sent now."""
        self._held += text
        return self._take(final=False)

    def finish(self) -> str:
        """Return the rest, once no more text comes."""
        return self._take(final=True)

    def _take(self, *, final: bool) -> str:
        if self._fence is None:
            if not (opens := _OPENS.match(self._held)) and not final and _MAY_OPEN.fullmatch(self._held):
                return ""
            self._fence = opens[1] if opens else ""
            self._held = self._held[opens.end() :] if opens else self._held
        out = ""
        while self._fence and self._held:
            line, newline, rest = self._held.partition("\n")
            if not newline and not final and not line.strip(" \t`~"):
                return out
            if not newline and not final:
                self._within = self._within or not _FENCE.match(line)
                break
            if not self._within and (fence := _FENCE.fullmatch(line)):
                if not (self._is_inner or fence[2]) and fence[1].startswith(self._fence):
                    self._fence, line, newline = "", "", ""
                self._is_inner = bool(fence[2])
            out, self._held, self._within = out + line + newline, rest, False
        if not self._fence or self._within:
            out, self._held = out + self._held, ""
        return out
