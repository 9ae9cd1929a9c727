"""Write an answer while readers follow it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from domain.documents import Citation, Source, list_hashes
from domain.events import CitationUsed, Content, Correction
from domain.library.citations import cite
from domain.outcome import Framing, Outcome
from domain.ports.judgement import Align
from domain.profile import CitationStyle
from domain.state import Route, Turn, TurnInput, list_grounds, remember
from domain.text.claims import split_claims
from domain.text.closings import ClosingStream
from domain.text.disguises import DisguiseStream
from domain.text.hyperlinks import LinkStream
from domain.text.languages import Language
from domain.text.markers import MarkerStream, strip_markers
from domain.text.wrapping import UnwrapStream
from nodes.writing.attribution import Attribution


class AnswerWriter:
    """Collects the answer and emits every piece as it is written."""

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self._emit = emit
        self._pieces: list[str] = []
        self.citations: list[Citation] = []

    @property
    def text(self) -> str:
        """The text written so far."""
        return "".join(self._pieces)

    def write(self, text: str) -> None:
        """Add text to the answer."""
        if text:
            self._pieces.append(text)
            self._emit(Content(type="content", token=text))

    def cite(self, citation: Citation) -> None:
        """Add a citation. A second one with the same marker is ignored."""
        if all(known["marker"] != citation["marker"] for known in self.citations):
            self.citations.append(citation)
            self._emit(CitationUsed(type="citation", citation=citation))

    def correct(self, reason: str, text: str, citations: list[Citation]) -> None:
        """Replace everything written so far, and tell the readers, who have seen it already."""
        self._pieces = [text]
        self.citations = citations
        self._emit(Correction(type="correction", reason=reason, answer=text, citations=citations))


def discard(event: Any) -> None:
    """Drop the event: an emitter for drafts, which nobody reads."""


def cite_statements(answer: str, numbers: Iterable[int], sources: Sequence[Source]) -> list[Citation]:
    """Return the citations of the sources `numbers`, each with the text that supports the statements that cite it."""
    claims = split_claims(answer, [source["chunk_id"] for source in sources])
    return [
        cite(
            sources[number - 1],
            statements=[strip_markers(answer[claim.start : claim.end]) for claim in claims if number in claim.markers],
        )
        for number in numbers
    ]


def find_abstention(reply: str, sentence: str, *, ended: bool) -> int | None:
    """Return how many characters the agreed abstention takes at the beginning of a language model's reply: 0 where it
    is none, None while more text may make it one. In a reply that has ended its full stop may be missing."""
    said = reply.lstrip()
    if said.startswith(sentence):
        return len(reply) - len(said) + len(sentence)
    if ended:
        return len(reply) if said and said.rstrip() == sentence.rstrip(".!…。 ") else 0
    return None if sentence.startswith(said.rstrip()) else 0


class Prose:
    """Passes a language model's text on to the writer.

    Markers without a source, images, and addresses that neither the sources nor the question hold, however disguised,
    are taken out (`domain/text/hyperlinks.py`), and so is a fence around the whole; raw HTML is escaped, and the other
    markers get one style. A list of sources of the model's own at the end is left out. `align`
    finds the sources of its statements.
    """

    def __init__(
        self,
        writer: AnswerWriter,
        question: str,
        sources: Sequence[Source],
        style: CitationStyle,
        align: Align = lambda statement: {},
        language: Language = "en",
    ) -> None:
        self._writer = writer
        self._sources = sources
        self._used: set[int] = set()
        self._attribution = Attribution(writer.write, self._cite, align, sources, style, language)
        held = [text for source in sources for text in (source["title"], *source["heading_path"], source["text"])]
        self._wrapping, self._disguises = UnwrapStream(), DisguiseStream()
        self._links = LinkStream([question, *held])
        self._closings = ClosingStream(question)
        names: dict[str, int] = {}
        for source in sources:
            for name in (source["title"], source.get("source", "").rpartition("/")[2]):
                names.setdefault(name, source["number"])
        self._markers = MarkerStream([source["chunk_id"] for source in sources], style, names)

    @property
    def lost_links(self) -> bool:
        """True once a link had to be taken out."""
        return self._links.removed

    @property
    def cites_itself(self) -> bool:
        """True where at least half of the cited statements have markers of the model's own."""
        return self._attribution.kept >= self._attribution.mended

    def feed(self, text: str) -> None:
        """Write as much as can go out now."""
        plain = self._disguises.feed(self._wrapping.feed(text))
        self._attribution.feed(self._closings.feed(self._markers.feed(self._links.feed(plain))))

    def finish(self) -> list[str]:
        """Write the rest, after the last piece, and return the statements that no source says. The citations then cover
        all statements that use them, not only the first."""
        plain = self._disguises.feed(self._wrapping.finish()) + self._disguises.finish()
        rest = self._links.feed(plain) + self._links.finish()
        rest = self._markers.feed(rest) + self._markers.finish()
        self._attribution.feed(self._closings.feed(rest, final=True))
        unsaid = self._attribution.finish()
        used = [citation["marker"] for citation in self._writer.citations]
        self._writer.citations = cite_statements(self._writer.text, used, self._sources)
        return unsaid

    def _cite(self, number: int) -> None:
        if number not in self._used:
            self._used.add(number)
            for citation in cite_statements(self._writer.text, [number], self._sources):
                self._writer.cite(citation)


class AnsweringInput(TurnInput):
    """The part of the state that every node reads that ends a turn."""

    standalone_question: str
    route: Route
    language: Language
    turns: list[Turn]


def finish_turn(
    state: AnsweringInput,
    answer: str,
    citations: Sequence[Citation],
    outcome: Outcome | None,
    framing: Framing | None = None,
) -> list[Turn]:
    """Return the conversation with this turn added."""
    documents = [citation for citation in citations if "outside" not in citation]
    turn = Turn(
        run_id=state["run_id"],
        question=state["question"],
        standalone_question=state["standalone_question"],
        route=state["route"],
        answer=answer,
        documents=list(dict.fromkeys(citation["title"] for citation in documents)),
        document_ids=list(dict.fromkeys(citation["document_id"] for citation in documents)),
        headings=[list(path) for path in dict.fromkeys(tuple(citation["heading_path"]) for citation in documents)],
        outcome=outcome,
    )
    grounds = list_hashes(documents)
    for earlier in state["turns"]:
        if earlier["run_id"] != state["run_id"]:
            grounds |= list_grounds(earlier)
    if grounds:
        turn["rests_on"] = grounds
    if framing and any(framing.values()):
        turn["framing"] = framing
    return remember(state["turns"], turn)
