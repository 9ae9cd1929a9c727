"""Judgements: one port per decision that the graph takes about a question, its sources or its answer.

A node asks a port and never knows who judges. `local.py` in a step's folder implements its port without a language
model; a learned judge takes the place of one of them with `dataclasses.replace(judges, grader=LearnedGrader(model))`.

A judge is a frozen dataclass. A field annotated with `Embedder` or `UnitScorer` holds a port that it calls:
`app/workbench/tapes/taping.py` records those calls on the run's tape, and a replay answers them from there.

Where a question leans on its conversation, a judge gets it twice: `question` includes words of the conversation, and
`typed` is what the user wrote. `typed` is None where the two differ in spelling at most.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from domain.documents import Source, Verdict
from domain.outcome import Choice
from domain.scope import Scope
from domain.state import Route, Turn
from domain.text.languages import Language

Align = Callable[[str], Mapping[int, float]]
"""Returns how well each source by itself supports a statement, 0-1, by its number."""

SUPPORTED = 0.5
"""Score (0-1) from which a claim, or a whole answer, counts as supported. Every verifier scales its scores to it."""


@dataclass(frozen=True, slots=True)
class Routed:
    """The way that a question takes through the graph."""

    route: Route
    reason: str
    """A sentence for the record of the run."""
    subject: str = ""
    """What to describe, of a question about the library; empty: the library itself, or what was talked about last."""
    points_back: bool = False
    """True where the subject is what was talked about last."""
    sure: bool = True
    """False where a language model, if there is one, had better be asked."""
    asks: bool = False
    """True where it asks for something and addresses nobody. It is small talk only where the library has nothing."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A question that can be understood without its conversation."""

    standalone: str
    query: str
    """The text to search for: `standalone`, or `typed` with more words of the conversation."""
    unclear: bool = False
    """True where the question points to something that was never named."""
    queries: Sequence[str] = ()
    """Its parts, where it asks for several things: each is searched for besides."""


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage that answers: `text` stands at `start`-`end` of the document of source `number`."""

    number: int
    start: int
    end: int
    text: str
    lead: str = ""
    """The lead-in or the header of the table without which the passage cannot be read, where it stands further up."""
    heading: str = ""
    """What it is about: the name of its section, unless it is an entry with a name or has all words of that itself."""
    goes_on: bool = False
    """True where it is a list that has more items."""


@dataclass(frozen=True, slots=True)
class Grade:
    """An estimate of the probability that the sources answer the question."""

    confidence: float
    """Probability, 0-1."""
    missing: list[str]
    """Words of the question that no source holds, and parts of it that none answers, as they stand in the question."""


@dataclass(frozen=True, slots=True)
class Check:
    """The verdict on one claim."""

    verdict: Verdict
    reason: str
    """A sentence for the reader of the answer."""
    score: float
    """Degree to which the evidence supports the claim, 0-1; it counts as support from `SUPPORTED` on."""


class QuestionRouter(Protocol):
    """Tells questions for the documents from small talk and from requests that no document can fulfil."""

    async def route(self, question: str, *, follow_up: bool) -> Routed:
        """Classify the question. `follow_up`: the conversation has earlier turns, which a short question may lean on.

        Raises `EmbedderUnavailable`.
        """

    def find_request(self, question: str) -> Routed | None:
        """Recognise, by its words alone, a request about the library itself. None where it is no such request."""

    async def prepare(self) -> None:
        """Compute whatever all later calls share, so that the first question does not wait for it.

        Raises `EmbedderUnavailable`.
        """


class FollowUpRewriter(Protocol):
    """Makes a follow-up question stand alone."""

    async def rewrite(self, question: str, turns: Sequence[Turn]) -> Rewrite:
        """Return the question with what it takes from `turns`, oldest first; unchanged where it stands alone."""

    def pick(self, question: str, choices: Sequence[Choice]) -> Choice | None:
        """Return the choice that the question picks, by its number or its words. None where it picks none."""

    def accept(self, question: str, turns: Sequence[Turn], language: Language) -> str:
        """Return the sentence with which the last answer offers what the question says yes to; empty: it does not."""
        ...


class AnswerFinder(Protocol):
    """Finds the passages of the sources that answer a question."""

    async def find(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        scope: Scope,
        most: int,
        typed: str | None = None,
        said: int = 0,
        detailed: bool = False,
        missing: Collection[str] = (),
    ) -> list[Quote]:
        """Return at most `most` quotes, the best first; fewer where few passages answer, none where there are no
        sources. `scope` is where these are from; `said` are the words that the answer has already; a `detailed` answer
        may be long, whatever is asked for. Of a question for several things each is quoted, unless one is `missing`."""

    async def find_nearest(
        self, question: str, sources: Sequence[Source], *, scope: Scope, most: int, typed: str | None = None
    ) -> list[Quote]:
        """Return the units that most probably answer, at most `most` and one of a source, the best first: where nothing
        is sure, people look there."""


class SourceGrader(Protocol):
    """Estimates whether sources answer a question."""

    async def grade(self, question: str, sources: Sequence[Source], *, scope: Scope, typed: str | None = None) -> Grade:
        """Grade `sources`, which are from `scope` and come most relevant first; there is at least one."""


class ClaimVerifier(Protocol):
    """Checks claims against the sources that they cite."""

    async def verify(self, claims: Sequence[tuple[str, Sequence[Source]]]) -> tuple[list[Check], float]:
        """Return the verdict on each claim, in order, and how well the sources support all claims together, 0-1. The
        latter is 0 where nothing is claimed."""

    def align(self, question: str, sources: Sequence[Source]) -> Align:
        """Read the sources, which may take long. One that shares no word with the question supports nothing by itself:
        such sources plant what nobody asked for."""
        ...


class SmallTalk(Protocol):
    """Replies that need no search. `titles` are of documents that can be asked about, the most interesting first; None
    where they are not known."""

    async def reply(self, question: str, titles: Sequence[str] | None, language: Language) -> str:
        """Reply, in this language, to small talk or to a question about the assistant."""

    async def decline(self, question: str, titles: Sequence[str] | None, language: Language) -> str:
        """Refuse politely, in this language, what documents cannot help with."""


@dataclass(frozen=True, slots=True)
class Judges:
    """One judge per port."""

    router: QuestionRouter
    rewriter: FollowUpRewriter
    finder: AnswerFinder
    grader: SourceGrader
    verifier: ClaimVerifier
    small_talk: SmallTalk
    embedding_model: str
    """Name of the embedding model whose cosines (`Source.dense`) the judges' constants were fitted on. Cosines of
    another model are withheld from them."""

    async def prepare(self) -> None:
        """Prepare the judges that gain from it. Raises `EmbedderUnavailable`."""
        await self.router.prepare()
