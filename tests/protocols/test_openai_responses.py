"""OpenAI's own clients for Python and Node, unmodified, against `/v1/responses`."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI

from app.wiring.services import Services
from domain.scope import Scope
from nodes.wording.notices import read_catalogue
from tests.asking import QUESTION, read_state
from tests.http_client import serve_services
from tests.protocols.node_clients import needs_node, run_node


@pytest.fixture
async def client(services: Services, library: dict[str, str]) -> AsyncIterator[AsyncOpenAI]:
    async with (
        serve_services(services) as address,
        AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        yield client


async def test_a_response_is_that_of_our_own_api_and_so_is_a_streamed_one(client: AsyncOpenAI) -> None:
    whole = await client.responses.create(model="standard", input=QUESTION)
    async with httpx.AsyncClient(base_url=str(client.base_url).removesuffix("v1/")) as plain:
        own = (await plain.post("api/chat", json={"question": QUESTION}, params={"stream": "false"})).json()
        [message] = whole.output
        assert message.type == "message"
        [content] = message.content
        assert content.type == "output_text"
        assert (whole.status, whole.output_text) == ("completed", own["answer"])
        [annotation] = content.annotations
        assert annotation.type == "url_citation"
        assert content.text[annotation.start_index : annotation.end_index].strip() == "[1]"
        assert "36 months" in (await plain.get(annotation.url)).text
    async with client.responses.stream(model="standard", input=QUESTION) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert list(dict.fromkeys(kinds)) == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
        "response.output_text.delta", "response.output_text.annotation.added", "response.output_text.done",
        "response.content_part.done", "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert final.output_text == whole.output_text
    [streamed] = final.output
    assert streamed.type == "message"
    assert streamed.content[0].to_dict()["annotations"] == content.to_dict()["annotations"]


async def test_a_conversation_goes_on_by_the_response_before_or_by_its_messages(
    client: AsyncOpenAI, services: Services, library: dict[str, str]
) -> None:
    first = await client.responses.create(model="standard", input=QUESTION)
    second = await client.responses.create(model="standard", input="Who handles claims?", previous_response_id=first.id)
    assert "Petra Lindqvist" in second.output_text
    # Asked again of the first, as after an edit: the second is no part of that conversation.
    edited = await client.responses.create(model="standard", input="And for the Amsel?", previous_response_id=first.id)
    requests = [
        status.request
        for each in (first, second, edited)
        if (status := await services.runs.queue.get("default", each.id.removeprefix("resp_"))) is not None
    ]
    assert requests[0].thread_id == requests[1].thread_id != requests[2].thread_id
    assert [turn["question"] for turn in requests[2].history] == [QUESTION]
    said: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
        *first.to_dict()["output"],  # type: ignore[misc]
        {"role": "user", "content": "Who handles claims?"},
    ]
    assert "Petra Lindqvist" in (await client.responses.create(model="standard", input=said)).output_text
    # As the AI SDK sends it: what the server has made is only referred to.
    said[2] = {"type": "item_reference", "id": said[2]["id"]}
    said.insert(2, {"type": "reasoning", "id": "rs_1", "summary": [], "content": None})
    assert "Petra Lindqvist" in (await client.responses.create(model="standard", input=said)).output_text
    await services.library.ingestion.delete("default", library["Station handbook"])
    await client.responses.create(model="standard", input="And for the mast?", previous_response_id=first.id)
    [newest], _ = await services.runs.threads.list(Scope("default"), 1)
    told = (await read_state(services, newest.thread_id))["turns"][0]
    assert (told["question"], told["answer"]) == (QUESTION, read_catalogue("en").library.held_back)


async def test_bad_requests_are_refused_in_the_protocols_form(client: AsyncOpenAI) -> None:
    cases: list[tuple[dict[str, Any], type[openai.APIStatusError], str]] = [
        ({"model": "none"}, openai.NotFoundError, "There is no mode 'none'"),
        ({"input": ""}, openai.BadRequestError, "question"),
        ({"input": []}, openai.BadRequestError, "has to be the user's question"),
        ({"input": [{"type": "function_call_output"}]}, openai.BadRequestError, "has to be the user's question"),
        ({"metadata": {"thread_id": "a\x00b"}}, openai.BadRequestError, "metadata.thread_id: String should match"),
        ({"background": True}, openai.BadRequestError, "background"),
        ({"conversation": "c"}, openai.BadRequestError, "conversation"),
        ({"text": {"format": {"type": "json_object"}}}, openai.BadRequestError, "An answer is text"),
        ({"tool_choice": "required"}, openai.BadRequestError, "No tool of the client is called"),
        ({"previous_response_id": "resp_none"}, openai.NotFoundError, "There is no run 'none'"),
    ]
    for given, kind, says in cases:
        wanted: Any = {"model": "standard", "input": QUESTION} | given
        with pytest.raises(kind, match=says):
            await client.responses.create(**wanted)


@needs_node
async def test_the_client_for_node_connects_unmodified(client: AsyncOpenAI) -> None:
    address = str(client.base_url).removesuffix("/v1/")
    told = await run_node("openai.mjs", address, QUESTION, "Who handles claims?")
    [choice] = told["completion"]["choices"]
    assert "36 months" in choice["message"]["content"]
    assert told["streamed"] == told["response"]["text"] == choice["message"]["content"]
    assert "Petra Lindqvist" in told["next"]
    assert told["refused"][0] == "NotFoundError"
    assert "There is no mode 'none'" in told["refused"][1]
