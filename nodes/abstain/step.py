"""abstain: show where the answer may stand, or say that the documents do not answer."""

from collections.abc import Collection, Sequence

from langgraph.runtime import Runtime

from domain.documents import Citation, Source, name_place
from domain.events import Sources
from domain.library.citations import cite
from domain.library.similarity import read_scales
from domain.outcome import (
    BudgetSpent,
    Framing,
    LowConfidence,
    NothingFound,
    OtherLanguage,
    Outcome,
    Reason,
)
from domain.state import AnswerUpdate, ExecutedStep, Failure
from domain.text.blocks import read_blocks
from domain.text.languages import Language, detect_language
from domain.text.terms import analyse, find_terms
from nodes.context import Context, profile_of, scope_of
from nodes.sources.titles import list_recent
from nodes.step import SPEAKS, Step
from nodes.wording.notices import wording_of
from nodes.writing.missing import list_missing
from nodes.writing.passages import MOST, show_passages
from nodes.writing.stream import AnsweringInput, AnswerWriter, discard, finish_turn

_MANY, _SOME = 3, 2
"""Words shared with a source, and with the passage that is shown of it, that are enough however long the question is.
Chosen."""


class AbstainInput(AnsweringInput):
    """The part of the state that abstain reads."""

    corrected_question: str
    sources: list[Source]
    confidence: float
    missing: list[str]
    steps: list[ExecutedStep]
    answer: str
    failure: Failure | None


class AbstainUpdate(AnswerUpdate):
    """The part of the state that abstain writes."""

    outcome: Outcome
    citations: list[Citation]
    failure: None


async def abstain(state: AbstainInput, runtime: Runtime[Context]) -> AbstainUpdate:
    """Show the passages that come nearest; where none is about the question, say that the documents do not answer. What
    a model that failed has streamed is replaced."""
    context, profile = runtime.context, profile_of(state)
    reasons = await _find_reasons(state, context)
    writer = AnswerWriter(discard if state["answer"] else runtime.stream_writer)
    wording = wording_of(profile, state["language"])
    # A profile with a sentence of its own wants that and nothing else.
    sources = state["sources"] if profile.generate.fallback is None else []
    question = state["corrected_question"]
    similar = _find_similar(sources, context)
    near = {each["number"]: each for each in sources if _is_near(question, each, each["text"], _MANY, similar)}
    found = (
        await context.judges.finder.find_nearest(question, [*near.values()], scope=scope_of(state), most=MOST)
        if near
        else []
    )
    quotes = [
        quote for quote in found if _is_near(question, near[quote.number], f"{quote.lead} {quote.text}", _SOME, similar)
    ]
    outcome: Outcome = "showed_passages" if quotes else "abstained"
    framing = Framing(opening=0, closing=0)
    if quotes:
        reasons = [reason for reason in reasons if reason["code"] != "nothing_found"]
        runtime.stream_writer(
            Sources(type="sources", citations=[cite(s, statements=[state["question"]]) for s in near.values()])
        )
        style = profile.generate.citation_style
        framing = show_passages(writer, state["question"], quotes, [*near.values()], reasons, wording, style)
    else:
        writer.write(wording.abstain(reasons))
    if state["answer"]:
        reason = wording.explain(state["failure"])
        AnswerWriter(runtime.stream_writer).correct(reason, writer.text, writer.citations)
    return AbstainUpdate(
        answer=writer.text,
        outcome=outcome,
        outcome_reasons=reasons,
        framing=framing,
        citations=writer.citations,
        confidence=0.0,
        level="none",
        failure=None,
        turns=finish_turn(state, writer.text, writer.citations, outcome, framing),
    )


async def _find_reasons(state: AbstainInput, context: Context) -> list[Reason]:
    profile = profile_of(state)
    is_empty = not state["sources"] and await list_recent(state, context, 1) == []
    reasons: list[Reason] = [NothingFound(code="nothing_found", searched=state["question"], scope_is_empty=is_empty)]
    if state["sources"]:
        reasons.append(LowConfidence(code="low_confidence", confidence=state["confidence"]))
        if _are_in_other_language(state):
            reasons.append(OtherLanguage(code="other_language"))
        else:
            reasons += list_missing(state["question"], state["missing"])
    breach = profile.budget.find_breach(state["steps"])
    if breach is not None:
        reasons.append(BudgetSpent(code="over_budget", limit=breach))
    return reasons


def _are_in_other_language(state: AbstainInput) -> bool:
    asked = detect_language(state["corrected_question"])
    written = [_detect_prose(source["text"]) for source in state["sources"]]
    # That of tables and short lines cannot be told.
    others = sum(language not in {None, asked} for language in written)
    return asked is not None and asked not in written and 2 * others > len(written)


def _detect_prose(text: str) -> Language | None:
    blocks = (text[block.start : block.end] for block in read_blocks(text) if block.kind == "paragraph")
    return detect_language("\n".join(blocks))


def _find_similar(sources: Sequence[Source], context: Context) -> frozenset[int]:
    """Return the numbers of the sources whose cosine is nearer to that of an answer than to that of an unrelated text.
    What answers in another language shares no words."""
    scale = read_scales()[context.judges.embedding_model]
    middle = (scale.unrelated + scale.related) / 2
    cosines = [found["dense"] for found in context.read_cosines(sources)]
    return frozenset(
        source["number"]
        for source, cosine in zip(sources, cosines, strict=True)
        if cosine is not None and cosine >= middle
    )


def _is_near(question: str, source: Source, text: str, enough: int, similar: Collection[int]) -> bool:
    """Return True where the text, with the name of its place, has half of the question's words; of a long question
    `enough` words will do. Other text is about something else, and readers would go there in vain. Text in another
    language than the question's is near where its source is `similar`."""
    asked, written = detect_language(question), detect_language(source["text"])
    if asked is not None and written not in {None, asked}:
        return source["number"] in similar
    terms = set(analyse(question))
    held = find_terms(f"{name_place(source['title'], source['heading_path'])} {text}")
    return len(terms & held) >= max(min((len(terms) + 1) // 2, enough), 1)


STEP = Step(
    run=abstain,
    label="Finding nothing that answers",
    knobs=SPEAKS | {"generate.citation_style"},
)
