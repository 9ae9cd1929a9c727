"""Scores answers to practical questions by the facts that a useful answer holds.

The rules are those of `practical.py` beside the public set, which asks a running server.
"""

from collections.abc import Sequence
from statistics import fmean

from app.evaluation.asking import Outcome
from app.evaluation.facts import find_facts, fold
from app.evaluation.sets import Question
from domain.profile import LONG_ANSWER, SHORT_ANSWER

LONG_TYPES = {"howto", "list", "summary", "multipart", "comparison"}
"""Types of questions whose useful answers have up to `LONG_ANSWER` words."""


def is_useful(question: Question, outcome: Outcome) -> bool:
    """Return True where nobody has to search further after this answer."""
    return not list_flaws(question, outcome)


def list_flaws(question: Question, outcome: Outcome) -> list[str]:
    """Return why the answer is not useful; nothing where it is.

    Small talk must be answered without a citation. A question that the documents do not answer must be left unanswered.
    Any other answer holds every fact and nothing wrong, cites the right file where one is named, and is short.
    """
    said_no = outcome.abstained or not outcome.citations
    if question.talk:
        return [] if outcome.answer and not outcome.citations and not outcome.abstained else ["searched for"]
    if question.answerable is False:
        return [] if said_no else ["answered what cannot be"]
    if said_no:
        return ["not answered"]
    folded = fold(outcome.answer)
    named = [cited.doc.lower() for cited in outcome.citations]
    wanted = (question.source or "").lower()
    flaws = {
        "facts missing": not all(find_facts(question, outcome.answer)),
        "something wrong": any(fold(text).strip() in folded for text in question.must_not),
        "another file cited": not any(wanted in name or name in wanted for name in named),
        "too long": len(folded.split()) > (LONG_ANSWER if question.type in LONG_TYPES else SHORT_ANSWER),
    }
    return [flaw for flaw, found in flaws.items() if found]


def score_usefulness(pairs: Sequence[tuple[Question, Outcome]]) -> dict[str, float]:
    """Return `useful`, the share of useful answers; and `facts_shown`, the share of the answerable questions all of
    whose facts are among the shown sources."""
    metrics = {"useful": fmean(is_useful(question, outcome) for question, outcome in pairs)} if pairs else {}
    shown = [outcome.facts_shown for question, outcome in pairs if question.answerable and question.must]
    return {**metrics, "facts_shown": fmean(shown)} if shown else metrics
