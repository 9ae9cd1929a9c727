"""The words of a workspace, and which of them a misspelt or unfinished word probably means.

A word one edit away is found by looking up all its variants (Norvig, "How to Write a Spelling Corrector", 2007): a few
hundred look-ups in a b-tree that miss nothing, where trigrams lose short words with an error in the middle. A long word
two edits away is found by its trigrams. Figures: docs/measurements/follow-ups-and-spelling.md.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from string import ascii_lowercase

from app.adapters.postgres import sql
from app.adapters.postgres.lexical import term_id
from app.adapters.postgres.pool import Session
from domain.text.terms import analyse, content_words

SHORTEST, LONGEST = 4, 30
"""Letters of a word that is kept, and that may be completed."""

CORRECTED = 5
"""Letters from which a word may be corrected. Shorter ones have too many neighbours: of those that questions of five
public sets hold, none was corrected to what was meant."""

LONG = 8
"""Letters from which a word may have two errors."""

CORRECTED_WORDS = 5
"""How many words of one query are looked at, at most."""

SIMILAR = 20
"""How many words with like trigrams are compared."""


def list_words(workspace_id: str, texts: Iterable[str]) -> dict[str, int]:
    """The words of the texts that a correction may lead to, each with its term."""
    # Each is looked at once, however often it occurs: no word goes on beyond white space.
    occurring = {word for text in texts for word in text.split()}
    words = {word for word in content_words(" ".join(occurring)) if _is_plain(word)}
    return {word: _term_of(workspace_id, word) for word in words}


async def update_vocabulary(session: Session, words: Mapping[str, int], changed_terms: Counter[int]) -> None:
    """Add `words`, and forget those whose stem no chunk holds any more.

    To be called when `term_frequencies` has been changed, whose row locks keep two changes of a word apart.
    """
    gone = [term for term, change in changed_terms.items() if change < 0]
    if gone:
        await session.execute(sql.FORGET_WORDS, terms=gone)
    if words:
        ordered = sorted(words)
        await session.execute(sql.ADD_WORDS, words=ordered, terms=[words[word] for word in ordered])


async def suggest_words(session: Session, words: Sequence[str], unfinished: str | None) -> dict[str, str]:
    """What each misspelt word of `words` probably means, and what `unfinished`, one of them, begins."""
    doubtful = [word for word in dict.fromkeys(words) if _is_plain(word)]
    if not doubtful:
        return {}
    terms = [_term_of(session.workspace_id, word) for word in doubtful]
    found = {row["word"] for row in await session.fetch(sql.FIND_UNKNOWN_WORDS, words=doubtful, terms=terms)}
    if not found:
        return {}
    # In a thread, because the first time takes a fifth of a second and others wait for the event loop.
    common = await asyncio.to_thread(_read_common_stems)
    # A form of a common English word is right whether or not the documents use it.
    unknown = [word for word in doubtful if word in found and common.isdisjoint(analyse(word))][:CORRECTED_WORDS]
    if not unknown:
        return {}
    prefix = unfinished if unfinished in unknown else None
    rows = await session.fetch(
        sql.FIND_SIMILAR_WORDS,
        prepare=False,
        variants=sorted({variant for word in unknown for variant in _vary(word)}),
        long=[word for word in unknown if len(word) >= LONG],
        similar=SIMILAR,
        prefix=prefix,
        prefix_end=prefix and f"{prefix}\U0010ffff",
    )
    known = {row["word"]: row["chunks"] for row in rows}
    meant = {word: _choose(word, known, unfinished=word == prefix) for word in unknown}
    return {word: chosen for word, chosen in meant.items() if chosen is not None}


def count_edits(one: str, other: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that make one word the other (Damerau, 1964, each
    letter being edited once)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        above, row, oldest = row, [i], before
        for j, opposite in enumerate(other, 1):
            edits = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != opposite))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == opposite:
                edits = min(edits, oldest[j - 2] + 1)
            row.append(edits)
        before = above
    return row[-1]


def _choose(word: str, known: Mapping[str, int], *, unfinished: bool) -> str | None:
    """The nearest of the `known` words, each with the number of chunks that hold it."""
    if unfinished and (completions := [other for other in known if other.startswith(word)]):
        return max(completions, key=lambda other: (known[other], other))
    if len(word) < CORRECTED:
        return None
    # The first letter is seldom wrong (Yannakoudakis & Fawthrop, 1983), and two errors beside it are another word.
    allowed = 2 if len(word) >= LONG else 1
    edits = {other: count_edits(word, other) for other in known if abs(len(other) - len(word)) <= allowed}
    near = [other for other, count in edits.items() if count <= (allowed if other[0] == word[0] else 1)]
    return min(near, key=lambda other: (edits[other], other[0] != word[0], -known[other], other), default=None)


def _vary(word: str) -> set[str]:
    """All that is one edit away."""
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    letters = ascii_lowercase + "".join(set(word) - set(ascii_lowercase))
    return {
        *(head + tail[1:] for head, tail in splits if tail),
        *(head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1),
        *(head + letter + tail[1:] for head, tail in splits if tail for letter in letters),
        *(head + letter + tail for head, tail in splits for letter in letters),
    }


def _is_plain(word: str) -> bool:
    """Letters alone: a code is right as it is."""
    return SHORTEST <= len(word) <= LONGEST and word.isalpha()


def _term_of(workspace_id: str, word: str) -> int:
    [stem] = analyse(word)
    return term_id(workspace_id, stem)


@cache
def _read_common_stems() -> frozenset[str]:
    """From the embedding model's vocabulary, which holds the commonest words of English whole."""
    data = (resources.files("app.adapters") / "data" / "minilm_tokenizer.json").read_text(encoding="utf-8")
    return frozenset(stem for word in json.loads(data)["model"]["vocab"] if word.isalpha() for stem in analyse(word))
