"""Writing an answer while somebody reads it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from domain.citations import cite
from domain.documents import Citation, Source
from domain.events import CitationUsed, Content, Correction
from domain.profile import CitationStyle
from domain.state import Route, Turn, TurnInput, remember
from domain.text.claims import split_claims
from domain.text.hyperlinks import LinkStream
from domain.text.markers import MarkerStream, strip_markers

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


def hold_back(event: Any) -> None:
    """For the writer of a draft, which nobody reads."""


def cite_statements(answer: str, numbers: Iterable[int], sources: Sequence[Source]) -> list[Citation]:
    """The citations of the sources `numbers`, each with the text that the answer's statements with its marker rest
    on."""
    claims = split_claims(answer, [source["chunk_id"] for source in sources])
    return [
        cite(
            sources[number - 1],
            statements=[strip_markers(answer[claim.start : claim.end]) for claim in claims if number in claim.markers],
        )
        for number in numbers
    ]


class Prose:
    """What a language model writes, on its way to the reader: markers that hold, in one style, and neither images nor
    links that are in none of the sources nor in the question (`domain/text/hyperlinks.py`)."""

    def __init__(self, writer: AnswerWriter, question: str, sources: Sequence[Source], style: CitationStyle) -> None:
        self._writer = writer
        self._sources = sources
        held = [text for source in sources for text in (source["title"], *source["heading_path"], source["text"])]
        self._links = LinkStream([question, *held])
        self._markers = MarkerStream([source["chunk_id"] for source in sources], style)

    @property
    def lost_links(self) -> bool:
        """Whether an address had to be taken out."""
        return self._links.removed

    def feed(self, text: str) -> None:
        """Write what can go out now."""
        self._write(self._markers.feed(self._links.feed(text)))

    def finish(self) -> None:
        """Write the rest, when no more text comes. The citations then know all statements that they stand for, and not
        only the first."""
        self._write([*self._markers.feed(self._links.finish()), *self._markers.finish()])
        used = [citation["marker"] for citation in self._writer.citations]
        self._writer.citations = cite_statements(self._writer.text, used, self._sources)

    def _write(self, pieces: list[str | int]) -> None:
        for piece in pieces:
            if isinstance(piece, int):
                for citation in cite_statements(self._writer.text, [piece], self._sources):
                    self._writer.cite(citation)
            else:
                self._writer.write(piece)


class Answered(TurnInput):
    """The part of the state that a finished turn is made from."""

    standalone_question: str
    route: Route
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
