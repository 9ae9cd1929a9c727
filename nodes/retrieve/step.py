"""retrieve: search dense and lexical side by side, and fuse the results."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Candidate
from domain.profile import RetrievalKnobs
from domain.scope import Scope, ScopeJson
from domain.text.languages import Language, detect_language
from domain.text.question import split_carried
from domain.text.spelling import correct
from nodes.context import Context, profile_of, scope_of
from nodes.sources.fusion import prefer
from nodes.sources.optional import query_or_default
from nodes.sources.search import search
from nodes.step import SPEAKS, Step
from nodes.wording.notices import Wording, wording_of


class RetrieveInput(TypedDict):
    """The part of the state that retrieve reads."""

    question: str
    standalone_question: str
    query: str
    queries: list[str]
    queries_tried: list[str]
    focus: list[str]
    retries: int
    scope: ScopeJson
    language: Language
    profile: dict[str, Any]


class RetrieveUpdate(TypedDict):
    """The part of the state that retrieve writes."""

    corrected_question: str
    """The standalone question with misspelt words corrected, so that sources are judged by what was meant."""
    query: str
    """Corrected too."""
    candidates: list[Candidate]
    """Those of the query, then those of each further query, which name it."""
    queries_tried: list[str]
    """The queries so far, and every further query that was searched for."""


FOCUSED = 10
"""Candidates that the documents of the conversation bring at least."""

FURTHER = 20
"""Candidates of each further query. Chosen: half of what the question gets, for it names one thing."""


async def retrieve(state: RetrieveInput, runtime: Runtime[Context]) -> RetrieveUpdate:
    """Search both legs and fuse them. Where the embedder fails, use the lexical leg alone, with a warning."""
    context = runtime.context
    profile = profile_of(state)
    knobs = profile.retrieval
    scope = scope_of(state)
    core, background = _part_query(state)
    # Side by side: most questions need no correction, and then no time is lost.
    candidates, (question, spelt, spelt_background), _ = await asyncio.gather(
        search(core, background, scope, knobs, context),
        _correct([state["standalone_question"], core, background], state["language"], scope, knobs, context),
        _warn_of_unembedded(state, wording_of(profile, state["language"]), scope, context),
    )
    if (spelt, spelt_background) != (core, background):
        candidates = await search(spelt, spelt_background, scope, knobs, context)
    further = await asyncio.gather(*(search(*_part(text), scope, knobs, context) for text in state["queries"]))
    if state["focus"]:
        focused = await search(spelt, spelt_background, scope.narrow(state["focus"]), knobs, context)
        candidates = prefer(candidates, focused[:FOCUSED])
    return RetrieveUpdate(
        corrected_question=question,
        query=spelt + spelt_background,
        candidates=[
            *candidates[: knobs.candidates],
            *(
                Candidate(**{**candidate, "query": query})
                for query, found in zip(state["queries"], further, strict=True)
                for candidate in found[:FURTHER]
            ),
        ],
        queries_tried=[*state["queries_tried"], spelt + spelt_background, *state["queries"]],
    )


def _part_query(state: RetrieveInput) -> tuple[str, str]:
    """Split the query into the question and the words that route or reformulate appended, if any."""
    for asked in (state["question"], state["standalone_question"]):
        if state["query"].startswith(f"{asked} "):
            return asked, state["query"].removeprefix(asked)
    return state["query"], ""


def _part(query: str) -> tuple[str, str]:
    """Split a query into what it asks and the words that it takes from elsewhere."""
    asked, carried = split_carried(query)
    return asked, f" ({carried})" if carried else ""


async def _warn_of_unembedded(state: RetrieveInput, wording: Wording, scope: Scope, context: Context) -> None:
    if state["retries"]:
        return  # said already
    counting = context.library.count_unembedded(scope)
    waiting = await query_or_default(counting, 0, context.ledger, "It is not known what is still being indexed")
    if waiting:
        context.ledger.warn(wording.warn_of_unembedded(waiting))


async def _correct(
    texts: Sequence[str], spoken: Language, scope: Scope, knobs: RetrievalKnobs, context: Context
) -> Sequence[str]:
    language = detect_language(texts[0]) or spoken

    async def suggest(words: Sequence[str], unfinished: str | None) -> Mapping[str, str]:
        return await context.library.suggest_words(scope, words, unfinished, language)

    if not knobs.correct_spelling:
        return texts
    consequence = "Words were searched for as they are spelt"
    return await query_or_default(correct(texts, suggest), texts, context.ledger, consequence)


STEP = Step(
    run=retrieve,
    label="Searching",
    kind="retriever",
    knobs=SPEAKS | {"retrieval"},
    retry=True,
)
