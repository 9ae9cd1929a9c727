"""BM25 on plain PostgreSQL: turn chunks into impacts of terms, and queries into search plans.

A chunk's row holds the ids of its terms, which a GIN index finds, and the impact of each term: the part of the BM25 sum
that depends on the chunk alone. A query is the vector of its terms' inverse document frequencies, and the score is the
inner product of the two.

Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, equation 3.15.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import repeat

from pgvector.psycopg import SparseVector  # type: ignore[import-untyped]

from domain.text.terms import analyse, weigh_query_terms

K1 = 1.2
B = 0.75
NOMINAL_LENGTH = 100
"""Number of terms of a typical chunk. It is a constant, because a true average would change the impacts of all stored
chunks with every new one. Values of 60 to 200 differ by less than .01 nDCG@10 on five public sets."""

TERM_IDS = 1_000_000_000
"""The largest dimension of a `sparsevec`. In a workspace with 100,000 words, one word in 10,000 shares its id with
another, which costs a little precision for that word."""

CANDIDATES = 5_000
"""Largest number of chunks that a search scores. Fewer lose quality on mixed corpora; more cost time."""

MOST_CANDIDATES = 10_000
"""The same in a workspace of a million chunks or more: a hundredth of them, because terms that select well are commoner
there."""

COMMON_SHARE = 1 / 10
"""Share of the chunks from which a term no longer selects any, unless there is no rarer one. Its postings are many to
read, and whoever holds it says little."""

LEAST_SHARE = 1 / 3
"""Smallest share of the workspace that a scope counts as when the search is planned. It bounds the number of postings
that are read outside the scope."""


@lru_cache(maxsize=50_000)
def term_id(workspace_id: str, term: str) -> int:
    """Return the id of a term. It depends on the workspace, so that one workspace's postings do not slow another's."""
    digest = blake2b(f"{workspace_id}\0{term}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) % TERM_IDS


def weigh_chunk(workspace_id: str, text: str) -> dict[int, float]:
    """Return the impact of each term of a chunk by term id."""
    counts = Counter(analyse(text))
    length = K1 * (1 - B + B * counts.total() / NOMINAL_LENGTH)
    # Without a loop of Python's own, because a long document has hundreds of thousands of terms.
    impacts = {count: count * (K1 + 1) / (count + length) for count in set(counts.values())}
    ids = map(term_id, repeat(workspace_id), counts)
    return dict(zip(ids, map(impacts.__getitem__, counts.values()), strict=True))


@dataclass(frozen=True, slots=True)
class LexicalQuery:
    """A planned search. A candidate holds one of the terms `rare` and, unless it is None, one of `support`. Where these
    are fewer than `candidates`, chunks that hold the term `next` and one of `others` are added."""

    rare: list[int]
    support: list[int] | None
    next: list[int] | None
    others: list[int] | None
    candidates: int
    weights: SparseVector


def weigh_query(workspace_id: str, query: str) -> dict[int, float]:
    """Return how much each term of a query counts, by term id."""
    return {term_id(workspace_id, term): weight for term, weight in weigh_query_terms(query).items()}


def plan_search(
    terms: Mapping[int, float], chunks: int, frequencies: dict[int, int], share: float = 1.0
) -> LexicalQuery | None:
    """Plan the search of a workspace of `chunks` chunks for `terms`. Returns None if no chunk holds any of them.

    `terms` says how much each counts, `frequencies` gives the number of chunks that hold each, `share` the part of the
    chunks that is in scope. The rarest terms whose postings together stay within the number of candidates select them:
    a chunk that holds only more common terms scores lower, unless it holds several. Those with the next term and
    another one are therefore added while there is room. If even the rarest term is too common, a candidate must hold
    another term as well.
    """
    known = sorted((term for term in terms if frequencies.get(term, 0) > 0), key=lambda term: frequencies[term])
    if not known:
        return None
    weights = {
        term: terms[term] * math.log(1 + (chunks - frequencies[term] + 0.5) / (frequencies[term] + 0.5))
        for term in known
    }
    # In a narrow scope most postings lie outside, so more of them may be read.
    candidates = min(max(CANDIDATES, chunks // 100), MOST_CANDIDATES)
    budget = candidates / max(share, LEAST_SHARE)
    rare: list[int] = []
    postings = 0
    for term in known:
        postings += frequencies[term]
        if rare and postings > budget and chunks > candidates:
            break
        rare.append(term)
    further = known[len(rare) :]
    too_common = len(known) > 1 and frequencies[known[0]] > budget
    fills_up = len(further) > 1 and not too_common
    return LexicalQuery(
        rare,
        support=known[1:] if too_common else None,
        next=further[:1] if fills_up else None,
        others=_leave_out_common(further[1:], chunks, frequencies) if fills_up else None,
        candidates=candidates,
        weights=SparseVector(weights, TERM_IDS),
    )


def _leave_out_common(terms: list[int], chunks: int, frequencies: dict[int, int]) -> list[int]:
    """Return the terms, rarest first, without those that too many chunks hold. The first always stays."""
    return terms[:1] + [term for term in terms[1:] if frequencies[term] <= COMMON_SHARE * chunks]
