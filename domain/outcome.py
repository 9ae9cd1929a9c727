"""Outcomes of questions, and the reasons for them.

Nodes decide both and keep them in the state. `nodes/wording/notices.py` alone makes prose of them, so that no code
reads prose to find out what happened.
"""

from collections.abc import Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

Outcome = Literal[
    "answered", "answered_with_caveat", "showed_passages", "abstained", "asked_back", "declined", "conversed"
]

ANSWERS: tuple[Outcome, ...] = ("answered", "answered_with_caveat")
"""The outcomes that state something from the documents."""

ABSTENTIONS: tuple[Outcome, ...] = ("showed_passages", "abstained")
"""The outcomes that do not answer what was asked of the documents. The first shows where the answer may stand."""

Limit = Literal["seconds", "tokens", "dollars"]
"""A limit of a run's budget."""


class NothingFound(TypedDict):
    """The search found no source that answers."""

    code: Literal["nothing_found"]
    searched: str
    """The question as it was searched for, without words of its conversation."""
    scope_is_empty: bool
    """True where there was no document to search."""


class LowConfidence(TypedDict):
    """The sources probably do not hold the whole answer."""

    code: Literal["low_confidence"]
    confidence: float
    """From grade, 0-1."""


class MissingWords(TypedDict):
    """The question names something that no source mentions."""

    code: Literal["missing_words"]
    words: list[str]
    """Spelled as in the question."""


class OtherLanguage(TypedDict):
    """The question is in another language than the sources, which words therefore hardly find."""

    code: Literal["other_language"]


class MissingParts(TypedDict):
    """No source answers some of the things that the question asks for."""

    code: Literal["missing_parts"]
    parts: list[str]
    """As they stand in the question."""


class NothingQuotable(TypedDict):
    """No sentence of the sources answers by itself."""

    code: Literal["nothing_quotable"]


class ModelAbstained(TypedDict):
    """The language model replied with the agreed abstention."""

    code: Literal["model_abstained"]
    model: str


class Uncited(TypedDict):
    """The language model's answer, or a part of it, cites no source."""

    code: Literal["uncited"]
    statements: NotRequired[list[str]]
    """The statements that no source was found for, where others cite one."""


class NothingSupported(TypedDict):
    """Verification left nothing of the draft."""

    code: Literal["nothing_supported"]
    claims: int
    """Claims that were withdrawn."""


class Withdrawn(TypedDict):
    """Verification withdrew a part of the draft."""

    code: Literal["withdrawn"]
    statements: list[str]


class BesideQuestion(TypedDict):
    """The answer does not answer the question, as the model that verifies it says."""

    code: Literal["beside_question"]


class RetriesSpent(TypedDict):
    """Every further search found too little as well: in runs of 1.0.0."""

    code: Literal["retries_spent"]
    retries: int


class BudgetSpent(TypedDict):
    """The run's budget allowed no further search."""

    code: Literal["over_budget"]
    limit: Limit


class Choice(TypedDict):
    """One of the things that an ambiguous question may mean."""

    label: str
    """Title of the document, or heading of the section, as it is offered."""
    document_id: str


class Ambiguous(TypedDict):
    """The question could mean several things, which are offered to choose from."""

    code: Literal["ambiguous"]
    choices: list[Choice]


Reason = (
    NothingFound
    | Ambiguous
    | LowConfidence
    | MissingWords
    | OtherLanguage
    | MissingParts
    | NothingQuotable
    | ModelAbstained
    | Uncited
    | NothingSupported
    | Withdrawn
    | BesideQuestion
    | RetriesSpent
    | BudgetSpent
)


class Framing(TypedDict):
    """The parts of an answer that claim nothing, as numbers of characters."""

    opening: int
    """At the beginning: a caveat, or a model's own abstention."""
    closing: int
    """At the end: the admission that the sources do not mention something."""


def find_claimed(answer: str, framing: Framing) -> tuple[int, int]:
    """Return start and end of the part of the answer that makes claims."""
    return framing["opening"], len(answer) - framing["closing"]


def judge_answer(reasons: Sequence[Reason]) -> Outcome:
    """Return the outcome of an answer that was written with these reservations."""
    return "answered_with_caveat" if reasons else "answered"
