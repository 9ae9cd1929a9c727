"""Research: the agent's rounds as steps of the graph, on the real library, with a model over the real wire."""

import json

from app.settings import Settings
from domain.outcome import ANSWERS
from tests.asking import ask_for_events, read_state, steps_of
from tests.graphs.test_answer_with_model import serve

QUESTION = "How long is the warranty of the Amsel?"
LACKING = "TOOLS: look further"
SEARCH = ["retrieve", "rerank", "grade"]
AMSEL = (
    b"# Amsel manual\n\nThe Amsel rain gauge has a warranty of 24 months. Its funnel must be cleaned every 8 weeks.\n"
)


async def test_the_agent_searches_until_it_has_enough_and_its_sources_are_cited(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", "amsel.md", AMSEL)
        server.behaviour.replies = [LACKING]
        server.behaviour.tool_calls = [
            [{"name": "search", "arguments": {"queries": ["warranty of the Amsel", "warranty of the Falke"]}}],
            [{"name": "read", "arguments": {"document": "amsel.md"}}, {"name": "burn", "arguments": {}}],
        ]
        done, events = await ask_for_events(services, QUESTION, mode="research")
        state = await read_state(services, done["thread_id"])
    steps = steps_of(events)
    assert steps[:5] == ["route", "retrieve", "rerank", "grade", "generate"]
    assert steps[5:12] == ["work", "use_tool", "work", "use_tool", "work", "grade", "generate"]
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
        server.behaviour.replies = [LACKING]
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


async def test_every_result_of_a_tool_reaches_the_writer(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", "stock.csv", b"part,weight\nbolt,12\nnut,5\nscrew,9\n")
        server.behaviour.replies = [LACKING]
        queries = "SELECT 36 / 12.0", "SELECT missing"
        tables = "SELECT sum(weight) FROM t1", "SELECT max(weight) FROM t1"
        server.behaviour.tool_calls = [
            [
                *({"name": "calculate", "arguments": {"sql": sql}} for sql in queries),
                *({"name": "calculate", "arguments": {"sql": sql, "documents": ["stock.csv"]}} for sql in tables),
                {"name": "find", "arguments": {"text": "no such text"}},
            ]
        ]
        done, _ = await ask_for_events(services, "How many years is the warranty of the Falke?")
        state = await read_state(services, done["thread_id"])
        last = [body["messages"][-1]["content"] for body in server.requests if body.get("stream")][-1]
    sources, _, besides = last.partition("Found with tools besides:\n")
    assert besides.partition("\n\nQuestion: ")[0] == (
        'Computed: SELECT 36 / 12.0\n36 / 12.0\n|---|\n3\n\nfind {"text": "no such text"}\nIt stands nowhere.'
    )
    assert all(f"Computed: {sql}\n" in sources for sql in tables)
    assert any("26" in source.get("computed", "") for source in state["sources"])


async def test_an_agent_whose_model_fails_answers_from_what_there_is(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = [LACKING]
        server.behaviour.faults = [None, "length"]
        done, _ = await ask_for_events(services, mode="research")
    assert "36 months" in done["answer"]
    assert [each["node"] for each in done["degraded"]] == ["work"]


async def test_what_a_model_asks_for_is_searched_for_and_joins_the_sources(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", "amsel.md", AMSEL)
        server.behaviour.replies = [
            json.dumps({"route": "needs_retrieval", "standalone_question": "", "task": "compare", "queries": []}),
            "SEARCH: funnel cleaned weeks\nSEARCH: ",
        ]
        done, events = await ask_for_events(
            services, "How long is the warranty of the Falke, and how is it cleaned?", limit=1
        )
        state = await read_state(services, done["thread_id"])
    steps = steps_of(events)
    assert steps == ["route", *SEARCH, "generate", "reformulate", *SEARCH, "generate"]
    assert "SEARCH" not in "".join(event["token"] for event in events if event["type"] == "content")
    text = [source["text"] for source in state["sources"]]
    assert any("36 months" in each for each in text)
    assert any("8 weeks" in each for each in text)
    assert state["queries_tried"][-1] == "funnel cleaned weeks"
    first, second = [body["messages"][-1]["content"] for body in server.requests if body.get("stream")]
    shown = first.partition("\n\nBefore you write")[0]
    assert second.startswith(shown), "what was shown keeps its number and place"
    assert state["retries"] == 1


async def test_where_what_is_asked_for_was_searched_for_already_the_model_answers(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        question = "How long is the warranty of the Falke?"
        server.behaviour.replies = [f"**SEARCH:** {question}"]
        done, events = await ask_for_events(services, question)
        prompts = [body["messages"][-1]["content"] for body in server.requests]
    assert steps_of(events) == ["route", *SEARCH, "generate", "reformulate", "generate"]
    assert [("SEARCH:" in each, "TOOLS:" in each) for each in prompts] == [(True, True), (False, False)]
    assert done["outcome"] in ANSWERS
