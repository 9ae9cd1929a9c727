"""grade: choose the sources that the answer is made from, and estimate whether they hold it.

Sets `confidence` (0-1) and what is missing, without a language model: one that writes says itself what it lacks
(docs/decisions/10-grading.md).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate, Source
from domain.ports.judgement import Grade
from domain.profile import Profile
from domain.scope import ScopeJson
from domain.state import UNSURE, Level, Turn, level_of
from domain.text.question import split_carried
from nodes.context import Context, profile_of, scope_of
from nodes.prompting.answerers import LOCAL, list_answerers
from nodes.prompting.messages import fit_sources
from nodes.sources.fusion import weigh_by_rank
from nodes.sources.neighbours import merge_touching, number_sources
from nodes.step import Step

_MOST_MISSING = 10

_FIRST = 0.75
"""Share of the room for sources that the first search may take, so that later ones have some. Chosen."""


_FAR = 3
"""Turns before a question from which what it takes from them is no longer sure to be what was meant."""


class GradeInput(TypedDict):
    """The part of the state that grade reads."""

    question: str
    turns: list[Turn]
    corrected_question: str
    candidates: list[Candidate]
    sources: list[Source]
    answerer: str
    scope: ScopeJson
    profile: dict[str, Any]


class GradeUpdate(TypedDict):
    """The part of the state that grade writes."""

    sources: list[Source]
    answerer: str
    confidence: float
    level: Level
    missing: list[str]
    graded: float
    graded_by: str


async def grade(state: GradeInput, runtime: Runtime[Context]) -> GradeUpdate:
    """Judge the sources of all searches so far together, those that whoever answers will get."""
    context, profile = runtime.context, profile_of(state)
    answerer = state["answerer"] or list_answerers(profile.generate, context.models)[0]
    sources = merge_touching(state["sources"])
    shown = {source["chunk_id"] for source in sources if "fitted" in source}
    if answerer != LOCAL:  # A prompt is limited, a quote reads all.
        room = int(profile.generate.source_tokens * (1 if shown else _FIRST))
        sources = fit_sources(sources, room, context.tokens, profile.generate.source_label)
    graded = await _judge(state, sources, profile, context) if sources else Grade(0.0, [])
    confidence = round(graded.confidence, 4)
    return GradeUpdate(
        sources=number_sources(sources if answerer == LOCAL else _arrange(sources, shown)),
        answerer=answerer,
        confidence=confidence,
        level=level_of(confidence),
        missing=graded.missing[:_MOST_MISSING],
        graded=confidence,
        graded_by=LOCAL,
    )


def _arrange(sources: Sequence[Source], shown: Collection[str]) -> list[Source]:
    """Return the sources so that those of one document stand together, in its order, at the place of the best of them.
    What a model was shown before keeps its place: providers charge less for a prompt that begins like the last one."""
    documents = [source["document_id"] for source in sources]

    def place(source: Source) -> tuple[int, int]:
        is_shown = source["chunk_id"] in shown
        return (-1, 0) if is_shown else (documents.index(source["document_id"]), source["start"])

    return sorted(sources, key=place)


async def _judge(state: GradeInput, sources: list[Source], profile: Profile, context: Context) -> Grade:
    question = state["corrected_question"]
    if profile.grade.formula == "weighted":
        reranked = profile.rerank.applies_to(question)
        return Grade(weigh_by_rank([_read_score(source, reranked=reranked) for source in sources]), [])
    graded = await context.judges.grader.grade(
        question,
        context.read_cosines(_restore_relevance(sources, state["candidates"])),
        scope=scope_of(state),
        typed=state["question"] if state["turns"] else None,
    )
    is_far = len(state["turns"]) >= _FAR and split_carried(question)[1]
    return replace(graded, confidence=min(graded.confidence, UNSURE)) if is_far else graded


def _restore_relevance(sources: list[Source], candidates: list[Candidate]) -> list[Source]:
    """Return the sources with their relevance as score: the local judgement was fitted on it, and not on the similarity
    that sources of a dense search show."""
    relevance = {candidate["chunk_id"]: candidate["relevance"] for candidate in candidates}
    return [
        source
        if "computed" in source or (known := relevance.get(source["chunk_id"])) is None
        else {**source, "score": known}
        for source in sources
    ]


def _read_score(source: Source, *, reranked: bool) -> float:
    """Return the score by which the source was chosen: its similarity, if it is known and nothing was reranked."""
    return source["score"] if reranked or source["dense"] is None else source["dense"]


STEP = Step(
    run=grade,
    label="Judging whether it answers",
    knobs=frozenset({"grade.formula", "rerank.method", "rerank.only_complex", "models"})
    | {"generate.model", "generate.source_tokens", "generate.source_label"},
    retry=True,
)
