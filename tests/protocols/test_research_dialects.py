"""What clients of other protocols see of the research agent's work, by the types of their own SDKs."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from ag_ui.core import Event, RunAgentInput, UserMessage
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage, convert_to_messages
from langgraph_sdk import get_client
from openai import AsyncOpenAI
from openai.types.responses.response_output_item import McpCall
from pydantic import TypeAdapter

from app.api.protocols.agent_server.messages import make_human
from app.api.protocols.agent_server.translation import Translation
from app.settings import read_settings
from app.wiring.services import open_services
from tests.asking import with_models
from tests.conftest import HANDBOOK, create_database
from tests.http_client import serve_services
from tests.protocols.examples import read_example
from tests.protocols.node_clients import needs_node, run_code
from tests.wire.openai import OpenAIServer, serve_openai

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How many months is the warranty of the Falke?"


EVENT: TypeAdapter[Event] = TypeAdapter(Event)


@dataclass(frozen=True)
class Served:
    """The service at an address, and its language model."""

    address: str
    model: OpenAIServer

    def plan(self) -> None:
        """Let the model make two calls at once, and then another one."""
        search = {"name": "search", "arguments": {"queries": ["battery of the Falke"]}}
        listing = {"name": "list_documents", "arguments": {}}
        self.model.behaviour.replies = ["TOOLS: look further"]
        self.model.behaviour.tool_calls = [[search, listing], [{"name": "none", "arguments": {}}]]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def served(servers: Any, template: str) -> AsyncIterator[Served]:
    async with create_database(servers, template) as url, serve_openai() as model:
        settings = read_settings(DATABASE_URL=url, REDIS_URL=servers.redis_url, load_samples=False)
        async with open_services(with_models(settings, model)) as services:
            await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
            async with serve_services(services) as address:
                yield Served(address, model)


async def test_langgraph_shows_calls_and_results_as_messages(served: Served) -> None:
    served.plan()
    async with get_client(url=f"{served.address}/langgraph", api_key=None) as client:
        thread = await client.threads.create()
        given: Any = {"messages": [{"type": "human", "content": QUESTION}]}
        parts = [
            part
            async for part in client.runs.stream(
                thread["thread_id"],
                "research",
                input=given,
                stream_mode=["values", "updates", "messages-tuple"],
            )
        ]
        state: Any = await client.threads.get_state(thread["thread_id"])
        again: Any = await client.threads.get(thread["thread_id"])
    messages = convert_to_messages([part.data for part in parts if part.event == "values"][-1]["messages"])
    _, asked, found, listed, _, refused, answer = messages
    assert isinstance(asked, AIMessage)
    assert [call["name"] for call in asked.tool_calls] == ["search", "list_documents"]
    assert asked.tool_calls[0]["args"] == {"queries": ["battery of the Falke"]}
    assert all(isinstance(message, ToolMessage) for message in (found, listed, refused))
    assert [message.tool_call_id for message in (found, listed)] == [call["id"] for call in asked.tool_calls]  # type: ignore[attr-defined]
    assert "There is no tool 'none'" in refused.text
    assert "36 months" in answer.text
    assert [message["id"] for message in state["values"]["messages"][1:]] == [message.id for message in messages[1:]]
    assert [message["id"] for message in again["values"]["messages"][1:]] == [message.id for message in messages[1:]]
    # Clients put the pieces together by their ids.
    streamed: dict[str, Any] = {}
    for part in parts:
        if part.event == "messages":
            piece = part.data[0]
            (message,) = convert_to_messages([piece | {"type": piece["type"].replace("AIMessageChunk", "ai")}])
            if piece["type"] == "AIMessageChunk":
                message = AIMessageChunk(**{k: piece[k] for k in ("id", "content", "tool_call_chunks")})
                message = streamed[message.id] + message if message.id in streamed else message
            streamed[str(message.id)] = message
    assert [(call["name"], call["args"]) for call in streamed[str(asked.id)].tool_calls] == [
        (call["name"], call["args"]) for call in asked.tool_calls
    ]
    assert list(streamed) == [message.id for message in messages[1:]]
    updates = [part.data for part in parts if part.event == "updates"]
    [first, second] = [update["use_tool"]["messages"] for update in updates if "use_tool" in update]
    assert [message["type"] for message in first] == ["ai", "tool", "tool"]
    assert [message["type"] for message in second] == ["ai", "tool"]


async def test_langgraphs_older_stream_of_messages_has_them_whole() -> None:
    translation = Translation("r", "t", {"name": "research"}, ["messages"], [], make_human(QUESTION, "q"))
    work: list[Any] = [
        {"type": "thinking", "step": "use_tool"},
        {"type": "tool_call", "call_id": "a", "name": "search", "arguments": {}},
        {"type": "tool_call", "call_id": "b", "name": "outline", "arguments": {}},
        {"type": "tool_result", "call_id": "b", "name": "outline", "text": "1. Warranty", "sources": []},
        {"type": "tool_result", "call_id": "a", "name": "search", "text": "", "sources": [3, 4]},
    ]
    parts = [part for event in work for part in translation.translate(event)]
    told = [(part.name, part.data[0]["type"], part.data[0]["content"]) for part in parts if "metadata" not in part.name]
    assert told == [
        ("messages/partial", "ai", ""),
        ("messages/partial", "ai", ""),
        ("messages/complete", "tool", "1. Warranty"),
        ("messages/complete", "tool", "2 sources"),
    ]
    assert [call["id"] for call in parts[2].data[0]["tool_calls"]] == ["a", "b"]
    assert [part.name for part in parts].count("messages/metadata") == 3


async def test_responses_have_an_item_for_each_call(served: Served) -> None:
    question = "What does the handbook say of the battery?"
    async with AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none", max_retries=0) as client:
        served.plan()
        async with client.responses.stream(model="research", input=question) as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_response()
        *calls, message = final.output
        assert [(call.type, call.name, call.status) for call in calls if isinstance(call, McpCall)] == [
            ("mcp_call", "search", "completed"),
            ("mcp_call", "list_documents", "completed"),
            ("mcp_call", "none", "completed"),
        ]
        assert isinstance(calls[2], McpCall)
        assert "There is no tool 'none'" in str(calls[2].output)
        assert message.type == "message"
        assert message.content[0].text == final.output_text != ""  # type: ignore[union-attr]
        assert kinds.count("response.mcp_call.completed") == 3
        served.plan()
        whole = await client.responses.create(model="research", input="What does the handbook say of claims?")
        assert [item.type for item in whole.output] == [item.type for item in final.output]
        said: Any = [{"role": "user", "content": question}, *(item.to_dict() for item in final.output)]
        again = await client.responses.create(model="fast", input=[*said, {"role": "user", "content": QUESTION}])
        assert "36 months" in again.output_text


async def run_agent(served: Served, text: str, mode: str) -> tuple[int, list[Any]]:
    """Return the status and the events of a run that `HttpAgent` would ask for, by the protocol's own types."""
    message = UserMessage(id="m", content=text)
    given = RunAgentInput(thread_id="mine", run_id="first", messages=[message], state={}, tools=[], context=[])
    async with httpx.AsyncClient(base_url=served.address, timeout=60) as client:
        body = given.model_dump(by_alias=True, mode="json")
        response = await client.post("/ag-ui", params={"mode": mode}, json=body)
    frames = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return response.status_code, [EVENT.validate_json(frame) for frame in frames]


async def test_an_answer_that_was_cut_says_so_in_every_protocol(served: Served) -> None:
    said = [{"role": "user", "content": QUESTION, "name": None}]
    parts = [{"role": "user", "parts": [{"type": "text", "text": QUESTION}]}]
    names: dict[str, Any] = {
        "threadId": "t",
        "runId": "r",
        "state": {},
        "tools": None,
        "context": [],
        "forwardedProps": {},
    }
    activity = {"id": "2", "role": "activity", "activityType": "PLAN", "content": {"steps": []}}
    asked: dict[str, tuple[dict[str, Any], str]] = {
        "/v1/chat/completions": ({"model": "fast", "messages": said, "stream": None}, '"finish_reason":"length"'),
        "/v1/responses": ({"model": "fast", "input": said}, '"reason":"max_output_tokens"'),
        "/api/ui/chat": ({"id": "c", "mode": "fast", "messages": parts}, '"finishReason":"length"'),
        "/ag-ui?mode=fast": ({**names, "messages": [activity, {"id": "1", **said[0]}]}, '"code":"length"'),
        "/langgraph/runs/wait": ({"assistant_id": "fast", "input": {"messages": said}}, '"finish_reason":"length"'),
    }
    served.model.behaviour.fault = "length"
    try:
        async with httpx.AsyncClient(base_url=served.address, timeout=60) as plain:
            for path, (body, says) in asked.items():
                answered = await plain.post(path, json=body)
                assert says in answered.text.replace(": ", ":"), (path, answered.text)
    finally:
        served.model.behaviour.fault = None


async def test_ag_ui_hears_of_steps_calls_and_sources(served: Served) -> None:
    served.plan()
    _, events = await run_agent(served, "Who handles claims of the Falke?", "research")
    kinds = [event.type.value for event in events]
    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert {(event.thread_id, event.run_id) for event in (events[0], events[-1])} == {("mine", "first")}
    begun = [event.step_name for event in events if event.type == "STEP_STARTED"]
    assert begun == [event.step_name for event in events if event.type == "STEP_FINISHED"]
    assert begun.count("use_tool") == 2
    results = {event.tool_call_id: event.content for event in events if event.type == "TOOL_CALL_RESULT"}
    calls = [event for event in events if event.type == "TOOL_CALL_START"]
    assert [event.tool_call_name for event in calls] == ["search", "list_documents", "none"]
    assert [event.tool_call_id for event in calls] == list(results)
    arguments = next(event for event in events if event.type == "TOOL_CALL_ARGS")
    assert json.loads(arguments.delta) == {"queries": ["battery of the Falke"]}
    text = [kind for kind in kinds if kind.startswith("TEXT_MESSAGE_")]
    assert (text[0], text[-1], set(text[1:-1])) == ("TEXT_MESSAGE_START", "TEXT_MESSAGE_END", {"TEXT_MESSAGE_CONTENT"})
    answer = "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")
    assert "Petra Lindqvist" in answer
    state = [event.snapshot for event in events if event.type == "STATE_SNAPSHOT"][-1]
    assert (state["outcome"], state["citations"][0]["title"]) == ("answered", "Station handbook")
    assert await run_agent(served, "Why?", "none") == (422, [])


@needs_node
async def test_the_example_of_the_page_runs_with_ag_uis_own_client(served: Served) -> None:
    served.plan()
    example = read_example("AG-UI", "js").replace("http://127.0.0.1:8000", served.address)
    # The client checks that what was begun is ended, in the protocol's order.
    said = await run_code(example.replace("mode=standard", "mode=research"))
    assert "36 months" in said
    assert "Station handbook" in said
    assert served.model.behaviour.tool_calls == [], "the agent has worked"
