"""reformulate: another way to search for what was missing. Never a query that was already tried."""

from langgraph.runtime import Runtime
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from domain.documents import Candidate, Source
from domain.ports import ChatModel, Message
from domain.state import Attempt
from nodes.context import Context
from nodes.judgement import ask_or_none
from nodes.local.reformulation import reformulate as reformulate_locally

PROMPT = """A search over a team's documents did not find enough to answer a question. Write one different search
query that may find it: use other words for the same thing, spell out abbreviations, or ask for the part that is
missing first. Keep names and numbers. Do not repeat a query that was already tried."""


class ReformulateInput(TypedDict):
    """What reformulate reads."""

    standalone_question: str
    query: str
    queries_tried: list[str]
    retries: int
    candidates: list[Candidate]
    sources: list[Source]
    confidence: float
    missing: list[str]


class ReformulateUpdate(TypedDict):
    """What reformulate writes. `query` stays as it was where there is nothing new to try."""

    query: str
    retries: int
    previous: Attempt | None


class Reformulation(BaseModel):
    """The model's rewrite."""

    query: str = Field(min_length=1, max_length=2000)


async def reformulate(state: ReformulateInput, runtime: Runtime[Context]) -> ReformulateUpdate:
    """Rewrite the query from what was missing and count the retry."""
    context = runtime.context
    rewritten: str | None = None
    if (model := context.models.small) is not None:
        rewritten = await ask_or_none(
            _ask_model(model, state, context),
            context.ledger,
            "The query was reformulated without the language model",
        )
    if rewritten is None or is_tried(rewritten, state["queries_tried"]):
        rewritten = reformulate_locally(
            state["standalone_question"],
            state["missing"],
            state["sources"],
            state["queries_tried"],
            background=_find_background(state),
        )
    attempt = Attempt(
        query=state["query"],
        candidates=state["candidates"],
        sources=state["sources"],
        confidence=state["confidence"],
        missing=state["missing"],
    )
    return ReformulateUpdate(
        query=rewritten or state["query"],
        retries=state["retries"] + 1,
        previous=attempt if rewritten else None,
    )


def _find_background(state: ReformulateInput) -> str:
    """What the conversation lent to the first query."""
    first = state["queries_tried"][0] if state["queries_tried"] else ""
    return first.removeprefix(state["standalone_question"]) if first.startswith(state["standalone_question"]) else ""


def is_tried(query: str, tried: list[str]) -> bool:
    """Whether the query differs from those tried by more than case and white space."""
    return " ".join(query.casefold().split()) in {" ".join(t.casefold().split()) for t in tried}


async def _ask_model(model: ChatModel, state: ReformulateInput, context: Context) -> str:
    lines = [
        f"Question: {state['standalone_question']}",
        "Queries tried:",
        *(f"- {query}" for query in state["queries_tried"]),
        f"Missing: {', '.join(state['missing']) or 'unknown'}",
        "What the search found is titled:",
        *(f"- {source['title']}" for source in state["sources"]),
    ]
    reply = await model.judge(
        [Message("system", PROMPT), Message("user", "\n".join(lines))], Reformulation, context.ledger
    )
    return reply.query.strip()
