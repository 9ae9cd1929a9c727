"""Research: the agent's rounds as steps of the graph, on the real library, with a model over the real wire."""

import json
from typing import Any

from app.settings import Settings
from domain.outcome import ANSWERS
from tests.asking import SHORT_HANDBOOK, ask_for_events, grading, read_state, steps_of
from tests.graphs.test_answer_with_model import serve

QUESTION = "How long is the warranty of the Amsel?"
AMSEL = (
    b"# Amsel manual\n\nThe Amsel rain gauge has a warranty of 24 months. Its funnel must be cleaned every 8 weeks.\n"
)


async def test_the_agent_searches_until_it_has_enough_and_its_sources_are_cited(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", "amsel.md", AMSEL)
        server.behaviour.tool_calls = [
            [{"name": "search", "arguments": {"queries": ["warranty of the Amsel", "warranty of the Falke"]}}],
            [{"name": "read", "arguments": {"document": "amsel.md"}}, {"name": "burn", "arguments": {}}],
        ]
        done, events = await ask_for_events(services, QUESTION, mode="research")
        state = await read_state(services, done["thread_id"])
    steps = steps_of(events)
    assert steps[:8] == ["route", "retrieve", "rerank", "work", "use_tool", "work", "use_tool", "work"]
    assert steps[8:10] == ["grade", "generate"]
    assert [len(each["calls"]) for each in state["work"]] == [1, 2, 0]
    assert [event["name"] for event in events if event["type"] == "tool_call"] == ["search", "read", "burn"]
    shown = [message["content"] for body in server.requests if body.get("tools") for message in body["messages"]]
    assert any("There is no tool 'burn'" in text for text in shown if text)
    text = " ".join(source["text"] for source in state["sources"])
    assert "36 months" in text
    assert "24 months" in text
    assert done["citations"]
    assert {used["node"] for used in done["usage"]} >= {"work", "generate"}


async def test_the_agent_is_asked_no_more_often_than_its_mode_allows(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        again = [{"name": "search", "arguments": {"queries": ["warranty"]}}]
        server.behaviour.tool_calls = [again] * 50
        done, events = await ask_for_events(services, mode="research")
        state = await read_state(services, done["thread_id"])
    rounds = services.modes["research"].research.rounds
    steps = steps_of(events)
    # The server calls each of them call_1.
    names = [call["id"] for each in state["work"] for call in each["calls"]]
    assert names[:rounds] == ["call_1", *(f"call_1-{number}-1" for number in range(2, rounds + 1))]
    assert steps.count("work") == steps.count("use_tool") == rounds
    assert done["outcome"] in ANSWERS


async def test_the_standard_mode_computes_with_the_tables_of_the_library(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", "stock.csv", b"part,weight\nbolt,12\nnut,5\nscrew,9\n")
        server.behaviour.replies = [
            json.dumps({"route": "needs_retrieval", "standalone_question": "", "task": "compute", "queries": []})
        ]
        server.behaviour.tool_calls = [
            [{"name": "calculate", "arguments": {"sql": "SELECT sum(weight) FROM t1", "documents": ["stock.csv"]}}]
        ]
        done, events = await ask_for_events(services, "What do all parts of the stock weigh?")
        state = await read_state(services, done["thread_id"])
    assert [event["name"] for event in events if event["type"] == "tool_call"] == ["calculate"]
    assert any("26" in source.get("computed", "") for source in state["sources"])


async def test_an_agent_whose_model_fails_answers_from_what_there_is(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.faults = [None, "length"]
        done, _ = await ask_for_events(services, mode="research")
    assert "36 months" in done["answer"]
    assert [each["node"] for each in done["degraded"]] == ["work"]


async def test_without_a_model_research_answers_like_a_mode_without_an_agent(services: Any) -> None:
    await services.library.ingestion.add("default", "handbook.md", SHORT_HANDBOOK)
    done, events = await ask_for_events(services, mode="research")
    assert "36 months" in done["answer"]
    assert len(done["warnings"]) == 1
    assert steps_of(events).count("work") == 1


async def test_what_a_model_missed_is_searched_for_and_joins_the_sources(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", "amsel.md", AMSEL)
        server.behaviour.replies = [
            json.dumps({"route": "needs_retrieval", "standalone_question": "", "task": "compare", "queries": []}),
            json.dumps({"confidence": 0.7, "missing": ["funnel cleaned weeks"]}),
            grading(0.96),
        ]
        done, events = await ask_for_events(
            services, "How long is the warranty of the Falke, and how is it cleaned?", limit=1
        )
        state = await read_state(services, done["thread_id"])
    steps = steps_of(events)
    assert steps == ["route", "retrieve", "rerank", "grade", "reformulate", "retrieve", "rerank", "grade", "generate"]
    text = [source["text"] for source in state["sources"]]
    assert any("36 months" in each for each in text)
    assert any("8 weeks" in each for each in text)
    assert state["queries_tried"][-1] == "funnel cleaned weeks"
    assert state["confidence"] == 0.96
