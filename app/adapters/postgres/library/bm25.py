"""BM25 on plain PostgreSQL: turn chunks into impacts of terms, and queries into search plans.

A chunk's row holds the ids of its terms, which a GIN index finds, and the impact of each term: the part of the BM25 sum
that depends on the chunk alone. A query is the vector of its terms' inverse document frequencies, and the score is the
inner product of the two.

Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, equation 3.15.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain, combinations

from domain.text.terms import analyse, is_version, weigh_query_terms

K1 = 1.2
B = 0.75
NOMINAL_LENGTH = 100
"""Number of terms of a typical chunk. It is a constant, because a true average would change the impacts of all stored
chunks with every new one. Values of 60 to 200 differ by less than .01 nDCG@10 on five public sets."""

TERM_IDS = 1_000_000_000
"""The largest dimension of a `sparsevec`. In a workspace with 100,000 words, one word in 10,000 shares its id with
another, which costs a little precision for that word."""

CANDIDATES = 5_000
"""Number of chunks up to which a search scores every one that holds a term, and largest number that it scores."""

MOST_CANDIDATES = 10_000
"""The same in a workspace of a million chunks or more: a hundredth of them."""

ENOUGH = 500
"""Number of chunks that the chosen terms should occur in together by chance. Terms of one subject occur together more
often: four times as many are scored. Measured: docs/measurements.md."""

SELECTING = 12
"""Largest number of terms, the rarest ones, that select candidates."""

TOGETHER = 3
"""Largest number of terms that a candidate must hold together. Larger groups hardly select better."""

COMMON_SHARE = 1 / 10
"""Share of the chunks from which a term selects only where rarer ones do not select enough. Its postings are many to
read, and whoever holds it says little."""

LEAST_SHARE = 1 / 3
"""Smallest share of the workspace that a scope counts as when the search is planned. It bounds the number of postings
that are read outside the scope."""


def term_id(workspace_id: str, term: str) -> int:
    """Return the id of a term. It depends on the workspace, so that one workspace's postings do not slow another's."""
    digest = blake2b(f"{workspace_id}\0{term}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) % TERM_IDS


class TermIds(dict[str, tuple[int, ...]]):
    """The ids of the terms in each string between white space, which no word spans. Filled as it is asked."""

    def __init__(self, workspace_id: str) -> None:
        self._workspace_id = workspace_id

    def __missing__(self, string: str) -> tuple[int, ...]:
        self[string] = ids = tuple(term_id(self._workspace_id, term) for term in analyse(string))
        return ids


def weigh_chunk(ids: TermIds, text: str) -> dict[int, float]:
    """Return the impact of each term of a chunk by term id, in ascending order."""
    # Without a loop of Python's own, because a long document has hundreds of thousands of terms.
    counts = Counter(chain.from_iterable(map(ids.__getitem__, text.split())))
    length = K1 * (1 - B + B * counts.total() / NOMINAL_LENGTH)
    impacts = {count: count * (K1 + 1) / (count + length) for count in set(counts.values())}
    return {term: impacts[counts[term]] for term in sorted(counts)}


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A planned search."""

    held: list[tuple[list[int], list[int]]]
    """For one of these pairs, a candidate holds all terms of the first list and one of the second."""
    candidates: int
    """Number of them that are scored at most."""


def weigh_query(workspace_id: str, query: str) -> dict[int, float]:
    """Return how much each term of a query counts, by term id. A version is found with and without a v before it."""
    terms = weigh_query_terms(query)
    terms |= {f"v{term}": weight for term, weight in terms.items() if is_version(term)}
    return {term_id(workspace_id, term): weight for term, weight in terms.items()}


def weigh_terms(terms: Mapping[int, float], chunks: int, frequencies: Mapping[int, int]) -> dict[int, float]:
    """Return the inverse document frequency of each term that any chunk holds, times how much it counts.

    `terms` says how much each counts, `frequencies` gives the number of the workspace's `chunks` that hold each.
    """
    return {
        term: counts * math.log(1 + (chunks - frequency + 0.5) / (frequency + 0.5))
        for term, counts in terms.items()
        if (frequency := frequencies.get(term, 0)) > 0
    }


def plan_search(
    weights: Mapping[int, float], chunks: int, frequencies: Mapping[int, int], share: float = 1.0
) -> LexicalQuery:
    """Plan the search of a workspace of `chunks` chunks for one or more terms of these weights.

    `frequencies` gives the number of chunks that hold each term, `share` the part of the chunks that is in scope. Where
    not all chunks can be scored, groups of terms select them: a chunk is a candidate if it holds all terms of a group.
    The groups with the greatest weights are chosen, until chance alone would bring `ENOUGH` chunks. A chunk that holds
    none of the chosen groups has a smaller sum of weights, and is rarely among the best.
    """
    known = sorted(weights, key=lambda term: frequencies[term])
    candidates = min(max(CANDIDATES, chunks // 100), MOST_CANDIDATES)
    if chunks <= candidates:
        return LexicalQuery([([], known)], candidates)
    # In a narrow scope most chunks lie outside, so that more of them are needed.
    enough = ENOUGH / max(share, LEAST_SHARE)
    chosen: dict[_Group, None] = {}
    expected = 0.0
    for group in _list_groups(known[:SELECTING], weights, chunks, frequencies):
        by_chance = chunks * math.prod(frequencies[term] / chunks for term in group)
        # More than can be scored would come at the cost of the better ones before.
        fits = not chosen or expected + by_chance <= candidates
        if fits and chosen.keys().isdisjoint(_list_parts(group)):
            chosen[group] = None
            expected += by_chance
            if expected >= enough:
                break
    # A part that was chosen later selects all chunks of its group.
    smallest = [group for group in chosen if chosen.keys().isdisjoint(_list_parts(group))]
    pairs: dict[_Group, list[int]] = {}
    for *first, last in smallest:
        pairs.setdefault(tuple(first), []).append(last)
    return LexicalQuery([(list(first), last) for first, last in pairs.items()], candidates)


_Group = tuple[int, ...]
"""Terms that a candidate holds together, the rarest first."""


def _list_groups(
    terms: Sequence[int], weights: Mapping[int, float], chunks: int, frequencies: Mapping[int, int]
) -> list[_Group]:
    """Return all groups of up to `TOGETHER` of the terms: those without a common term first, then by weight."""
    common = {term for term in terms if frequencies[term] > COMMON_SHARE * chunks}
    groups = (group for size in range(1, TOGETHER + 1) for group in combinations(terms, size))
    return sorted(groups, key=lambda group: (not common.isdisjoint(group), -sum(map(weights.__getitem__, group))))


def _list_parts(group: _Group) -> Iterator[_Group]:
    """Yield the smaller groups within a group."""
    return (part for size in range(1, len(group)) for part in combinations(group, size))
