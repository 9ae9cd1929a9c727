"""reformulate: what it asks for, and what it remembers of the attempt before."""

from typing import Any

from langgraph.runtime import Runtime

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.wiring.services import Services
from domain.profile import MODES
from graphs.decisions import decide_retry
from nodes.context import Models
from nodes.reformulate.step import ReformulateInput, ReformulateUpdate, reformulate
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.nodes.recorded_model import RecordedModel
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


class Reformulator:
    """Has one query to offer, or none."""

    def __init__(self, query: str | None) -> None:
        self.query = query

    async def reformulate(self, *_: Any) -> str | None:
        return self.query


async def run(embedder: OnnxEmbedder, query: str | None, **fields: Any) -> ReformulateUpdate:
    state = make_state(query="first", queries_tried=["first"], confidence=0.3, missing=["price"], **fields)
    return await reformulate(state, make_runtime(embedder, [], reformulator=Reformulator(query)))


async def test_a_new_query_is_a_retry_that_remembers_the_attempt_before_it(embedder: OnnxEmbedder) -> None:
    update = await run(embedder, "second", retries=1)
    assert (update["query"], update["parts"], update["retries"]) == ("second", [], 2)
    assert update["previous"] is not None
    assert (update["previous"]["query"], update["previous"]["confidence"], update["previous"]["missing"]) == (
        "first",
        0.3,
        ["price"],
    )


async def test_where_nothing_is_new_the_query_stays_and_there_is_no_attempt_to_go_back_to(
    embedder: OnnxEmbedder,
) -> None:
    update = await run(embedder, None)
    assert (update["query"], update["retries"], update["previous"]) == ("first", 1, None)
    assert decide_retry(make_state(query=update["query"], queries_tried=["first"])) == "nothing new"


async def test_a_model_is_told_what_was_tried_what_is_missing_and_what_was_found(embedder: OnnxEmbedder) -> None:
    model = RecordedModel({"query": " second "})
    state = make_state(
        query="first",
        queries_tried=["first", "earlier"],
        confidence=0.3,
        missing=["price", "date"],
        sources=[make_source("Lunch.", title="Canteen")],
    )
    update = await reformulate(state, make_runtime(embedder, [], Models(small=model)))
    assert (update["query"], update["retries"]) == ("second", 1)
    request = model.prompts[0][-1].content
    assert all(said in request for said in ("first", "earlier", "price, date", "Canteen", state["standalone_question"]))


async def test_a_query_of_the_model_that_was_tried_gives_way_to_the_local_one(embedder: OnnxEmbedder) -> None:
    state = make_state(query="first", queries_tried=["first"], confidence=0.3, missing=["price"])
    runtime = make_runtime(
        embedder, [], Models(small=RecordedModel({"query": "first"})), reformulator=Reformulator("local")
    )
    assert (await reformulate(state, runtime))["query"] == "local"
