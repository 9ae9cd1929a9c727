"""Erases a document from plain JSON values: what a run, a state or an event holds of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.history.erasure import ERASED

SHINGLE = 6
"""Words in a row that are taken for a quotation. Fewer would erase common phrases."""

_WORD = re.compile(r"\w+")
_FILE_OR_PHRASE = re.compile(r".*\w[\s./]+\w.*", re.DOTALL)
"""A name of a document that is erased within other text. Any other, such as Debian, may be an ordinary word."""
_SHORTEST_CLAIM = 20
_TEXTS = ("text", "title", "source", "chunk_id", "document_id")


class Redactor:
    """Replaces what a document said by `ERASED`."""

    def __init__(self, ids: Sequence[str], titles: Iterable[str], texts: Iterable[str], answers: Iterable[str]) -> None:
        """`ids` are the document's id and paths; `answers` were written from it, so they go as a whole."""
        self._document_id = ids[0]
        self._titles = {title for title in titles if title}
        names = sorted({*ids[1:], *self._titles}, key=len, reverse=True)
        words = (rf"(?<!\w){re.escape(name)}(?!\w)" for name in names if _FILE_OR_PHRASE.fullmatch(name))
        self._names = re.compile("|".join([re.escape(ids[0]), *words]))
        self._shingles = {shingle for text in texts for shingle in _list_shingles(text)}
        self._answers = {answer for answer in answers if answer.strip()}

    def redact(self, value: Any) -> Any:
        """Return the value without the document; the same object where it does not hold it."""
        match value:
            case str():
                return self._redact_text(value)
            case Mapping() if value.get("document_id") == self._document_id:
                erased = {name: ERASED for name in _TEXTS if name in value}
                return {**value, **erased, **({"heading_path": []} if "heading_path" in value else {})}
            case Mapping():
                changed = {name: self.redact(each) for name, each in value.items()}
                return changed if any(changed[name] is not each for name, each in value.items()) else value
            case list() | tuple():
                items = [self.redact(each) for each in value]
                same = all(new is old for new, old in zip(items, value, strict=True))
                return value if same else items
        return value

    def _redact_text(self, text: str) -> str:
        if not text:
            return text
        if text in self._answers or any(shingle in self._shingles for shingle in _list_shingles(text)):
            return ERASED
        if len(text) >= _SHORTEST_CLAIM and any(text in answer for answer in self._answers):
            return ERASED
        if text in self._titles:
            return ERASED
        replaced = self._names.sub(ERASED, text)
        return replaced if replaced != text else text


def _list_shingles(text: str) -> Iterable[tuple[str, ...]]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return (tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1))
