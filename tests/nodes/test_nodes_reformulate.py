"""reformulate hands the local rewrite what the conversation lent to the question."""

from langgraph.runtime import Runtime

from app.wiring.services import Services
from domain.profile import MODES
from nodes.reformulate.step import ReformulateInput, reformulate
from tests.sources import make_source


async def test_a_retry_of_a_follow_up_keeps_what_its_conversation_lent_it(services: Services) -> None:
    question, background = "What is its MTBF?", " (pump Amsel)"
    source = make_source("The mean time between failures (MTBF) is 9,000 hours.", title="Pumps")
    state = ReformulateInput(
        profile=MODES["standard"].model_dump(),
        standalone_question=question,
        query=question + background,
        queries_tried=[question + background],
        retries=0,
        candidates=[],
        sources=[source],
        confidence=0.3,
        missing=[],
    )
    update = await reformulate(state, Runtime(context=services.make_context()))
    assert update["query"] == f"What is its MTBF mean time between failures?{background}"
