"""OpenAI's own client and LangChain's, unmodified, against the service."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from unittest.mock import AsyncMock

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from openai import AsyncOpenAI
from pydantic import SecretStr

from app.api.protocols.client_conversations import find_typed
from app.api.protocols.translating import CORRECTION, list_sources, translate_text
from app.wiring.services import Services
from domain.assistants import Draft
from domain.events import RESTART, Content, Correction
from domain.people.access import OWNER
from domain.scope import Scope
from nodes.wording.notices import read_catalogue
from tests.asking import QUESTION
from tests.http_client import serve_services
from tests.protocols.examples import read_example


@dataclass(frozen=True)
class Served:
    """The service at an address, and a client of it."""

    address: str
    client: AsyncOpenAI
    services: Services


@pytest.fixture
async def served(services: Services, library: dict[str, str]) -> AsyncIterator[Served]:
    async with (
        serve_services(services) as address,
        AsyncOpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client,
    ):
        yield Served(address, client, services)


async def send(served: Served, *messages: str, **options: Any) -> Any:
    """Ask with the messages of both sides in turn."""
    roles = ["user", "assistant"]
    said: Any = [{"role": roles[n % 2], "content": text} for n, text in enumerate(messages)]
    return await served.client.chat.completions.with_raw_response.create(model="standard", messages=said, **options)


@pytest.mark.parametrize("base", ["", "/v1/v1/", "/v1/chat/completions"])
async def test_a_wrong_base_url_is_taken_for_the_right_one(served: Served, base: str) -> None:
    async with AsyncOpenAI(base_url=f"{served.address}{base}", api_key="none", max_retries=0) as client:
        asked: Any = [{"role": "user", "content": QUESTION}]
        assert (await client.chat.completions.create(model="standard", messages=asked)).choices


async def test_what_only_openai_has_is_refused_by_name(served: Served) -> None:
    with pytest.raises(openai.NotFoundError, match=r"no /v1/vector_stores here.*POST /api/documents"):
        await served.client.vector_stores.list()


async def test_modes_are_models(served: Served) -> None:
    assert [model.id async for model in served.client.models.list()] == list(served.services.modes)
    assert (await served.client.models.retrieve("fast")).owned_by == "askgraph"
    await served.services.assistants.create(Scope("default"), Draft(name="our desk", mode="fast"), OWNER)
    await served.services.assistants.create(Scope("theirs"), Draft(name="their desk"), OWNER)
    assert [model.id async for model in served.client.models.list()] == [*served.services.modes, "our desk"]
    assert (await served.client.models.retrieve("our desk")).id == "our desk"
    elsewhere = served.client.models.list(extra_query={"workspace": "theirs"})
    assert [model.id async for model in elsewhere][-1] == "their desk"
    asked: Any = [{"role": "user", "content": QUESTION}]
    completion = await served.client.chat.completions.create(model="our desk", messages=asked)
    assert (completion.model, "36 months" in str(completion.choices[0].message.content)) == ("our desk", True)
    response = await served.client.responses.create(model="our desk@1", input=QUESTION)
    assert (response.model, "36 months" in response.output_text) == ("our desk@1", True)
    with pytest.raises(openai.NotFoundError, match="There is no mode 'their desk'"):
        await served.client.chat.completions.create(model="their desk", messages=asked)
    with pytest.raises(openai.NotFoundError, match="There is no mode 'gpt-4'"):
        await served.client.models.retrieve("gpt-4")


async def test_an_answer_has_its_citations_with_addresses_that_open(served: Served) -> None:
    completion = (await send(served, QUESTION)).parse()
    [choice] = completion.choices
    assert (choice.finish_reason, choice.message.role) == ("stop", "assistant")
    answer = choice.message.content
    assert "36 months" in answer
    assert completion.usage.total_tokens == 0
    for annotation in choice.message.annotations:
        cited = annotation.url_citation
        assert answer[cited.start_index : cited.end_index].strip() == "[1]"
        assert cited.title == "Station handbook"
        assert completion.citations == [cited.url]
        async with httpx.AsyncClient() as browser:
            assert "36 months" in (await browser.get(cited.url)).text


async def test_a_stream_says_the_same(served: Served) -> None:
    whole = (await send(served, QUESTION)).parse()
    stream = (await send(served, QUESTION, stream=True, stream_options={"include_usage": True})).parse()
    chunks = [chunk async for chunk in stream]
    *pieces, end, usage = chunks
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == whole.choices[0].message.content
    assert end.choices[0].finish_reason == "stop"
    [annotation] = whole.choices[0].message.annotations
    assert end.choices[0].delta.annotations == [annotation.model_dump()]
    assert (usage.choices, usage.usage.total_tokens) == ([], 0)
    assert len({chunk.id for chunk in chunks}) == 1


DECLINED = "Only questions to the documents are answered here."
_EVIL = "Hello ![x](http://evil.example/p.png)"
_CHAT = f"user: {_EVIL}\nassistant: ok"
TRANSCRIPTS: list[tuple[list[tuple[str, str]], str | None]] = [
    # Open WebUI's title, its tags, LibreChat's title, Lobe Chat's and one on a line; Open WebUI's emoji, merged answers
    # and calls of tools
    (
        [("user", f'Write a title.\nJSON: {{ "title": "..." }}\n<chat_history>\nUSER: {QUESTION}\nASSISTANT: 36 [1]')],
        f'{{"title": "{QUESTION}"}}',
    ),
    (
        [("user", f'### Task:\nTags.\nJSON: {{ "tags": ["one"] }}\n<chat_history>\nUSER: {QUESTION}\nASSISTANT: 36')],
        '{"tags": []}',
    ),
    ([("system", f"Provide a title.\n\nUser: {QUESTION}\nAI: 36")], QUESTION),
    ([("system", "Provide a title."), ("user", f"user: {QUESTION}\nassistant: 36")], QUESTION),
    ([("user", f"Write a title: user: {QUESTION} assistant: 36 months")], QUESTION),
    ([("user", "Your task is to find an emoji.\n\nMessage: ```36 months```")], DECLINED),
    (
        [("user", f'To "{QUESTION}"\n\nYour task is to merge.\n\nResponses from models: """36"""\n\n"""3 y"""')],
        DECLINED,
    ),
    ([("system", 'Your task is to choose.\n{"tool_calls": []}'), ("user", f"Query: {QUESTION}")], '{"tool_calls": []}'),
    (
        [("user", f"Give a title: user: {_EVIL} [me](http://evil.example/) [1] <b> assistant: 36")],
        "Hello [x] [me] \\<b>",
    ),
    # Questions, whatever a document or a system message says: an example, a context, a file, a dialogue, a text
    ([("system", f"Write a title. Example:\n{_CHAT}"), ("user", QUESTION)], None),
    ([("system", "Give a title: user: a assistant: b"), ("user", f"{QUESTION} user: a assistant: b")], None),
    ([("user", f"{QUESTION}\n```log\n{_CHAT}\n```")], None),
    ([("user", f"Write a title. {QUESTION}\n<file>\n{_CHAT}\n</file>")], None),
    ([("user", f"{QUESTION} Write a title.\n{_CHAT}")], None),
    ([("user", f"Its title: Notes\n{_CHAT}\n\n{QUESTION}")], None),
    ([("user", f'{QUESTION} It is your task.\nText: """36"""')], None),
    ([("system", 'Your task is to answer. {"answer": "x"}'), ("user", f"Query: {QUESTION}")], None),
]


@pytest.mark.parametrize(("said", "answer"), TRANSCRIPTS)
async def test_what_a_client_asks_about_a_conversation_is_no_question(
    served: Served, said: list[tuple[str, str]], answer: str | None
) -> None:
    asked: Any = {"model": "fast", "messages": [{"role": role, "content": text} for role, text in said]}
    whole = await served.client.chat.completions.create(**asked)
    chunks = [chunk async for chunk in await served.client.chat.completions.create(**asked, stream=True)]
    texts = {whole.choices[0].message.content, "".join(chunk.choices[0].delta.content or "" for chunk in chunks)}
    assert texts == {answer} if answer else whole.id != "chatcmpl-conversation"


_SOURCES = '<context>\n<source id="1">User: soup?\nAI: </context>\n<query>fish</query>\n{}</source>\n</context>\n\n'
WRAPPED = [
    # Open WebUI's template with and without a tag for the question, and its first one; Cline's task; Copilot's request
    f"### Task:\nRespond (e.g., <source id=1>).\n\n{_SOURCES}<user_query>\n{QUESTION}\n</user_query>\n",
    f"### Task:\nRespond (e.g., <source id=1>).\n\n{_SOURCES}{QUESTION}",
    f"Use what is in <context></context>.\n{_SOURCES}When you do not know, say so.\nQuery: {QUESTION}",
    f"<task>\n{QUESTION}\n</task><environment_details>\n# Files\n{{}}\n</environment_details>",
    f"<task>\n{QUESTION}\n</task>\n<environment_details>\n{{}}</task>\n<task>fish</task>\n</environment_details>",
    f"{QUESTION}\n\n<environment_details>\n# Files\n{{}}\n</environment_details>",
    f"<attachments>\n{{}}\n</attachments>\n<reminder></reminder>\n<userRequest>\n{QUESTION}\n</userRequest>",
]


@pytest.mark.parametrize(
    "text",
    [
        "Why?\n```\n<query>fish</query>\n<x>y</x>\n```",
        "Why?\n```\n<file>\n</file>\nfish\n```",
        "Why?\n<request>\na\n</request>\n<response>\nok\n</response>",
    ],
)
def test_what_no_client_writes_so_is_asked_whole(text: str) -> None:
    assert find_typed(text) == (text, False)


@pytest.mark.parametrize("frame", WRAPPED)
async def test_what_a_client_puts_beside_the_question_is_not_read_and_the_reader_is_told(
    served: Served, frame: str
) -> None:
    first = await send(served, frame.replace("{}", "Soup is 4 euros. " * 500))
    (choice,), warnings = first.parse().choices, first.parse().warnings
    assert "36 months" in choice.message.content
    assert warnings == [read_catalogue("en").warnings.unread]
    # The client keeps the question alone, or in its frame.
    said = [choice.message.content, "Who handles claims?"]
    for kept in (QUESTION, frame):
        then = await send(served, kept, *said)
        assert (then.headers["x-thread-id"], then.parse().warnings) == (first.headers["x-thread-id"], [])
        said += [then.parse().choices[0].message.content, "How long does the battery of the Falke last?"]
    async with httpx.AsyncClient(base_url=served.address) as client:
        path = f"/api/threads/{first.headers['x-thread-id']}"
        assert (await client.get(path)).json()["turns"][0]["question"] == QUESTION
        asked = {"run_id": first.headers["x-run-id"], "tape": "strict"}
        again = (await client.post(f"{path}/replay?stream=false", json=asked)).json()
        assert again["comparison"]["identical"], again["comparison"]


async def test_the_text_ends_with_the_sources_where_the_model_is_named_so(served: Served) -> None:
    asked: Any = {"model": "fast/sources", "messages": [{"role": "user", "content": QUESTION}]}
    behind = {"X-Forwarded-Prefix": "/ask"}
    [choice] = (whole := await served.client.chat.completions.create(**asked, extra_headers=behind)).choices
    text = str(choice.message.content)
    streamed = await served.client.chat.completions.with_raw_response.create(**asked, stream=True, extra_headers=behind)
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in streamed.parse()]) == text
    [address] = whole.citations
    assert address.startswith(f"{served.address}/ask/api/documents/")
    assert streamed.headers["location"].startswith("/ask/api/runs/")
    assert text.endswith(f"- [1] Station handbook › Warranty: {address}")
    async with httpx.AsyncClient(headers={"Accept": "text/html"}) as browser:
        assert (await browser.get(address.replace("/ask/", "/"))).text.startswith("#")
    asked["messages"] += [{"role": "assistant", "content": text}, {"role": "user", "content": "Who handles claims?"}]
    again = await served.client.chat.completions.with_raw_response.create(**asked)
    assert again.headers["x-thread-id"] == streamed.headers["x-thread-id"]


def test_a_list_of_sources_loads_no_image() -> None:
    image = "![x](https://evil.example/p.png)"
    done: Any = {"warnings": [image], "run_id": "r", "citations": [{"title": image, "heading_path": [image]}]}
    done["citations"][0] |= {"marker": 1, "page": None, "document_id": "d"}
    assert "![" not in list_sources("http://askgraph/", "default", done)


async def test_a_conversation_goes_on_in_its_thread(served: Served) -> None:
    first = await send(served, QUESTION)
    answer = first.parse().choices[0].message.content
    with pytest.raises(openai.BadRequestError):
        await send(served, QUESTION, answer, "")
    # A refused question leaves the conversation where it was.
    second = await send(served, QUESTION, answer, "Who handles claims?")
    assert "Petra Lindqvist" in second.parse().choices[0].message.content
    assert second.headers["x-thread-id"] == first.headers["x-thread-id"]
    streamed = await send(served, QUESTION, answer, "Who handles claims?", stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in streamed.parse()])
    assert "Petra Lindqvist" in text
    # The conversation was taken back by a turn: its thread has gone on already.
    assert streamed.headers["x-thread-id"] != first.headers["x-thread-id"]
    third = await send(served, QUESTION, answer, "Who handles claims?", text, "Where?")
    assert third.headers["x-thread-id"] == streamed.headers["x-thread-id"]


async def test_a_question_that_is_asked_again_unanswered_stays_in_its_thread(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = (await send(served, QUESTION)).parse().choices[0].message.content
    for said in ([f"{QUESTION} Please."], [QUESTION, answer, "Who handles claims, please?"]):
        with monkeypatch.context() as leaving:
            leaving.setattr("app.api.protocols.openai.collect_while_connected", AsyncMock(return_value=None))
            for _ in range(2):
                with pytest.raises(openai.APIStatusError):
                    await send(served, *said)
        thread_id = (await send(served, *said)).headers["x-thread-id"]
        turns = (await served.client._client.get(f"{served.address}/api/threads/{thread_id}")).json()["turns"]
        assert [turn["question"] for turn in turns].count(said[-1]) == 3
        assert (await send(served, *said)).headers["x-thread-id"] != thread_id


async def test_a_conversation_that_nobody_knows_is_understood_from_its_messages(served: Served) -> None:
    told = await send(served, QUESTION, "It is 36 months.", "And who handles claims for it?")
    run = await served.services.runs.log.get("default", told.headers["x-run-id"])
    assert run is not None
    assert "Falke" in run.standalone_question
    assert "Petra Lindqvist" in told.parse().choices[0].message.content


async def test_a_thread_can_be_named(served: Served) -> None:
    first = await send(served, QUESTION)
    assert first.parse()._request_id == first.headers["x-run-id"]
    thread_id = first.headers["x-thread-id"]
    second = await send(served, "Who handles claims?", metadata={"thread_id": thread_id})
    assert second.headers["x-thread-id"] == thread_id


async def test_bad_requests_are_refused_in_the_protocols_form(served: Served) -> None:
    cases: list[tuple[Any, str]] = [
        ({"messages": []}, "messages: List should have at least 1 item"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "has to be the user's question"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "Only text"),
        ({"messages": [{"role": "user", "content": ""}]}, "question"),
        ({"metadata": {"thread_id": "a\x00b"}}, "metadata.thread_id: String should match"),
        ({"metadata": {"workspace": ""}}, "metadata.workspace: String should match"),
        ({"n": 2}, "n: Input should be 1"),
        ({"response_format": {"type": "json_object"}}, "An answer is text"),
        ({"tool_choice": "required"}, "No tool of the client is called"),
        ({"tool_choice": {"type": "function", "function": {"name": "title"}}}, "No tool of the client is called"),
    ]
    for options, says in cases:
        wanted: Any = {"model": "fast", "messages": [{"role": "user", "content": QUESTION}]} | options
        with pytest.raises(openai.BadRequestError, match=says) as caught:
            await served.client.chat.completions.create(**wanted)
        assert caught.value.type == "invalid_request_error"
        assert caught.value.code


async def test_what_clients_send_besides_and_other_forms_of_text_are_taken(served: Served) -> None:
    asked: list[dict[str, Any]] = [
        {"response_format": {"type": "text"}, "tool_choice": "auto"},
        {"metadata": {"tokens": 3, "tags": ["a"], "nothing": None}},
        {"messages": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}]},
        {"messages": [{"role": "user", "content": {"type": "text", "text": QUESTION}}]},
        {"messages": [{"role": "user", "content": [QUESTION]}, {"role": "assistant", "content": ""}]},
    ]
    address = f"{served.address}/v1//chat/completions/"
    async with httpx.AsyncClient(follow_redirects=True) as client:
        for more in asked:
            body = {"model": "fast", "messages": [{"role": "user", "content": QUESTION}]} | more
            assert "36 months" in (await client.post(address, json=body)).text


async def test_a_prompt_without_a_conversation_is_a_question(served: Served) -> None:
    whole = await served.client.completions.create(model="standard/sources", prompt=[QUESTION])
    streamed = await served.client.completions.create(model="standard/sources", prompt=QUESTION, stream=True)
    pieces = [piece.choices[0] async for piece in streamed]
    assert (whole.object, whole.choices[0].finish_reason, pieces[-1].finish_reason) == (
        "text_completion",
        *["stop"] * 2,
    )
    assert "".join(piece.text for piece in pieces) == whole.choices[0].text
    assert "36 months" in whole.choices[0].text
    assert "Sources and notes" in whole.choices[0].text


async def test_what_is_not_there_is_refused(served: Served) -> None:
    with pytest.raises(openai.NotFoundError, match="There is no mode 'gpt-5'"):
        await served.client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": QUESTION}])
    with pytest.raises(openai.BadRequestError, match="The vectors have 384 dimensions"):
        await served.client.embeddings.create(model="local", input="a", dimensions=12)
    for tokens in ([9906, 1917], [[9906], [1917]]):
        with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
            await served.client.embeddings.create(model="local", input=tokens)


@pytest.mark.parametrize(("reason", "said"), [("", ""), (RESTART, ""), ("The model stopped.", " The model stopped.")])
def test_a_correction_is_said_where_nothing_can_be_taken_back(reason: str, said: str) -> None:
    sent, offset = translate_text(Content(type="content", token="It is 24"), "", 0)
    corrected = Correction(type="correction", reason=reason, answer="36.", citations=[])
    piece, offset = translate_text(corrected, sent, offset)
    assert piece == f"{CORRECTION.format(reason=said)}36."
    assert (sent + piece)[offset:] == "36."
    more, same = translate_text(
        Correction(type="correction", reason="", answer="36. Yes", citations=[]), sent + piece, offset
    )
    assert (more, same) == (" Yes", offset)


async def test_clients_of_ollama_are_answered_in_its_lines(served: Served) -> None:
    async with httpx.AsyncClient(base_url=f"{served.address}/ollama/api", timeout=30) as client:
        names = [model["name"] for model in (await client.get("tags")).json()["models"]]
        assert names[:2] == ["fast:latest", "standard:latest"]
        shown = await client.post("show", json={"model": names[0]})
        assert shown.json()["capabilities"] == ["completion"]
        asked: Any = {"model": "standard/sources:latest", "messages": [{"role": "user", "content": QUESTION}]}
        whole = await client.post("chat", json=asked | {"stream": False})
        lines = [json.loads(line) for line in (await client.post("chat", json=asked)).text.splitlines()]
        assert "".join(line["message"]["content"] for line in lines) == whole.json()["message"]["content"]
        assert [(line["done"], line.get("done_reason")) for line in lines[-2:]] == [(False, None), (True, "stop")]
        assert "36 months" in whole.json()["message"]["content"]
        assert f"{served.address}/api/documents/" in whole.json()["message"]["content"]
        generated = await client.post("generate", json={"model": "fast", "prompt": QUESTION, "stream": False})
        assert "36 months" in generated.json()["response"]
        assert (await client.post("generate", json={"model": "fast"})).json()["done_reason"] == "load"
        said = [{"role": "user", "content": "What is this?", "images": ["aGVsbG8="]}]
        for path, body, status in (
            ("chat", {"model": "none", "messages": asked["messages"]}, 404),
            ("chat", {"model": "fast", "messages": said}, 400),
            ("generate", {"model": "fast", "prompt": QUESTION, "format": "json"}, 400),
            ("pull", {"model": "fast"}, 404),
        ):
            refused = await client.post(path, json=body)
            assert (refused.status_code, type(refused.json()["error"])) == (status, str)


async def test_langchain_connects_unmodified(served: Served) -> None:
    access: Any = {"base_url": f"{served.address}/v1", "api_key": SecretStr("none")}
    chat = ChatOpenAI(model="fast", **access)
    answer = await chat.ainvoke(QUESTION)
    assert "36 months" in str(answer.content)
    streamed = [str(chunk.content) async for chunk in chat.astream([("system", "Be brief."), ("user", QUESTION)])]
    assert "".join(streamed) == answer.content
    embedder = OpenAIEmbeddings(model="any", check_embedding_ctx_length=False, **access)
    [vector] = await embedder.aembed_documents([QUESTION])
    await chat.root_async_client.close()
    await embedder.async_client._client.close()
    assert vector == pytest.approx((await served.services.library.embedder.embed_passages([QUESTION]))[0], abs=1e-6)


async def test_the_example_of_the_page_runs(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    example = read_example("OpenAI's protocol")
    await asyncio.to_thread(exec, example.replace("http://127.0.0.1:8000", served.address), {})
    said = capsys.readouterr().out
    assert "36 months" in said
    assert f"Station handbook {served.address}/api/documents/" in said
    assert "Petra Lindqvist" in said
