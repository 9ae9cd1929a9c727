"""LangGraph's SDK for Python and its `RemoteGraph`, unmodified, against the service."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, cast

import httpx
import pytest
import pytest_asyncio
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError
from typing_extensions import TypedDict

from app.api.asking import streams
from app.api.protocols.agent_server import reading, runs
from app.wiring.services import Services
from domain.scope import Scope
from tests.asking import QUESTION
from tests.conftest import HANDBOOK
from tests.http_client import serve_services
from tests.protocols.examples import read_example
from tests.protocols.node_clients import needs_node, run_node

FOLLOW_UP = "Who handles claims?"
BATTERY = "How long does the battery of the Falke last?"
ENDLESS = "How often must the barometer of the Falke be calibrated?"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Served:
    """The service at an address, and a client of it."""

    address: str
    services: Services
    client: LangGraphClient

    async def ask_plainly(self, question: str) -> Any:
        """Return the answer of our own API."""
        async with httpx.AsyncClient(base_url=self.address, timeout=60) as plain:
            answer = await plain.post("/api/chat", json={"question": question}, params={"stream": "false"})
        return answer.json()

    async def begin(self, question: str = QUESTION, **options: Any) -> tuple[str, dict[str, Any]]:
        """Ask in a new thread. Returns its id and the final state."""
        thread = await self.client.threads.create()
        values: Any = await self.client.runs.wait(thread["thread_id"], "standard", input=say(question), **options)
        return thread["thread_id"], values


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(module_services: Services) -> AsyncIterator[Served]:
    """The service, once for all tests."""
    await module_services.library.ingestion.add("default", "handbook.md", HANDBOOK)
    async with (
        serve_services(module_services) as address,
        get_client(url=f"{address}/langgraph", api_key=None) as client,
    ):
        yield Served(address, module_services, client)


@pytest.fixture
def going(served: Served, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """`ENDLESS` is not answered before it is stopped; set once its search has begun."""
    kind, begun = type(served.services.library.search), asyncio.Event()
    search_lexical = kind.search_lexical

    async def wait(library: Any, scope: Any, query: str, limit: int) -> Any:
        # A question that follows it may be searched for together with its words.
        if "barometer" in query and "warranty" not in query:
            begun.set()
            await asyncio.sleep(60)
        return await search_lexical(library, scope, query, limit)

    monkeypatch.setattr(kind, "search_lexical", wait)
    return begun


def say(text: str, **more: Any) -> dict[str, Any]:
    """Make an input with one message."""
    return {"messages": [{"type": "human", "content": text, **more}]}


def read(values: Any) -> list[str]:
    """Return the texts of a state's messages."""
    return [message["content"] for message in values["messages"]]


async def test_a_question_is_answered_as_by_our_own_api(served: Served) -> None:
    client = served.client
    own = await served.ask_plainly(QUESTION)
    thread_id, values = await served.begin(QUESTION)
    assert read(values) == [QUESTION, own["answer"]]
    assert (values["citations"], values["outcome"]) == (own["citations"], "answered")
    modes: Any = ["values", "messages-tuple"]
    parts = [part async for part in client.runs.stream(thread_id, "standard", input=say(FOLLOW_UP), stream_mode=modes)]
    said: list[Any] = [part.data for part in parts if part.event == "messages"]
    pieces = [chunk["content"] for chunk, _ in said]
    final = parts[-1].data
    assert read(final) == [QUESTION, own["answer"], FOLLOW_UP, "".join(pieces)]
    assert "Petra Lindqvist" in pieces[-1]
    state: Any = await client.threads.get_state(thread_id)
    assert read(state["values"]) == read(final)
    assert state["values"]["messages"][-1] == final["messages"][-1]
    assert state["next"] == []
    [last, first] = await client.runs.list(thread_id)
    assert (first["status"], last["status"]) == ("success", "success")
    assert await client.runs.join(thread_id, first["run_id"]) == values | {
        "messages": state["values"]["messages"][:2],
    }


async def test_a_run_without_a_thread_answers_the_conversation_that_it_is_sent(served: Served) -> None:
    said: Any = [
        {"role": "system", "content": ""},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "36 months."},
        {"role": "user", "content": [{"type": "text", "text": FOLLOW_UP}], "id": "asked"},
    ]
    values: Any = await served.client.runs.wait(None, "fast", input={"messages": said})
    assert "Petra Lindqvist" in read(values)[-1]
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "human", "ai"]
    assert values["messages"][2]["id"] == "asked"
    values = await served.client.runs.wait(None, "fast", input={"question": QUESTION})
    assert values["mode"] == "fast"
    # The same again comes from the cache, and is found like any other run.
    run = await served.client.runs.create(None, "fast", input={"question": QUESTION})
    joined: Any = await served.client.runs.join(run["thread_id"], run["run_id"])
    assert read(joined) == read(values)


async def test_threads_are_made_noted_found_and_deleted(served: Served) -> None:
    threads = served.client.threads
    made: Any = await threads.create(thread_id="of-the-team", metadata={"team": "support"})
    assert (made["status"], made["values"]) == ("idle", None)
    with pytest.raises(APIStatusError, match="There is a thread 'of-the-team' already"):
        await threads.create(thread_id="of-the-team")
    # Of whose name in another workspace nothing is told.
    elsewhere: Any = await threads.create(thread_id="of-the-team", params={"workspace": "another"})
    assert (elsewhere["thread_id"], elsewhere["metadata"]) == ("of-the-team", {})
    again = await threads.create(thread_id="of-the-team", if_exists="do_nothing")
    assert again["metadata"] == {"team": "support"}
    await served.client.runs.wait("of-the-team", "standard", input=say(QUESTION))
    await threads.update("of-the-team", metadata={"open": True})
    found: Any
    [found] = await threads.search(metadata={"team": "support", "graph_id": "standard"})
    assert found["metadata"]["open"] is True
    assert "36 months" in read(found["values"])[-1]
    assert await threads.search(metadata={"team": "sales"}) == []
    with pytest.raises(APIStatusError, match="may have 20,000 bytes, and would have 20,"):
        await threads.update("of-the-team", metadata={"more": "x" * 19_980})
    chosen: Any
    [chosen] = await threads.search(ids=["of-the-team"], select=["thread_id"])
    assert chosen == {"thread_id": "of-the-team"}
    await threads.delete("of-the-team")
    with pytest.raises(APIStatusError, match="There is no thread 'of-the-team'"):
        await threads.get("of-the-team")


async def test_threads_are_listed_in_the_order_that_the_client_wants(served: Served) -> None:
    threads, noted = served.client.threads, {"listed": True}
    made = [(await threads.create(metadata=noted))["thread_id"] for _ in range(3)]
    await threads.update(made[1], metadata={"again": True})
    orders: dict[Any, list[str]] = {
        "thread_id": sorted(made),
        "created_at": made,
        "updated_at": [made[0], made[2], made[1]],
        "state_updated_at": [made[0], made[2], made[1]],
        "status": sorted(made),
    }
    for order, expected in orders.items():
        found = await threads.search(metadata=noted, sort_by=order, sort_order="asc")
        assert [each["thread_id"] for each in found] == expected
        # A page at a time, each thread once, and by default the other way round.
        pages = [await threads.search(metadata=noted, sort_by=order, limit=1, offset=number) for number in range(3)]
        assert [each["thread_id"] for [each] in pages] == expected[::-1]


async def test_the_events_of_a_run_tell_its_steps_and_its_text(served: Served) -> None:
    both: Any = ["events", "tools"]
    stream = served.client.runs.stream(None, "fast", input=say(f"{QUESTION} Tell me."), stream_mode=both)
    told: list[Any] = [part.data async for part in stream if part.event == "events"]
    steps = [each["name"] for each in told if each["event"] == "on_chain_start"]
    assert (steps[:2], steps[-1]) == (["fast", "route"], "generate")
    text = "".join(each["data"]["chunk"]["content"] for each in told if each["event"] == "on_chat_model_stream")
    [written] = [each["data"]["output"]["content"] for each in told if each["event"] == "on_chat_model_end"]
    assert (told[0]["event"], told[-1]["event"]) == ("on_chain_start", "on_chain_end")
    assert read(told[-1]["data"]["output"])[-1] == text == written
    assert "36 months" in text


async def test_a_stream_is_joined_from_its_start_or_past_an_event(served: Served) -> None:
    thread_id, _ = await served.begin(BATTERY)
    run = (await served.client.runs.create(thread_id, "standard", input=say(FOLLOW_UP)))["run_id"]
    join = served.client.runs.join_stream
    whole = [part async for part in join(thread_id, run, last_event_id="-1")]
    assert whole[0].event == "metadata"
    middle = whole[len(whole) // 2]
    rest = [part async for part in join(thread_id, run, last_event_id=middle.id)]
    assert [(part.id, part.event) for part in rest] == [(p.id, p.event) for p in whole[len(whole) // 2 + 1 :]]
    only = [part.event async for part in join(thread_id, run, stream_mode=["values"])]
    assert set(only) == {"metadata", "values"}
    with pytest.raises(APIStatusError, match="Last-Event-ID is the id of an event"):
        [part async for part in join(thread_id, run, last_event_id="x")]


async def test_a_run_is_stopped_and_a_busy_thread_asked_as_the_client_wants(
    served: Served, going: asyncio.Event
) -> None:
    client = served.client
    thread_id = (await client.threads.create())["thread_id"]
    run = (await client.runs.create(thread_id, "standard", input=say(ENDLESS)))["run_id"]
    await going.wait()
    assert (await client.runs.get(thread_id, run))["status"] == "running"
    assert (await client.threads.get(thread_id))["status"] == "busy"
    with pytest.raises(APIStatusError) as refused:
        await client.runs.create(thread_id, "standard", input=say(QUESTION), multitask_strategy="reject")
    assert refused.value.status_code == 409
    values: Any = await client.runs.wait(thread_id, "standard", input=say(QUESTION), multitask_strategy="interrupt")
    # What was stopped has an answer as well: what was written of it.
    assert [message["type"] for message in values["messages"]] == ["human", "ai", "human", "ai"]
    assert read(values)[0] == ENDLESS
    assert "36 months" in read(values)[-1]
    assert (await client.runs.get(thread_id, run))["status"] == "interrupted"
    going.clear()
    thread_id = (await client.threads.create())["thread_id"]
    run = (await client.runs.create(thread_id, "standard", input=say(ENDLESS)))["run_id"]
    await going.wait()
    final: Any = await cast(Any, client.runs.cancel)(thread_id, run, wait=True)
    assert read(final)[0] == ENDLESS
    assert (await client.runs.get(thread_id, run))["status"] == "interrupted"


async def test_what_is_cancelled_has_ended_when_that_is_answered(served: Served, going: asyncio.Event) -> None:
    client = served.client
    thread_id = (await client.threads.create())["thread_id"]
    run = (await client.runs.create(thread_id, "standard", input=say(ENDLESS)))["run_id"]
    await going.wait()
    await client.runs.cancel(thread_id, run)
    assert (await client.runs.get(thread_id, run))["status"] == "interrupted"
    going.clear()
    begun = [await client.runs.create(thread_id, "standard", input=say(ENDLESS), multitask_strategy="reject")]
    begun.append(await client.runs.create(thread_id, "standard", input=say(QUESTION)))
    await going.wait()
    await client.runs.cancel_many(status="all")
    runs = await client.runs.list(thread_id, select=["run_id", "status"])
    assert all(set(each) == {"run_id", "status"} for each in runs)
    assert {each["status"] for each in runs if each["run_id"] in [one["run_id"] for one in begun]} <= {
        "interrupted",
        "success",
    }


async def test_who_waits_is_told_where_the_run_is_and_that_it_goes_on(
    served: Served, going: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "ALIVE_SECONDS", 0.05)
    body = {"assistant_id": "standard", "input": say(ENDLESS)}
    async with (
        httpx.AsyncClient(base_url=f"{served.address}/langgraph") as plain,
        plain.stream("POST", "/runs/wait", json=body) as response,
        asyncio.timeout(20),
    ):
        place = response.headers["content-location"]
        assert response.headers["location"] == place + "/join"
        parts = response.aiter_text()
        assert not (await anext(parts)).strip()
        await plain.post(f"{place}/cancel")
        told = "".join([part async for part in parts])
    assert json.loads(told)["messages"][0]["content"] == ENDLESS


async def test_what_a_client_notes_of_a_run_is_kept(served: Served) -> None:
    client = served.client
    thread_id = (await client.threads.create())["thread_id"]
    noted: dict[str, Any] = {"metadata": {"team": "sales"}, "multitask_strategy": "interrupt", "stream_mode": "values"}
    run = await client.runs.create(thread_id, "standard", input=say(QUESTION, id="m1"), **noted)
    await client.runs.join(thread_id, run["run_id"])
    described = await client.runs.get(thread_id, run["run_id"])
    assert described["metadata"]["team"] == "sales"  # type: ignore[index]
    assert described["multitask_strategy"] == "interrupt"
    joined = [part.event async for part in client.runs.join_stream(thread_id, run["run_id"])]
    assert set(joined) <= {"metadata", "values"}
    state: Any = await client.threads.get_state(thread_id)
    assert [message["id"] for message in state["values"]["messages"]] == ["m1", run["run_id"]]
    await client.threads.update_state(thread_id, say(FOLLOW_UP, id="m1"))
    state = await client.threads.get_state(thread_id)
    assert read(state["values"])[0] == FOLLOW_UP
    assert len(read(state["values"])) == 2


async def test_a_run_goes_on_from_the_first_checkpoint(served: Served) -> None:
    thread_id, _ = await served.begin(f"{QUESTION} Say it.")  # and not from the cache, which has no steps
    first = (await served.client.threads.get_history(thread_id, limit=100))[-1]
    values: Any = await served.client.runs.wait(thread_id, "standard", checkpoint=first["checkpoint"])
    assert "36 months" in read(values)[-1]


@pytest.mark.parametrize(
    "said",
    [
        [
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain_core", "messages", "HumanMessage"],
                "kwargs": {"content": QUESTION},
            }
        ],
        [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "c", "content": {"any": "thing"}},
            {"role": "user", "content": QUESTION, "id": None},
        ],
    ],
)
async def test_messages_are_read_in_every_form(served: Served, said: list[dict[str, Any]]) -> None:
    async with httpx.AsyncClient(base_url=f"{served.address}/langgraph", timeout=60) as plain:
        body = {"assistant_id": "standard", "input": {"messages": said}}
        answered = await plain.post("/runs/wait", json=body)
    assert "36 months" in read(answered.json())[-1]


async def test_what_was_asked_is_taken_back(served: Served, going: asyncio.Event) -> None:
    client = served.client
    thread_id, first = await served.begin(BATTERY)
    endless: Any = {"thread_id": thread_id, "assistant_id": "standard", "input": say(ENDLESS)}
    run = (await client.runs.create(**endless))["run_id"]
    await going.wait()
    final: Any = await cast(Any, client.runs.cancel)(thread_id, run, wait=True, action="rollback")
    assert read(final)[2] == ENDLESS
    state: Any = await client.threads.get_state(thread_id)
    assert read(state["values"]) == read(first)
    assert (await client.runs.get(thread_id, run))["status"] == "interrupted"
    # A run that has ended stays.
    await client.runs.cancel_many(thread_id=thread_id, run_ids=[run], action="rollback")
    assert (await client.threads.get_state(thread_id))["checkpoint"] == state["checkpoint"]
    going.clear()
    await client.runs.create(**endless)
    await going.wait()
    with pytest.raises(APIStatusError, match="still being answered"):
        await client.threads.update_state(thread_id, say("No."))
    values: Any = await client.runs.wait(thread_id, "standard", input=say(FOLLOW_UP), multitask_strategy="rollback")
    assert read(values)[:-1] == [*read(first), FOLLOW_UP]
    assert "Petra Lindqvist" in read(values)[-1]
    # The first question of a thread, and one that waits.
    thread_id = (await client.threads.create())["thread_id"]
    going.clear()
    endless |= {"thread_id": thread_id}
    runs = [(await client.runs.create(**endless))["run_id"] for _ in range(2)]
    await going.wait()
    await client.runs.cancel_many(thread_id=thread_id, run_ids=runs[::-1], action="rollback")
    state = await client.threads.get_state(thread_id)
    assert read(state["values"]) == []
    going.clear()
    await client.runs.create(**endless)
    await going.wait()
    await client.threads.delete(thread_id)
    with pytest.raises(APIStatusError, match="There is no thread"):
        await client.threads.get(thread_id)


@pytest.mark.parametrize("then", ["cancel", "continue"])
async def test_a_client_that_leaves_stops_its_run_if_it_says_so(
    served: Served, going: asyncio.Event, then: Any
) -> None:
    client = served.client
    thread_id = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread_id, "standard", input=say(ENDLESS), on_disconnect=then)
    run = (await anext(aiter(stream))).data["run_id"]
    await going.wait()
    await stream.aclose()  # type: ignore[attr-defined]
    if then == "continue":
        assert (await client.runs.get(thread_id, run))["status"] == "running"
        await client.runs.cancel(thread_id, run)
    async with asyncio.timeout(10):
        await client.runs.join(thread_id, run)
    assert (await client.runs.get(thread_id, run))["status"] == "interrupted"


async def test_an_edited_question_and_a_repeated_answer_go_on_in_the_same_thread(served: Served) -> None:
    client = served.client
    thread_id, first = await served.begin(QUESTION)
    await client.runs.wait(thread_id, "standard", input=say(FOLLOW_UP))
    history = await client.threads.get_history(thread_id, limit=100)
    # As `useStream` does: the state before the first one that holds the message.
    asked = [state for state in history if FOLLOW_UP in read(state["values"])][-1]
    edited: Any = await client.runs.wait(
        thread_id, "standard", input=say(BATTERY), checkpoint=asked["parent_checkpoint"]
    )
    assert read(edited)[:-1] == [*read(first), BATTERY]
    assert "14 months" in read(edited)[-1]
    state: Any = await client.threads.get_state(thread_id)
    assert read(state["values"]) == read(edited)
    # The same again, without input: the step that wrote the answer.
    history = await client.threads.get_history(thread_id, limit=100)
    assert any(FOLLOW_UP in read(each["values"]) for each in history)
    writes = next(each for each in history if each["next"] == ["generate"])["checkpoint"]
    again: Any = await client.runs.wait(thread_id, "standard", input=None, checkpoint=writes)
    assert read(again) == read(edited)
    questions = state["values"]["messages"][:-1]
    state = await client.threads.get_state(thread_id)
    assert state["values"]["messages"][-1] == again["messages"][-1] != edited["messages"][-1]
    # Interfaces know by the id that it is the same question.
    assert [message["id"] for message in again["messages"][:-1]] == [message["id"] for message in questions]
    assert [message["id"] for message in state["values"]["messages"][:-1]] == [message["id"] for message in questions]
    [latest, *_] = await client.runs.list(thread_id)
    assert await client.runs.join(thread_id, latest["run_id"]) == again
    # Each state leads to the first one, across the branches.
    history = await client.threads.get_history(thread_id, limit=100)
    parents: Any = {each["checkpoint_id"]: each["parent_checkpoint_id"] for each in map(dict, history)}
    place, path = state["checkpoint"]["checkpoint_id"], []
    while place is not None:
        path.append(place)
        place = parents[place]
    assert path[-1] == history[-1]["checkpoint"]["checkpoint_id"]
    assert len(await client.runs.list(thread_id)) == 4
    earliest = await client.threads.get_state(thread_id, checkpoint_id=path[-1])
    assert earliest["checkpoint"] == history[-1]["checkpoint"]
    with pytest.raises(APIStatusError, match="Nothing is left to do at this checkpoint"):
        await client.runs.create(thread_id, "standard", input=None)
    known = await served.services.runs.client_threads.read("default", thread_id)
    assert known is not None
    assert len(known.parts) == 3
    await client.threads.delete(thread_id)
    assert not [part for part in known.parts if await served.services.runs.thread_store.exists("default", part)]


async def test_a_changed_state_is_run_on_from(served: Served) -> None:
    client = served.client
    thread_id, values = await served.begin("How long is the warranty of the Falke station?")
    history = await client.threads.get_history(thread_id, limit=100)
    ranks = next(state for state in history if state["next"] == ["rerank"])
    config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_id": ranks["checkpoint"]["checkpoint_id"]}}
    remote = RemoteGraph("standard", client=client)
    changed = await remote.aupdate_state(config, {"profile.rerank.keep": 1})
    state = await client.threads.get_state(thread_id)
    assert state["checkpoint"]["checkpoint_id"] == changed["configurable"]["checkpoint_id"]
    assert (state["next"], state["parent_checkpoint"]) == (["rerank"], ranks["checkpoint"])
    assert read(state["values"]) == read(values)[:1]
    again: Any = await client.runs.wait(thread_id, "standard", input=None)
    assert read(again) == read(values)
    final: Any = await client.threads.get_state(thread_id)
    assert read(final["values"]) == read(values)
    with pytest.raises(APIStatusError, match="cannot take effect"):
        await client.threads.update_state(thread_id, {"retries": 1})
    with pytest.raises(APIStatusError, match="Messages are set alone"):
        await client.threads.update_state(thread_id, say("No.") | {"retries": 1})


async def test_the_messages_of_a_thread_are_set(served: Served) -> None:
    client = served.client
    thread_id, first = await served.begin(QUESTION)
    asked, answered = first["messages"]
    before: Any = await client.threads.get_state(thread_id)
    corrected = answered | {"content": "Four years, for the Falke."}
    await client.threads.update_state(thread_id, {"messages": [asked, corrected]})
    state: Any = await client.threads.get_state(thread_id)
    assert read(state["values"]) == [QUESTION, corrected["content"]]
    assert state["values"]["messages"][0] == before["values"]["messages"][0]
    assert (state["parent_checkpoint"], state["next"]) == (before["checkpoint"], [])
    assert (await client.threads.get(thread_id))["values"] == state["values"]
    # One after the other, and a question that nobody has answered yet.
    twice: Any = [say("Thank you."), {"messages": {"role": "assistant", "content": "Gladly."}}]
    await client.threads.update_state(thread_id, twice, as_node="__start__")
    await client.threads.update_state(thread_id, say(FOLLOW_UP, id="asked"))
    values: Any = await client.runs.wait(thread_id, "standard", input=None)
    said = [QUESTION, corrected["content"], "Thank you.", "Gladly.", FOLLOW_UP]
    assert read(values)[:-1] == said
    assert "Petra Lindqvist" in read(values)[-1]
    state = await client.threads.get_state(thread_id)
    assert read(state["values"]) == read(values)
    await client.threads.update_state(thread_id, {"messages": [{"type": "ai", "content": "Bye."}]})
    with pytest.raises(APIStatusError, match="The last message has to be the user's question"):
        await client.runs.create(thread_id, "standard", input=None)
    # From an earlier checkpoint, with a message less.
    removed: Any = {"messages": [{"type": "remove", "id": answered["id"], "content": ""}]}
    await client.threads.update_state(thread_id, removed, checkpoint=before["checkpoint"])
    assert read((await client.threads.get_state(thread_id))["values"]) == [QUESTION]
    with pytest.raises(APIStatusError, match="There is no message"):
        await client.threads.update_state(thread_id, removed)
    for refused in ({"type": "tool", "content": "x"}, {"type": "human", "content": [{"type": "image_url"}]}):
        with pytest.raises(APIStatusError, match=r"cannot be set|Only text"):
            await client.threads.update_state(thread_id, {"messages": [refused]})


async def test_a_thread_begins_with_messages_that_are_set(served: Served) -> None:
    client = served.client
    thread_id = (await client.threads.create())["thread_id"]
    begun: Any = {"messages": [("user", QUESTION), ("assistant", "36 months."), ("user", FOLLOW_UP)]}
    await client.threads.update_state(thread_id, begun)
    state: Any = await client.threads.get_state(thread_id)
    assert read(state["values"]) == [QUESTION, "36 months.", FOLLOW_UP]
    await client.threads.update_state(thread_id, {"messages": {"role": "ai", "content": "Petra."}})
    values: Any = await client.runs.wait(thread_id, "standard", input={"question": BATTERY})
    assert read(values)[:-1] == [QUESTION, "36 months.", FOLLOW_UP, "Petra.", BATTERY]
    assert "14 months" in read(values)[-1]


async def test_what_is_left_of_a_conversation_goes_with_its_documents(served: Served) -> None:
    uploaded = await served.services.library.ingestion.add(
        "default", "meeting.md", b"# Meeting\n\nThe Uhu team meets in the glass pavilion on Thursdays."
    )
    thread_id, first = await served.begin("Where does the Uhu team meet?")
    assert "glass pavilion" in read(first)[-1]
    await served.client.threads.update_state(thread_id, say("Thank you."))
    await served.client.threads.update_state(thread_id, {"messages": {"role": "ai", "content": "Gladly."}})
    erased = await served.services.make_forgetting().forget_document("default", str(uploaded.document_id))
    assert not erased.found
    for state in await served.client.threads.get_history(thread_id, limit=100):
        assert "glass pavilion" not in str(state)
    assert "glass pavilion" not in str(await served.client.threads.get(thread_id))


async def test_what_is_not_there_is_said_and_an_idle_stream_is_kept_open(
    served: Served, going: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(APIStatusError, match="There is no /store/namespaces here"):
        await served.client.store.list_namespaces([])
    monkeypatch.setattr(streams, "PING_SECONDS", 0.05)
    body = {"assistant_id": "standard", "input": say(ENDLESS), "on_disconnect": "cancel"}
    async with (
        httpx.AsyncClient() as plain,
        plain.stream("POST", f"{served.address}/langgraph/runs/stream", json=body) as response,
        asyncio.timeout(20),
    ):
        async for line in response.aiter_lines():
            if line == ": heartbeat":
                break
    assert response.headers["location"] == response.headers["content-location"] + "/stream"


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"assistant_id": "none"}, 404, "There is no assistant 'none'"),
    ({"input": {"messages": []}}, 422, "has to be the user's question"),
    ({"input": say("")}, 422, "question"),
    ({"input": {"messages": [{"type": "human", "content": [{"type": "image_url"}]}]}}, 422, "Only text"),
    (
        {"input": {"messages": [{"role": "system", "content": "Rhyme."}, {"role": "user", "content": "?"}]}},
        422,
        "system",
    ),
    ({"interrupt_before": ["generate"]}, 422, "cannot be interrupted"),
    ({"interrupt_after": "*"}, 422, "cannot be interrupted"),
    ({"command": {"resume": "yes"}}, 422, "No run waits for a command"),
    ({"webhook": "http://localhost/"}, 422, "no webhooks"),
    ({"stream_mode": ["everything"]}, 422, "stream_mode"),
    ({"context": {"threshold": 2}}, 422, "context.threshold"),
    ({"config": {"configurable": 1}}, 422, "config.configurable"),
    ({"checkpoint_id": "1ef"}, 404, "has no checkpoint '1ef'"),
]


@pytest.mark.parametrize(("changed", "status", "says"), REFUSED)
async def test_bad_requests_are_refused_in_the_protocols_form(
    served: Served, changed: dict[str, Any], status: int, says: str
) -> None:
    thread = (await served.client.threads.create())["thread_id"]
    async with httpx.AsyncClient(base_url=f"{served.address}/langgraph") as plain:
        body = {"assistant_id": "standard", "input": say(QUESTION)} | changed
        refused = await plain.post(f"/threads/{thread}/runs/wait", json=body)
    assert refused.status_code == status
    assert says in refused.json()["detail"]


class Conversation(TypedDict):
    """The state of somebody else's graph."""

    messages: Annotated[list[AnyMessage], add_messages]


async def test_a_remote_graph_is_used_alone_and_in_somebody_elses_graph(served: Served) -> None:
    remote = RemoteGraph("standard", client=served.client)
    own = await served.ask_plainly(QUESTION)
    assert read(await remote.ainvoke(say(QUESTION)))[-1] == own["answer"]
    drawn = await remote.aget_graph()
    assert {"retrieve", "generate"} <= set(drawn.nodes)

    builder = StateGraph(Conversation)
    builder.add_node("askgraph", remote)
    builder.add_edge(START, "askgraph")
    builder.add_edge("askgraph", END)
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "in-another-graph"}}
    asked: Any = {"messages": [("user", QUESTION)]}
    first: Any = await graph.ainvoke(asked, config)
    assert [message.content for message in first["messages"]] == [QUESTION, own["answer"]]
    seen = []
    asked = {"messages": [("user", FOLLOW_UP)]}
    async for namespace, mode, _ in graph.astream(asked, config, stream_mode=["messages", "custom"], subgraphs=True):
        seen.append((mode, len(namespace)))
    assert {("messages", 1), ("custom", 1)} <= set(seen)
    final = (await graph.aget_state(config)).values["messages"]
    assert [message.type for message in final] == ["human", "ai", "human", "ai"]
    assert "Petra Lindqvist" in final[-1].content
    remote_state = await remote.aget_state(config)
    assert read(remote_state.values) == [message.content for message in final]
    history = [state async for state in remote.aget_state_history(config, limit=50)]
    assert remote_state.config["configurable"]["checkpoint_id"] in [
        state.config["configurable"]["checkpoint_id"] for state in history
    ]


async def test_a_body_is_read_as_json_whatever_its_header_says(served: Served) -> None:
    # The API passthrough of Agent Chat UI sends it as plain text.
    async with httpx.AsyncClient(base_url=f"{served.address}/langgraph") as plain:
        as_text = {"Content-Type": "text/plain"}
        found = await plain.post("/threads/search", content='{"limit": 1}', headers=as_text)
        made = await plain.post("/assistants", content='{"graph_id": "fast", "name": "desk"}', headers=as_text)
    assert (found.status_code, len(found.json())) == (200, 1)
    assert (made.status_code, made.json()["name"]) == (200, "desk")


async def test_notes_that_could_not_be_sent_back_are_refused(served: Served) -> None:
    async with httpx.AsyncClient(base_url=f"{served.address}/langgraph") as plain:
        deep = '{"thread_id": "deep", "metadata": {"x": ' + 300 * "[" + 300 * "]" + "}}"
        refused = await plain.post("/threads", content=deep, headers={"Content-Type": "application/json"})
        assert refused.status_code == 422
        assert "at most 250 levels" in refused.json()["detail"]
        assert (await plain.get("/threads/deep")).status_code == 404


async def test_threads_are_streamed_as_react_pages_want_it(served: Served) -> None:
    question = "How many months is the warranty of the Falke?"
    async with served.client.threads.stream(assistant_id="standard") as thread:
        await thread.run.start(input=say(question, id="asked"))
        messages = [message async for message in thread.messages]
        values: Any = await thread.output
        place = f"{served.address}/langgraph/threads/{thread.thread_id}"
    assert [await message.text for message in messages] == [values["messages"][-1]["content"]]

    async def follow(plain: httpx.AsyncClient) -> list[Any]:
        wanted = {"channels": ["lifecycle", "values", "checkpoints", "custom:none"], "namespaces": [[]]}
        events: list[Any] = []
        async with plain.stream("POST", f"{place}/stream/events", json=wanted) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line[6:]))
                    if events[-1]["params"]["data"].get("event") == "completed":
                        return events
        return events

    async with httpx.AsyncClient(timeout=20) as plain:
        first, again = await follow(plain), await follow(plain)
        # Who comes back knows what they have, and whose end it is.
        assert [each["event_id"] for each in first] == [each["event_id"] for each in again]
        assert first[-1]["event_id"].startswith(f"synth:{values['messages'][-1]['id']}:")
        [saved] = [each["params"]["data"] for each in first if each["method"] == "checkpoints"]
        start = {"configurable": {"checkpoint_id": saved["parent_id"]}}
        params = {"assistant_id": "standard", "input": say(FOLLOW_UP), "config": start}
        asked = await plain.post(f"{place}/commands", json={"id": 7, "method": "run.start", "params": params})
        assert (asked.json()["type"], asked.json()["id"]) == ("success", 7)
        [*_, last, _] = [each for each in await follow(plain) if each["method"] in ("values", "lifecycle")]
        assert read(last["params"]["data"])[0] == FOLLOW_UP
        other = await plain.post(f"{place}/commands", json={"id": 8, "method": "input.respond", "params": {}})
        assert other.json()["error"] == "not_supported"
        wrong = await plain.post(f"{place}/commands", json={"id": 9, "method": "run.start", "params": {}})
        assert wrong.json()["detail"] == "params.assistant_id: Field required"


async def test_several_who_make_the_same_thread_at_once_all_ask_in_it(served: Served) -> None:
    runs = served.client.runs
    begun = [
        runs.create("made-by-many", "fast", input=say(f"{QUESTION} {number}"), if_not_exists="create")
        for number in range(8)
    ]
    accepted = await asyncio.gather(*begun)
    assert len(await runs.list("made-by-many", limit=10)) == len(accepted) == 8
    for run in accepted:
        await runs.join("made-by-many", run["run_id"])


async def test_a_long_thread_is_read_whole(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE", 2)
    thread_id, _ = await served.begin(QUESTION)
    for _ in range(4):
        values: Any = await served.client.runs.wait(thread_id, "fast", input=say(QUESTION))
    assert read(values)[::2] == [QUESTION] * 5


async def test_a_branch_of_a_thousand_branches_is_read() -> None:
    depth = 2000

    async def list_turns(workspace_id: str, thread_id: str, limit: int, before: str | None) -> list[Any]:
        number = int(thread_id)
        origin = {"thread_id": str(number - 1), "checkpoint_id": "c"} if number else None
        turn = {"question": "How long?"}
        request = SimpleNamespace(run_id=f"run-{number}", forked_from=origin, history=[], turn=turn, noted={})
        return [SimpleNamespace(request=request, ended={"answer": "Long."}, state="done")]

    async def read_state(config: Any) -> Any:
        return SimpleNamespace(values={"run_id": f"run-{config['configurable']['thread_id']}"})

    states: Any = SimpleNamespace(translating_errors=nullcontext, graph=SimpleNamespace(aget_state=read_state))
    queue: Any = SimpleNamespace(list_turns=list_turns)
    reader = reading.ThreadReader(Scope.within("default"), cast(Any, None), cast(Any, None), queue, states)
    assert (await reader.read_conversation(str(depth))).holds(f"run-{depth}")


@pytest.mark.parametrize("body", [b"{", b"\xff{}"])
async def test_a_body_that_is_no_json_is_refused_in_the_protocols_form(served: Served, body: bytes) -> None:
    async with httpx.AsyncClient(base_url=f"{served.address}/langgraph") as plain:
        refused = await plain.post("/threads", content=body, headers={"Content-Type": "application/json"})
    assert (refused.status_code, list(refused.json())) in ((400, ["detail"]), (422, ["detail"]))


async def test_a_failed_run_raises_in_the_client(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(served.services.library.search)

    async def fail(*given: Any) -> Any:
        raise ValueError("broken")

    monkeypatch.setattr(kind, "search_lexical", fail)
    monkeypatch.setattr(kind, "search_dense", fail)
    question = "Where is the reference of the barometer?"
    with pytest.raises(RemoteException, match="internal_error"):
        await RemoteGraph("standard", client=served.client).ainvoke(say(question))
    with pytest.raises(Exception, match="internal_error"):
        await served.client.runs.wait(None, "standard", input=say(question))
    thread_id = (await served.client.threads.create())["thread_id"]
    await served.client.runs.wait(thread_id, "standard", input=say(question), raise_error=False)
    assert (await served.client.threads.get(thread_id))["status"] == "error"
    assert thread_id in [each["thread_id"] for each in await served.client.threads.search(status="error")]


@needs_node
async def test_the_client_for_node_connects_unmodified(served: Served) -> None:
    own = await served.ask_plainly(QUESTION)
    told = await run_node("agent_server.mjs", f"{served.address}/langgraph", QUESTION, FOLLOW_UP)
    assert {"fast", "standard", "thorough"} <= set(told["assistants"])
    assert read(told["values"]) == [QUESTION, own["answer"]]
    assert "Petra Lindqvist" in told["streamed"]
    assert told["last"] == told["joined"] == told["state"]
    assert read(told["state"])[-1] == told["streamed"]
    assert told["created"]["thread_id"] == told["thread"]
    assert told["messages"] == [2, 4]
    assert told["refused"].startswith("HTTP 404")
    assert "There is no run" in told["refused"]


async def test_the_example_of_the_page_runs(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    example = read_example("LangGraph's Agent Server").replace("http://127.0.0.1:8000", served.address)
    await asyncio.to_thread(exec, compile(example, "clients.md", "exec"), {"__name__": "example"})
    said = capsys.readouterr().out
    assert "36 months" in said
    assert "Station handbook" in said
    assert "Petra Lindqvist" in said
