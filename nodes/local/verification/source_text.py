"""A source, read once for all the claims that cite it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.documents import Source
from domain.text.markers import strip_markers
from domain.text.sentences import split_sentences
from domain.text.terms import STOP_WORDS
from nodes.local.words import read_keys

_NEIGHBOURS = 3
"""Distance, in content words of one sentence, up to which two words stand together."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """The words and sentences of a source."""

    flat: str
    """Title, headings and text, levelled by `flatten`."""
    keys: frozenset[str]
    sentences: Mapping[str, frozenset[str]]
    """The keys of each sentence."""
    places: Mapping[str, Sequence[tuple[int, int]]]
    """Places by content word: number of the sentence, and position among its content words."""

    @classmethod
    def read(cls, source: Source) -> "SourceText":
        """Split and stem a source: its title, headings and text without markers."""
        text = "\n".join([source["title"], *source["heading_path"], strip_markers(source["text"])])
        sentences: dict[str, frozenset[str]] = {}
        places: dict[str, list[tuple[int, int]]] = {}
        for number, (start, end) in enumerate(split_sentences(text)):
            keys = read_keys(text[start:end])
            sentences[text[start:end]] = frozenset(keys)
            for position, key in enumerate(key for key in keys if key not in STOP_WORDS):
                places.setdefault(key, []).append((number, position))
        return cls(flatten(text), frozenset[str]().union(*sentences.values()), sentences, places)

    def find_closeness(self, one: str, other: str) -> float:
        """Return 1 where the two words stand together somewhere, 0.5 where some sentence has both, else 0."""
        gaps = [abs(i - j) for p, i in self.places.get(one, ()) for q, j in self.places.get(other, ()) if p == q]
        return 0.0 if not gaps else 1.0 if min(gaps) <= _NEIGHBOURS else 0.5


def flatten(text: str) -> str:
    """Level case, white space and final stops, for comparing whole sentences."""
    return " ".join(text.lower().split()).rstrip(" .!…")
