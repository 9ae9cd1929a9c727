"""ask_back: ask which of several things an ambiguous question means, without a model.

The choices are in the reason for the outcome, and in the turn: the next question may pick one by its number or its
words.
"""

from collections.abc import Sequence

from langgraph.runtime import Runtime

from domain.documents import Source, name_place
from domain.outcome import Ambiguous, Choice, Framing, Outcome
from domain.state import AnswerUpdate
from domain.text.terms import analyse, find_terms
from nodes.context import Context, profile_of
from nodes.prompting.answerers import LOCAL
from nodes.step import SPEAKS, Step
from nodes.wording.notices import wording_of
from nodes.writing.stream import AnsweringInput, AnswerWriter, finish_turn

_MOST = 5
"""Choices that are offered."""


class AskBackInput(AnsweringInput):
    """The part of the state that ask_back reads."""

    choices: list[Choice]
    corrected_question: str
    sources: list[Source]


class AskBackUpdate(AnswerUpdate):
    """The part of the state that ask_back writes."""

    outcome: Outcome
    answered_by: str
    choices: list[Choice]


async def ask_back(state: AskBackInput, runtime: Runtime[Context]) -> AskBackUpdate:
    """Offer the choices that were found, or else the documents that may be meant."""
    choices = (state["choices"] or list_choices(state["corrected_question"], state["sources"]))[:_MOST]
    writer = AnswerWriter(runtime.stream_writer)
    writer.write(wording_of(profile_of(state), state["language"]).ask_back([choice["label"] for choice in choices]))
    turns = finish_turn(state, writer.text, [], "asked_back")
    turns[-1]["choices"] = choices
    return AskBackUpdate(
        answer=writer.text,
        outcome="asked_back",
        outcome_reasons=[Ambiguous(code="ambiguous", choices=choices)],
        framing=Framing(opening=0, closing=0),
        answered_by=LOCAL,
        choices=choices,
        confidence=0.0,
        level="none",
        turns=turns,
    )


def list_choices(question: str, sources: Sequence[Source]) -> list[Choice]:
    """Return the documents of the sources that hold most words of the question as choices, most relevant first: by
    title, or by place where several have the same title. Others have nothing to do with it."""
    terms = set(analyse(question))
    documents = {
        source["document_id"]: source
        for source in reversed(sources)
        if "outside" not in source
        and 2 * len(terms & find_terms(f"{name_place(source['title'], source['heading_path'])} {source['text']}"))
        > len(terms)
    }
    titles = [source["title"] for source in documents.values()]
    return [
        Choice(
            label=source["title"]
            if titles.count(source["title"]) == 1
            else name_place(source["title"], source["heading_path"]),
            document_id=document_id,
        )
        for document_id, source in reversed(documents.items())
    ]


STEP = Step(run=ask_back, label="Asking back", knobs=SPEAKS)
