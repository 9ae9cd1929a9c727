"""Asks the questions of a set with the real graph."""

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from dataclasses import replace
from time import perf_counter
from typing import Any, cast
from uuid import UUID, uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeTimeoutError
from pydantic import BaseModel

from app.evaluation.facts import find_facts
from app.evaluation.sets import Question, name_page
from app.evaluation.shelf import Shelf
from app.wiring.services import Services
from domain.documents import Candidate, Source
from domain.errors import AskgraphError
from domain.outcome import ABSTENTIONS
from domain.ports.models import ModelUsage
from domain.profile import Profile
from domain.scope import Scope
from domain.state import AnswerState, Route, TurnInput, add_costs, count_tokens, sum_timings
from graphs.answer import RECURSION_LIMIT, build_answer_graph
from nodes.context import Ledger

logger = logging.getLogger("askgraph.evaluation")


class Cited(BaseModel):
    """A citation of the answer. `doc` is the set's own name of the document."""

    doc: str
    start: int
    end: int
    text: str


class Outcome(BaseModel):
    """The result of one question."""

    id: str
    error: str | None = None
    """Message of the error that ended the question; the other fields are then empty."""
    route: Route = "needs_retrieval"
    standalone: str = ""
    queries: list[str] = []
    answer: str = ""
    abstained: bool = False
    facts_shown: bool = False
    """True where the sources hold every fact that a practical question asks for."""
    opening: int = 0
    """Characters of the caveat that opens the answer."""
    citations: list[Cited] = []
    confidence: float = 0.0
    """Confidence of the grade step, which an abstention keeps too: 0-1."""
    sources: list[str] = []
    """Documents of the sources, best first."""
    ranking: list[str] = []
    """Documents of the sources and then of the other candidates, best first."""
    retries: int = 0
    timings: dict[str, float] = {}
    """Milliseconds per node and in `total`."""
    calls: int = 0
    """Number of calls of language models."""
    tokens: int = 0
    cost: float | None = 0.0
    warnings: list[str] = []

    @property
    def answered(self) -> bool:
        """True where the answer states something and cites it."""
        return bool(self.citations) and not self.abstained


class Asking:
    """Asks questions in one profile. It bypasses the answer cache and leaves nothing in the database."""

    def __init__(self, services: Services, profile: Profile, shelf: Shelf, used: list[ModelUsage]) -> None:
        """What models use is added to `used` as they are asked."""
        self._used = used
        self._services = services
        self._profile = profile
        self._shelf = shelf
        self._saver = InMemorySaver()
        self._graph = build_answer_graph(self._saver, services.settings.model_timeout)

    async def ask(self, question: Question) -> Outcome:
        """Ask the question and return its outcome, which also reports errors."""
        thread_id = str(uuid4())
        try:
            for earlier in question.before:
                await self._take_turn(question, earlier, thread_id)
            started = perf_counter()
            state = await self._take_turn(question, question.question, thread_id)
            return await self._describe(question, state, 1000 * (perf_counter() - started))
        except AskgraphError as error:
            return Outcome(id=question.id, error=error.message)
        except NodeTimeoutError as error:
            return Outcome(id=question.id, error=f"The step {error.node!r} took too long.")
        except Exception as error:
            # A bug that one question meets is a finding, and must not lose the others.
            logger.exception("question %s failed unexpectedly", question.id)
            return Outcome(id=question.id, error=f"{type(error).__name__}: {error}")
        finally:
            await self._saver.adelete_thread(thread_id)

    async def _take_turn(self, question: Question, asked: str, thread_id: str) -> AnswerState:
        """Ask in the thread, where `question` is, with a run of its own: generate tells by it what is a follow-up."""
        chosen = None if question.pdf is None else [self._shelf.chosen[question.pdf]]
        turn = TurnInput(
            run_id=str(uuid4()),
            question=asked,
            scope=Scope.within(self._shelf.find_workspace(question), chosen).to_json(),
            mode=self._profile.name,
            profile=self._profile.model_dump(),
        )
        config = RunnableConfig(
            configurable={"thread_id": thread_id},
            run_id=UUID(turn["run_id"]),
            run_name="evaluation",
            recursion_limit=RECURSION_LIMIT,
        )
        context = replace(self._services.make_context(), ledger=_Metered(self._used))
        stream = self._graph.astream(turn, config, context=context, stream_mode=["custom", "values"], durability="exit")
        state: Any = None
        async with (
            self._services.admission.take_turn() as end_turn,
            aclosing(cast("AsyncGenerator[tuple[str, Any]]", stream)) as parts,
        ):
            async for kind, part in parts:
                if kind == "values":
                    state = part
                elif part["type"] == "content":
                    end_turn()
        return cast(AnswerState, state)

    async def _describe(self, question: Question, state: AnswerState, total_ms: float) -> Outcome:
        names = await self._name_chunks(question, state)
        usage = [used for step in state["steps"] for used in step["usage"]]
        return Outcome(
            id=question.id,
            route=state["route"],
            standalone=state["standalone_question"],
            queries=state["queries_tried"],
            answer=state["answer"],
            abstained=state["outcome"] in ABSTENTIONS,
            facts_shown=all(find_facts(question, "\n".join(source["text"] for source in state["sources"]))),
            opening=state["framing"]["opening"],
            citations=[
                Cited(doc=names.get(c["chunk_id"]) or c["title"], start=c["start"], end=c["end"], text=c["text"])
                for c in state["citations"]
            ],
            confidence=state["graded"],
            sources=_distinct(names.get(source["chunk_id"]) for source in state["sources"]),
            ranking=_distinct(names.get(chunk["chunk_id"]) for chunk in (*state["sources"], *state["candidates"])),
            retries=state["retries"],
            timings={**sum_timings(state["steps"]), "total": round(total_ms, 2)},
            calls=sum(used["calls"] for used in usage),
            tokens=count_tokens(usage),
            cost=add_costs(used["cost"] for used in usage),
            warnings=_distinct(warning for step in state["steps"] for warning in step["warnings"]),
        )

    async def _name_chunks(self, question: Question, state: AnswerState) -> dict[str, str | None]:
        """Return the set's name of each chunk's document, and of its page where the question asks for one, by chunk id;
        None for documents outside the set."""
        found: list[Source | Candidate] = [*state["sources"], *state["candidates"]]
        names = {chunk["chunk_id"]: self._shelf.document_ids.get(chunk["document_id"]) for chunk in found}
        if all(relevant.page is None for relevant in question.relevant):
            return names
        scope = Scope(self._shelf.find_workspace(question))
        passages = await self._services.library.search.read_passages(scope, list(names))
        return {p.chunk_id: name_page(name, p.page) for p in passages if (name := names[p.chunk_id])}


class _Metered(Ledger):
    """A ledger that also adds what is used to a list, before the step ends."""

    def __init__(self, used: list[ModelUsage]) -> None:
        super().__init__()
        self._used = used

    def record(self, usage: ModelUsage) -> None:
        self._used.append(usage)
        super().record(usage)


def _distinct(names: Iterable[str | None]) -> list[str]:
    """Return the names in order, without repeats and None."""
    return [name for name in dict.fromkeys(names) if name is not None]
