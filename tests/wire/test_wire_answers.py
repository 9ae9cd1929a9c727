"""The loopback model understands the prompts that the nodes really send."""

from collections.abc import AsyncIterator

import openai
import pytest_asyncio

from app.adapters.chat.openai import OpenAIChat
from domain.documents import Source
from domain.ports.models import Message
from domain.text.question import choose_untried
from nodes.generate import step as generate
from nodes.grade import step as grade
from nodes.prompting.messages import show_sources
from nodes.reconcile import step as reconcile
from nodes.reformulate import step as reformulate
from nodes.route import step as route
from nodes.writing import judging
from tests.asking import ABSTENTION
from tests.contracts.chat_model import Sink
from tests.sources import make_source
from tests.wire.openai import serve_openai


def source(number: int, text: str) -> Source:
    return make_source(text, number=number, score=1.0)


SOURCES = show_sources([
    source(1, "The notice period is six weeks. It starts on the first of a month."),
    source(2, "Employees have 30 days of holidays a year. Unused days expire in March."),
])  # fmt: skip


@pytest_asyncio.fixture
async def model() -> AsyncIterator[OpenAIChat]:
    async with serve_openai() as server, openai.DefaultAsyncHttpxClient() as http:
        yield OpenAIChat("gpt-4.1-mini", api_key="key", base_url=server.base_url, timeout=10, http=http)


async def ask_route(model: OpenAIChat, *conversation: str) -> route.Routing:
    roles = ["user", "assistant"] * len(conversation)
    system = Message("system", route.PROMPT.format(titles="- Handbook", count=4))
    turns = [Message(role, text) for role, text in zip(roles, conversation, strict=False)]  # type: ignore[arg-type]
    return await model.judge([system, *turns], route.Routing, Sink())


async def test_routes(model: OpenAIChat) -> None:
    assert (await ask_route(model, "How long is the notice period?")).route == "needs_retrieval"
    assert (await ask_route(model, "Hello there!")).route == "conversational"
    assert (await ask_route(model, "Play some music")).route == "out_of_scope"


async def test_makes_a_follow_up_stand_alone(model: OpenAIChat) -> None:
    routing = await ask_route(model, "How long is the notice period?", "Six weeks [1].", "When does it start?")
    assert "notice period" in routing.standalone_question


async def test_grades(model: OpenAIChat) -> None:
    async def grade_for(question: str) -> grade.Grading:
        messages = [Message("system", grade.PROMPT), Message("user", f"{SOURCES}\n\nQuestion: {question}")]
        return await model.judge(messages, grade.Grading, Sink())

    assert (await grade_for("How long is the notice period?")).confidence >= 0.6
    poor = await grade_for("Which parking garage may visitors use?")
    assert poor.confidence < 0.4
    assert "garag" in poor.missing


async def test_reformulates_into_something_new(model: OpenAIChat) -> None:
    tried = ["How long is the notice period?", "long notice period"]
    lines = [f"Question: {tried[0]}", "Queries tried:", *(f"- {query}" for query in tried), "Missing: unknown"]
    messages = [Message("system", reformulate.PROMPT), Message("user", "\n".join(lines))]
    assert choose_untried((await model.judge(messages, reformulate.Reformulation, Sink())).queries, tried)


async def answer(model: OpenAIChat, question: str) -> str:
    messages = [
        Message(
            "system",
            generate.PROMPT.format(
                today="",
                task="",
                abstention=ABSTENTION,
                nearest="",
                checked="",
                length="brief",
                brief=generate.BRIEF,
                tone="plain",
                instructions="",
            ),
        ),
        Message("user", f"{SOURCES}\n\nQuestion: {question}"),
    ]
    return "".join([piece async for piece in model.stream(messages, Sink(), temperature=0, max_tokens=100)])


async def test_answers_with_markers_or_abstains(model: OpenAIChat) -> None:
    assert await answer(model, "How long is the notice period?") == "The notice period is six weeks [1]."
    assert await answer(model, "Which parking garage may visitors use?") == ABSTENTION


CLAIMS = """Claims:
1. The notice period is six weeks [2].
2. Employees have 25 days of holidays [2].
3. Visitors park in the garage."""


async def test_verifies_claims(model: OpenAIChat) -> None:
    messages = [Message("system", judging.PROMPT), Message("user", f"{SOURCES}\n\n{CLAIMS}")]
    reply = await model.judge(messages, judging.Judgements, Sink())
    assert [(j.claim, j.verdict, j.sources) for j in reply.judgements] == [
        (1, "supported", [1]),
        (2, "not_found", []),
        (3, "not_found", []),
    ]
    assert "25" in reply.judgements[1].reason


async def test_rewrites_what_is_not_supported(model: OpenAIChat) -> None:
    claims = "Claims:\n1. Employees have 25 days of holidays [2]. (The source does not give 25.)\n2. Cats bark. (No.)"
    messages = [Message("system", reconcile.PROMPT), Message("user", f"{SOURCES}\n\n{claims}")]
    reply = await model.judge(messages, reconcile.Repairs, Sink())
    assert reply.rewrites == ["Employees have 30 days of holidays a year [2].", ""]
