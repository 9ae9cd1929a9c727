"""Verifies judged responses and claims with the verify node, their evidence as sources."""

from time import perf_counter

from langgraph.runtime import Runtime

from app.evaluation.asking import Asking, Outcome
from app.evaluation.scoring import LABELS
from app.evaluation.sets import CorpusDocument, EvaluationSet, Question
from app.wiring.services import Services
from domain.documents import Passage, Source
from domain.errors import AskgraphError
from domain.library.citations import cite
from domain.outcome import Framing
from domain.ports.judgement import SUPPORTED
from domain.text.sentences import split_sentences
from nodes.sources.sourcing import make_source
from nodes.verify.step import VerifyInput, verify


class Verifying:
    """Verifies responses and claims. Each of their sentences cites all of the evidence."""

    def __init__(self, services: Services, each: EvaluationSet) -> None:
        self._services = services
        self._corpus = {document.id: document for document in each.corpus}

    async def ask(self, question: Question) -> Outcome:
        """Verify the question's response or, if it has none, the question itself as a claim. There is one verdict for
        the whole text, because people judged it as a whole."""
        response = question.response or question.question
        sources = [_make_source(number, self._corpus[r.doc]) for number, r in enumerate(question.relevant, 1)]
        cited = [cite(source) for source in sources]
        state = VerifyInput(
            standalone_question=question.question,
            language="en",
            answer=mark(response, len(sources)),
            outcome="answered",
            outcome_reasons=[],
            framing=Framing(opening=0, closing=0),
            citations=cited,
            sources=sources,
        )
        started = perf_counter()
        try:
            update = await verify(state, Runtime(context=self._services.make_context()))
        except AskgraphError as error:
            return Outcome(id=question.id, error=error.message)
        support = update["verification"].get("score", 0.0)
        ms = round((perf_counter() - started) * 1000, 2)
        return Outcome(
            id=question.id,
            answer=response,
            verdict=support >= SUPPORTED,
            support=support,
            timings={"verify": ms, "total": ms},
        )


class AskingAndVerifying:
    """Asks questions, and also verifies those that are claims with known evidence."""

    def __init__(self, asking: Asking, verifying: Verifying) -> None:
        self._asking = asking
        self._verifying = verifying

    async def ask(self, question: Question) -> Outcome:
        """Return the outcome of the answer, with the verdict on the claim."""
        outcome = await self._asking.ask(question)
        if question.label not in LABELS:
            return outcome
        checked = await self._verifying.ask(question)
        return outcome.model_copy(
            update={"verdict": checked.verdict, "support": checked.support, "error": outcome.error or checked.error}
        )


def mark(response: str, sources: int) -> str:
    """Return the response with markers of all sources behind each of its sentences, as in our answers."""
    markers = f"[{', '.join(str(number) for number in range(1, sources + 1))}]"
    pieces, done = [], 0
    for _, end in split_sentences(response):
        # On the line of the fence that closes a code block, the markers would keep the block open.
        pieces += [response[done:end], "\n" if response[:end].endswith("```") else " ", markers]
        done = end
    return "".join([*pieces, response[done:]])


def _make_source(number: int, document: CorpusDocument) -> Source:
    passage = Passage(document.id, 0, document.id, document.title, document.text, 0, len(document.text))
    return make_source(number, passage, score=1.0)
