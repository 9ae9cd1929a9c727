"""A source, read once for all the claims that cite it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.documents import Source
from domain.text.markers import strip_markers
from domain.text.sentences import split_sentences
from domain.text.terms import STOP_WORDS
from nodes.local.verification.numbers import Number, read_numbers
from nodes.local.verification.words import WORD, flatten, stem_of

_NEIGHBOURS = 3
"""Distance, in content words of one sentence, up to which two words stand together."""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A sentence of a source, and its stems."""

    text: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class SourceText:
    """The words, numbers and sentences of a source."""

    flat: str
    """Title, headings and text, levelled by `flatten`."""
    keys: frozenset[str]
    numbers: Sequence[Number]
    passages: Sequence[_Passage]
    places: Mapping[str, Sequence[tuple[int, int]]]
    """Places by content word: number of the passage, and position among its content words."""

    @classmethod
    def read(cls, source: Source) -> "SourceText":
        """Split and stem a source: its title, headings and text without markers."""
        text = "\n".join([source["title"], *source["heading_path"], strip_markers(source["text"])])
        passages: list[_Passage] = []
        places: dict[str, list[tuple[int, int]]] = {}
        for number, (start, end) in enumerate(split_sentences(text)):
            words = [stem_of(word) for word in WORD.findall(text[start:end])]
            passages.append(_Passage(text[start:end], frozenset(words)))
            for position, word in enumerate(word for word in words if word not in STOP_WORDS):
                places.setdefault(word, []).append((number, position))
        keys = frozenset(key for passage in passages for key in passage.keys)
        return cls(flatten(text), keys, tuple(read_numbers(text)), passages, places)

    def find_closeness(self, one: str, other: str) -> float:
        """Return 1 where the two words stand together somewhere, 0.5 where some sentence has both, else 0."""
        gaps = [abs(i - j) for p, i in self.places.get(one, ()) for q, j in self.places.get(other, ()) if p == q]
        return 0.0 if not gaps else 1.0 if min(gaps) <= _NEIGHBOURS else 0.5
