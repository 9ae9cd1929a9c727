"""Query expansion by a language model: more queries, or a hypothetical answer to search for.

A hypothetical answer (HyDE: Gao et al., "Precise Zero-Shot Dense Retrieval without Relevance Labels", 2022) is often
wrong. But it is worded like the passage that answers, so its embedding is nearer to that passage than the question's.
"""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from domain.documents import Candidate
from domain.ports.models import ChatModel
from domain.profile import RetrievalKnobs
from domain.text.question import choose_untried
from nodes.context import Context
from nodes.prompting.asking import ask_or_none
from nodes.prompting.messages import ask, instruct

QUERIES_PROMPT = """You help to search a team's documents. Write {count} search queries that may find what answers the
question. Let each look at it differently: other words for the same thing, abbreviations spelt out, or one part of a
question that has several. Keep names and numbers."""

HYPOTHESIS_PROMPT = """You help to search a team's documents. Write the passage that a document might hold to answer
the question: two or three sentences, in the style of such a document. It is only compared with real passages and nobody
will read it, so make up what you do not know."""


class Queries(BaseModel):
    """The model's queries."""

    queries: list[str] = Field(min_length=1, max_length=20)


class Hypothesis(BaseModel):
    """The model's hypothetical answer."""

    passage: str = Field(min_length=1, max_length=4000)


async def expand(query: str, knobs: RetrievalKnobs, context: Context) -> list[str]:
    """Return the texts to search for besides `query`, as the profile chooses. Without a model: none, and a warning."""
    if knobs.expansion == "none":
        return []
    if (model := context.models.small) is None:
        context.ledger.warn("Searched for the question alone: more queries need a language model.")
        return []
    asking = _ask_queries if knobs.expansion == "multi_query" else _ask_hypothesis
    written = await ask_or_none(
        model, asking(model, query, knobs, context), context.ledger, "Searched for the question alone"
    )
    return choose_untried(written or [], [query])


def fuse_rankings(rankings: Sequence[Sequence[Candidate]], k: int) -> list[Candidate]:
    """Fuse rankings by the sum of 1 / (k + rank) (Cormack, Clarke & Buettcher, SIGIR 2009). A candidate of several
    rankings keeps its scores of the first one."""
    if len(rankings) == 1:
        return list(rankings[0])
    scores: dict[str, float] = {}
    found: dict[str, Candidate] = {}
    for ranking in rankings:
        for rank, candidate in enumerate(ranking, 1):
            found.setdefault(candidate["chunk_id"], candidate)
            scores[candidate["chunk_id"]] = scores.get(candidate["chunk_id"], 0.0) + 1 / (k + rank)
    merged = [Candidate(**{**found[chunk_id], "score": score}) for chunk_id, score in scores.items()]
    return sorted(merged, key=lambda candidate: -candidate["score"])


async def _ask_queries(model: ChatModel, query: str, knobs: RetrievalKnobs, context: Context) -> list[str]:
    messages = [
        instruct(QUERIES_PROMPT, count=knobs.expansion_queries),
        ask("Question: {question}", question=query),
    ]
    reply = await model.judge(messages, Queries, context.ledger)
    return reply.queries[: knobs.expansion_queries]


async def _ask_hypothesis(model: ChatModel, query: str, knobs: RetrievalKnobs, context: Context) -> list[str]:
    messages = [instruct(HYPOTHESIS_PROMPT), ask("Question: {question}", question=query)]
    return [(await model.judge(messages, Hypothesis, context.ledger)).passage]
