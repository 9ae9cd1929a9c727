"""Writing an answer while somebody reads it."""

from collections.abc import Callable
from typing import Any

from domain.documents import Citation
from domain.events import CitationUsed, Content, Correction
from domain.state import PerQuestion, Turn, TurnInput, remember

CAVEAT = "The documents may answer this only in part. "
"""Opens an answer of low confidence."""

ADMISSION = " The sources do not mention "
"""Begins what an answer says at its end of the question's names that no source holds."""


class AnswerWriter:
    """Collects the answer and sends every piece on as it is written."""

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self._emit = emit
        self._pieces: list[str] = []
        self.citations: list[Citation] = []

    @property
    def text(self) -> str:
        """What has been written so far."""
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        """Add text to the answer."""
        if text:
            self._pieces.append(text)
            self._emit(Content(type="content", token=text))

    def cite(self, citation: Citation) -> None:
        """Add a citation, once per marker."""
        if all(known["marker"] != citation["marker"] for known in self.citations):
            self.citations.append(citation)
            self._emit(CitationUsed(type="citation", citation=citation))

    def correct(self, reason: str, text: str, citations: list[Citation]) -> None:
        """Replace everything written so far, and say so: readers have already seen it."""
        self._pieces = [text]
        self.citations = citations
        self._emit(Correction(type="correction", reason=reason, answer=text, citations=citations))


class Answered(TurnInput, PerQuestion):
    """The part of the state that a finished turn is made from."""

    turns: list[Turn]


def finish_turn(state: Answered, answer: str, citations: list[Citation]) -> list[Turn]:
    """The conversation with this turn's answer in it."""
    return remember(
        state["turns"],
        Turn(
            run_id=state["run_id"],
            question=state["question"],
            standalone_question=state["standalone_question"],
            route=state["route"],
            answer=answer,
            documents=list(dict.fromkeys(citation["title"] for citation in citations)),
        ),
    )
