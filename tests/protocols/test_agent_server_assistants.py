"""Assistants by LangGraph's SDK for Python, unmodified."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
import pytest_asyncio
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.errors import APIStatusError

from app.wiring.services import Services
from tests.asking import QUESTION
from tests.http_client import serve_services
from tests.protocols.test_agent_server import Served, read, say


@pytest_asyncio.fixture
async def served(services: Services) -> AsyncIterator[Served]:
    """The service, with a warranty of each of two teams."""
    for team, months in (("sales", 36), ("support", 24)):
        text = f"# Warranty by {team}\n\nThe Falke has a warranty of {months} months, says {team}.\n"
        await services.library.ingestion.add("default", f"{team}.md", text.encode(), metadata={"team": team})
    async with (
        serve_services(services) as address,
        get_client(url=f"{address}/langgraph", api_key=None) as client,
    ):
        yield Served(address, services, client)


def refusing(status: int, said: str) -> Any:
    """Expect an error of this status with this in its words."""
    return pytest.raises(APIStatusError, match=said, check=lambda error: error.response.status_code == status)


async def test_an_assistant_is_made_changed_chosen_and_deleted(served: Served) -> None:
    assistants = served.client.assistants
    context: Any = {"instructions": "Be kind.", "filter": {"team": "support"}, "length": "detailed"}
    key = str(uuid4())
    made = await assistants.create(
        "fast", context=context, metadata={"owner": "ann"}, assistant_id=key, name="desk", description="For the desk."
    )
    assert {name: made[name] for name in made if not name.endswith("_at")} == {  # type: ignore[literal-required]
        "assistant_id": key,
        "graph_id": "fast",
        "config": {"configurable": context},
        "context": context,
        "metadata": {"owner": "ann"},
        "name": "desk",
        "version": 1,
        "description": "For the desk.",
    }
    assert await assistants.create("standard", assistant_id=key, if_exists="do_nothing", name="other") == made
    assert await assistants.get(key) == await assistants.get("desk") == made
    changed = await assistants.update(key, graph_id="thorough", metadata={"floor": 2}, name="counter")
    assert (changed["version"], changed["graph_id"], changed["name"]) == (2, "thorough", "counter")
    assert (changed["context"], changed["metadata"]) == (context, {"owner": "ann", "floor": 2})
    assert changed["description"] == "For the desk."
    assert changed["created_at"] == made["created_at"] < changed["updated_at"]
    replaced = await assistants.update(key, config={"configurable": {"length": "brief"}})
    assert (replaced["context"], replaced["config"]) == ({"length": "brief"}, {"configurable": {"length": "brief"}})
    emptied = await assistants.update(key, context={})
    assert (emptied["context"], emptied["config"], emptied["version"]) == ({}, {}, 4)

    versions = await assistants.get_versions(key)
    assert [each["version"] for each in versions] == [4, 3, 2, 1]
    assert versions[3]["context"] == context
    assert "updated_at" not in versions[0]
    assert [
        each["version"] for each in await assistants.get_versions(key, metadata={"floor": 2}, limit=1, offset=1)
    ] == [3]
    assert (await assistants.set_latest(key, 1))["name"] == "desk"
    assert (await assistants.get("desk"))["version"] == 1
    graph: Any = await assistants.get_graph(key)
    assert {"route", "retrieve"} <= {node["id"] for node in graph["nodes"]}
    assert (await assistants.get_schemas(key))["graph_id"] == "fast"
    assert await assistants.get_subgraphs(key) == {}

    await assistants.delete(key)
    with refusing(404, "There is no assistant"):
        await assistants.get(key)
    with pytest.raises(httpx.HTTPStatusError, match="404 Not Found"):
        await served.client.runs.wait(None, key, input=say(QUESTION))


async def test_runs_of_an_assistant_answer_as_it_does_and_name_it(served: Served) -> None:
    client = served.client
    filtered: Any = {"filter": {"team": "support"}}
    made = await client.assistants.create("fast", context=filtered, name="desk")
    key, mode = made["assistant_id"], "desk@1"
    thread = await client.threads.create()
    parts = [
        part
        async for part in client.runs.stream(
            thread["thread_id"], key, input=say(QUESTION), stream_mode=["values", "debug"]
        )
    ]
    values: Any = [part.data for part in parts if part.event == "values"][-1]
    assert (values["mode"], "24 months" in read(values)[-1]) == (mode, True)
    assert {citation["source"] for citation in values["citations"]} == {"support.md"}
    [run] = await client.runs.list(thread["thread_id"])
    state = await client.threads.get_state(thread["thread_id"])
    noted: Any = (await client.threads.get(thread["thread_id"]))["metadata"]
    for told in (run["metadata"], state["metadata"], noted):
        assert (told or {})["assistant_id"] == key
        assert (told or {})["graph_id"] == "fast"
    assert run["assistant_id"] == key
    # A later version answers the next question; what was said stays.
    await client.assistants.update(key, context={"filter": {"team": "sales"}})
    values = await client.runs.wait(
        thread["thread_id"], "desk", input=say("How long is the warranty of the Falke, now?")
    )
    assert "36 months" in read(values)[-1]
    assert [run["assistant_id"] for run in await client.runs.list(thread["thread_id"])] == [key, key]
    # A context of the run narrows what the assistant answers from.
    values = await client.runs.wait(None, key, input=say(QUESTION), context={"filter": {"path": "support.md"}})
    assert values["citations"] == []
    remote = RemoteGraph(key, client=client)
    told = await remote.ainvoke(say(QUESTION))
    assert "36 months" in told["messages"][-1]["content"]
    assert (await client.threads.search(metadata={"assistant_id": key}))[0]["thread_id"] == thread["thread_id"]


async def test_assistants_are_searched_sorted_and_counted(served: Served) -> None:
    assistants = served.client.assistants
    modes = list(served.services.modes)
    for name, graph, floor in (("Beta", "fast", 1), ("alpha", "standard", 2), ("gamma", "fast", 2)):
        await assistants.create(graph, name=name, metadata={"floor": floor, "house": {"street": "Elm"}})

    async def names(**wanted: Any) -> list[str]:
        return [each["name"] for each in await assistants.search(**wanted)]

    assert await names() == ["gamma", "alpha", "Beta", *modes]
    assert await names(limit=2, offset=1) == ["alpha", "Beta"]
    assert (await names(sort_by="created_at", sort_order="asc"))[-3:] == ["Beta", "alpha", "gamma"]
    assert await names(sort_by="name", sort_order="asc") == sorted(["alpha", "Beta", "gamma", *modes], key=str.lower)
    assert await names(sort_by="updated_at", limit=1) == ["gamma"]
    assert (await names(sort_by="graph_id", sort_order="asc"))[:3] == ["Beta", "gamma", "fast"]
    assert await names(metadata={"floor": 2}) == ["gamma", "alpha"]
    assert await names(metadata={"house": {"street": "Elm"}, "floor": 1}) == ["Beta"]
    assert await names(metadata={"created_by": "system"}) == modes
    assert await names(graph_id="fast") == ["gamma", "Beta", "fast"]
    assert await names(name="ALPH") == ["alpha"]
    assert await assistants.count() == 3 + len(modes)
    assert await assistants.count(metadata={"floor": 2}, graph_id="fast", name="gam") == 1
    assert await assistants.search(limit=1, select=["name", "version"]) == [{"name": "gamma", "version": 1}]
    page = await assistants.search(limit=2, response_format="object")
    assert (len(page["assistants"]), page["next"]) == (2, "2")
    async with httpx.AsyncClient(base_url=served.address) as plain:
        found = await plain.post("/langgraph/assistants/search", json={"sort_by": "size"})
        assert (found.status_code, "sort_by" in found.json()["detail"]) == (422, True)


async def test_modes_are_the_systems_assistants_and_stay_as_they_are(served: Served) -> None:
    assistants = served.client.assistants
    fast = await assistants.get("fast")
    assert await assistants.get(fast["assistant_id"]) == fast
    assert (fast["metadata"], fast["version"]) == ({"created_by": "system"}, 1)
    assert [each["version"] for each in await assistants.get_versions(fast["assistant_id"])] == [1]
    assert await assistants.create("fast", assistant_id=fast["assistant_id"], if_exists="do_nothing") == fast
    with refusing(409, "already"):
        await assistants.create("fast", assistant_id=fast["assistant_id"])
    for name in ("fast", fast["assistant_id"]):
        with refusing(403, "'fast' is a mode of the deployment"):
            await assistants.update(name, name="slow")
        with refusing(403, "'fast' is a mode of the deployment"):
            await assistants.set_latest(name, 1)
        with refusing(403, "'fast' is a mode of the deployment"):
            await assistants.delete(name)


async def test_what_cannot_be_made_is_refused(served: Served) -> None:
    assistants = served.client.assistants
    made = await assistants.create("fast", name="desk")
    unnamed = await assistants.create("fast")
    assert unnamed["name"] == f"Untitled {unnamed['assistant_id'][:8]}"
    assert await assistants.create("fast", name="desk", if_exists="do_nothing") == made
    with refusing(409, "name 'desk'"):
        await assistants.create("standard", name="desk", if_exists="do_nothing")
    with refusing(409, "already"):
        await assistants.create("fast", assistant_id=made["assistant_id"])
    with refusing(422, "no mode 'agent'"):
        await assistants.create("agent")
    with refusing(422, r"context\.temperature: an assistant has no such field"):
        await assistants.create("fast", context={"temperature": 2})
    with refusing(422, "Send `context` alone"):
        await assistants.create("fast", context={"length": "brief"}, config={"configurable": {"length": "brief"}})
    with refusing(422, "assistant_id"):
        await assistants.create("fast", assistant_id="desk")
    with refusing(404, "no version 7"):
        await assistants.set_latest(made["assistant_id"], 7)
    with refusing(422, "Threads stay"):
        await assistants.delete(made["assistant_id"], delete_threads=True)
    for call in (assistants.get, assistants.get_versions, assistants.delete, assistants.update, assistants.get_graph):
        with refusing(404, "There is no assistant"):
            await call(str(uuid4()))
    assert (await assistants.get("desk"))["version"] == 1


async def test_what_an_assistant_already_names_need_not_be_there_any_more(served: Served) -> None:
    documents = await served.services.library.documents.list("default")
    gone = next(each.id for each in documents if each.source == "sales.md")
    context: Any = {"document_ids": [gone], "filter": {"team": "sales"}}
    made = await served.client.assistants.create("fast", name="desk", context=context)
    await served.services.library.ingestion.delete("default", gone)
    changed = await served.client.assistants.update(made["assistant_id"], description="For nobody.")
    assert (changed["context"], changed["description"]) == (context, "For nobody.")
    values: Any = await served.client.runs.wait(None, "desk", input=say(QUESTION))
    assert values["outcome"] == "abstained"
