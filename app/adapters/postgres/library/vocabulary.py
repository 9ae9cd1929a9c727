"""The vocabulary of a workspace: correct misspelt words and complete unfinished ones.

A word one edit away is found by looking up all variants (Norvig, "How to Write a Spelling Corrector", 2007). These few
hundred look-ups in a b-tree miss nothing, while trigrams miss short words with an error in the middle. A long word two
edits away is found by its trigrams. Figures: docs/measurements.md.
"""

import asyncio
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from string import ascii_lowercase
from typing import LiteralString

from app.adapters.postgres.library.bm25 import term_id
from app.adapters.postgres.pool import Session
from app.adapters.postgres.row_security import READABLE
from domain.text.dictionary import is_word
from domain.text.languages import Language, read_words
from domain.text.terms import analyse, analyse_in, content_words

SHORTEST, LONGEST = 4, 30
"""Smallest and largest number of letters of a word that is stored or completed."""

CORRECTED = 5
"""Smallest number of letters of a word that is corrected to a word of the documents. Shorter words have too many
neighbours: in the questions of five public sets, none of them was corrected to the word that was meant."""

LONG = 8
"""Smallest number of letters of a word that may have two errors."""

CORRECTED_WORDS = 5
"""Largest number of words of one query that are corrected."""

SIMILAR = 20
"""Number of words with similar trigrams that are compared."""

# The rows are inserted in ascending order, so that two concurrent changes cannot deadlock.
_ADD_WORDS: LiteralString = """
    INSERT INTO vocabulary (workspace_id, word, term)
    SELECT %(workspace_id)s, word, term FROM unnest(%(words)s::text[], %(terms)s::int[]) AS n (word, term)
    ON CONFLICT DO NOTHING
"""

_FORGET_WORDS: LiteralString = """
    DELETE FROM vocabulary AS v
    WHERE v.workspace_id = %(workspace_id)s AND v.term = ANY(%(terms)s::int[]) AND NOT EXISTS (
        SELECT FROM term_frequencies AS f
        WHERE f.workspace_id = %(workspace_id)s AND f.term = v.term AND f.chunks > 0
    )
"""

_FIND_UNKNOWN_WORDS: LiteralString = f"""
    SELECT n.word FROM unnest(%(words)s::text[], %(terms)s::int[]) AS n (word, term)
    WHERE NOT EXISTS (
        SELECT FROM term_frequencies AS f
        WHERE f.workspace_id = %(workspace_id)s AND f.term = n.term AND f.chunks > 0 AND {READABLE}
    )
"""

# Finds words that are one of the variants, words that begin with the prefix, and words that share trigrams with a long
# word.
FIND_SIMILAR_WORDS: LiteralString = f"""
    WITH found AS MATERIALIZED (
        SELECT word, term FROM vocabulary
        WHERE workspace_id = %(workspace_id)s AND word = ANY(%(variants)s::text[])
        UNION ALL
        SELECT word, term FROM vocabulary
        WHERE workspace_id = %(workspace_id)s
          AND word BETWEEN %(prefix)s::text AND %(prefix_end)s::text
        UNION ALL
        SELECT near.word, near.term
        FROM unnest(%(long)s::text[]) AS n (word) CROSS JOIN LATERAL (
            SELECT word, term FROM words_of_workspace
            WHERE workspace_id = %(workspace_id)s AND word %% n.word
              AND char_length(word) BETWEEN char_length(n.word) - 2 AND char_length(n.word) + 2
            ORDER BY similarity(word, n.word) DESC, word
            LIMIT %(similar)s
        ) AS near
    )
    SELECT word, max(chunks) AS chunks
    FROM found CROSS JOIN LATERAL (
        SELECT sum(chunks)::int AS chunks FROM term_frequencies AS f
        WHERE f.workspace_id = %(workspace_id)s AND f.term = found.term AND f.chunks > 0 AND {READABLE}
          AND (
              %(document_ids)s::uuid[] IS NULL
              OR EXISTS (
                  SELECT FROM terms_of_workspace AS c
                  WHERE (c.workspace_id = %(workspace_id)s) IS TRUE AND c.terms && ARRAY[found.term]
                    AND (c.document_id = ANY(%(document_ids)s::uuid[])) IS TRUE
              )
          )
        HAVING sum(chunks) > 0
        OFFSET 0
    ) AS known
    GROUP BY word
"""


def list_words(workspace_id: str, strings: Iterable[str]) -> dict[str, int]:
    """Return the words in strings without white space that a correction may suggest, each with the id of its term."""
    words = {word for word in content_words(" ".join(strings)) if _is_plain(word)}
    return {word: _term_of(workspace_id, word) for word in words}


async def update_vocabulary(session: Session, words: Mapping[str, int], fewer: Sequence[int]) -> None:
    """Add `words`, and delete words whose stem is one of the terms that `fewer` chunks hold, and no chunk holds any
    more.

    Call this after `term_frequencies` has been updated in the same transaction: its row locks serialise changes of a
    word.
    """
    if fewer:
        await session.execute(_FORGET_WORDS, terms=list(fewer))
    if words:
        ordered = sorted(words)
        await session.execute(_ADD_WORDS, words=ordered, terms=[words[word] for word in ordered])


async def suggest_words(
    session: Session,
    words: Sequence[str],
    unfinished: str | None,
    language: Language,
    document_ids: str | None = None,
    groups: Sequence[str] | None = None,
) -> dict[str, str]:
    """Return the likely correction of each misspelt word of `words`, and a completion of `unfinished`, which is one of
    them. Words that are correct, or similar to none, are left out. What is suggested stands in one of the documents
    that an asker of these groups may read, or is a function word of the language."""
    doubtful = [word for word in dict.fromkeys(words) if _is_plain(word)]
    if not doubtful:
        return {}
    terms = [_term_of(session.workspace_id, word) for word in doubtful]
    found = {
        row["word"] for row in await session.fetch(_FIND_UNKNOWN_WORDS, words=doubtful, terms=terms, groups=groups)
    }
    if not found:
        return {}
    # A common word of the language is correct even if the documents do not use it. In a thread, because the first call
    # reads the dictionary.
    common = await asyncio.to_thread(lambda: {word for word in found if is_word(word, language)})
    unknown = [word for word in doubtful if word in found - common][:CORRECTED_WORDS]
    if not unknown:
        return {}
    prefix = unfinished if unfinished in unknown else None
    rows = await session.fetch(
        FIND_SIMILAR_WORDS,
        prepare=False,
        variants=sorted({variant for word in unknown for variant in _vary(word)}),
        long=[word for word in unknown if len(word) >= LONG],
        similar=SIMILAR,
        document_ids=document_ids,
        groups=groups,
        prefix=prefix,
        prefix_end=prefix and f"{prefix}\U0010ffff",
    )
    known = {row["word"]: row["chunks"] for row in rows}
    function_words = read_words(language).stop_words
    meant = {word: _choose(word, known, function_words & _vary(word), unfinished=word == prefix) for word in unknown}
    # Another form of the same word corrects nothing: dictionaries lack forms, of compounds above all.
    return {
        word: chosen
        for word, chosen in meant.items()
        if chosen is not None and analyse_in(language, chosen) != analyse_in(language, word)
    }


def count_edits(one: str, other: str) -> int:
    """Return the number of insertions, deletions, replacements and swaps of neighbouring letters between two words
    (Damerau, 1964; each letter is edited at most once)."""
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


def _choose(word: str, known: Mapping[str, int], function_words: Collection[str], *, unfinished: bool) -> str | None:
    """Return the nearest of the `known` words, which are given with the number of chunks that hold each, or of the
    function words, which no index has."""
    if unfinished and (completions := [other for other in known if other.startswith(word)]):
        return max(completions, key=lambda other: (known[other], other))
    others = [*known, *function_words] if len(word) >= CORRECTED else function_words
    # The first letter is seldom wrong (Yannakoudakis & Fawthrop, 1983): where it differs, only one error is allowed.
    allowed = 2 if len(word) >= LONG else 1
    edits = {other: count_edits(word, other) for other in others if abs(len(other) - len(word)) <= allowed}
    near = [other for other, count in edits.items() if count <= (allowed if other[0] == word[0] else 1)]
    letters = set(word)

    def rank(other: str) -> tuple[int, bool, bool, float, str]:
        # Letters are left out, doubled and swapped more often than others are put in their place: "wich" is "which",
        # not "with". Function words are commoner than any word of the documents.
        often = math.inf if other in function_words else known[other]
        return edits[other], other[0] != word[0], not letters <= set(other), -often, other

    return min(near, key=rank, default=None)


def _vary(word: str) -> set[str]:
    """Return all strings that are one edit away from the word."""
    splits = [(word[:place], word[place:]) for place in range(len(word) + 1)]
    letters = ascii_lowercase + "".join(set(word) - set(ascii_lowercase))
    return {
        *(head + tail[1:] for head, tail in splits if tail),
        *(head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1),
        *(head + letter + tail[1:] for head, tail in splits if tail for letter in letters),
        *(head + letter + tail for head, tail in splits for letter in letters),
    }


def _is_plain(word: str) -> bool:
    """Return True for a word of letters only: a code is never corrected."""
    return SHORTEST <= len(word) <= LONGEST and word.isalpha()


def _term_of(workspace_id: str, word: str) -> int:
    [stem] = analyse(word)
    return term_id(workspace_id, stem)
