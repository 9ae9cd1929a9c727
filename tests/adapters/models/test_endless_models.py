"""Replies that never end, are far too long, or are no text: each has an end in bytes and time, and nothing is waited for
that a model sends beside its words."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest

from app.adapters.chat.langchain import LONGEST_THOUGHTS, TOKEN_CHARACTERS, read_thoughts
from app.adapters.chat.openai import OpenAIChat
from app.adapters.chat.replies import LONGEST_LINE, ReplyReader, ThoughtAloudError
from app.adapters.chat.running_on import RunningOn
from domain.errors import ModelError, ModelReplyCut, ModelTimeout
from domain.ports.models import UNSAID
from tests.adapters.models.test_openai import PROVIDER
from tests.contracts.chat_model import MESSAGES, SEARCH, Call, Sink, call
from tests.wire.faults import Json
from tests.wire.openai import OpenAIServer, event_of


@pytest.fixture
def provider() -> Any:
    return PROVIDER


def send(server: Any, *parts: bytes, then: bytes = b"") -> list[int]:
    """Let the server send these parts, and `then` for ever if it is given. Returns the number of bytes sent so far."""
    sent = [0]

    async def answer(body: Json) -> AsyncIterator[bytes]:
        def list_parts() -> Iterator[bytes]:
            yield from parts
            while then:
                yield then

        for part in list_parts():
            sent[0] += len(part)
            yield part
            await asyncio.sleep(0)

    server.behaviour.send = answer
    return sent


async def test_words_end_where_so_many_tokens_could_not_go_on(model: OpenAIChat, server: OpenAIServer) -> None:
    counted = (event_of({"content": f"[1] and {number} so on "}) for number in range(100_000))
    sent = send(server, event_of({"role": "assistant"}), *counted)
    sink = Sink()
    said = await call(model, "stream", sink)
    assert len(said) == 100 * TOKEN_CHARACTERS
    (usage,) = sink.usage
    assert usage.full
    assert usage.output_tokens > 0
    before = sent[0]
    await asyncio.sleep(0.2)
    assert sent[0] - before < 1_000_000, "the connection is closed"


_WHOLE = "The warranty lasts 36 months [1]."


@pytest.mark.parametrize("more", ["\n", " \n", "\u200b", ".", "- ", "---\n", "\n#", f" {_WHOLE}", f"{_WHOLE}\n"])
async def test_words_end_where_nothing_more_is_said(model: OpenAIChat, server: OpenAIServer, more: str) -> None:
    sent = send(
        server, *(event_of({"content": f"{piece} "}) for piece in _WHOLE.split()), then=event_of({"content": more})
    )
    sink = Sink()
    said = await call(model, "stream", sink)
    assert said.startswith(_WHOLE)
    assert said.endswith((_WHOLE, f"{_WHOLE} ."))
    assert said.count("36") <= 2
    assert [(used.full, used.ended) for used in sink.usage] == [(False, UNSAID)]
    assert sent[0] < 3_000_000


async def test_blanks_are_silence() -> None:
    async with PROVIDER.open(0.3, send=lambda body: drip()) as (_, _, model):
        with pytest.raises(ModelTimeout):
            await call(model, "stream")


async def drip() -> AsyncIterator[bytes]:
    while True:
        yield event_of({"content": "\n"})
        await asyncio.sleep(0.01)


def test_what_repeats_itself_for_a_while_and_goes_on_loses_nothing() -> None:
    table = f"|{'-' * 300}|\n" + "| 0 | 0 | 0 |\n" * 9 + "\n... and then [1, 2].\n\n\nEnd, of it...\n"
    for step in (1, 3, 7, 50, 5000):
        running = RunningOn()
        passed = [running.feed(table[at : at + step]) for at in range(0, len(table), step)]
        assert "".join([*passed, running.finish()]) == table.rstrip()


async def test_a_token_of_thirty_megabytes_is_no_token(model: OpenAIChat, server: OpenAIServer) -> None:
    for kind in ("content", "reasoning_content"):
        send(server, event_of({"content": "At first"}), event_of({kind: "x" * 30_000_000}), event_of({}, "stop"))
        with pytest.raises(ModelReplyCut):
            await call(model, "stream")


async def test_a_stream_without_lines_ends(model: OpenAIChat, server: OpenAIServer) -> None:
    sent = send(server, b"data: ", then=b"x" * 1000)
    with pytest.raises((ModelError, ModelReplyCut)):
        await call(model, "stream")
    assert sent[0] < 20 * LONGEST_LINE


@pytest.mark.parametrize("how", ["judge", "act"])
async def test_a_whole_reply_without_an_end_is_given_up(model: OpenAIChat, server: OpenAIServer, how: Call) -> None:
    sent = send(server, b'{"choices": [{"message": {"content": "', then=b"x" * 10_000)
    with pytest.raises(ModelError, match="was not read"):
        await call(model, how)
    assert sent[0] < 20_000_000
    assert len(server.requests) == 1, "asked once"


async def test_an_error_without_an_end_is_given_up(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.fault = "server_error"
    send(server, b'{"error": "', then=b"x" * 10_000)
    for how in ("judge", "stream"):
        with pytest.raises(ModelError, match="was not read"):
            await call(model, how)


async def test_arguments_and_judgements_are_no_longer_than_was_asked_for(
    model: OpenAIChat, server: OpenAIServer
) -> None:
    function = {"name": "search", "arguments": json.dumps({"query": "x" * 500_000})}
    calling = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    for message in (calling, {"role": "assistant", "content": '{"kind": "' + "x" * 500_000}):
        send(server, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode())
        for how in ("act", "judge"):
            with pytest.raises(ModelError, match="far more than"):
                await call(model, how)


@pytest.mark.parametrize(
    "odd",
    [
        "<|channel|>" + "a" * 200_000, " " * 200_000, "<parameter=x>" * 20_000, "{" * 200_000, "<|a|> " * 40_000,
        "</think>, " * 150_000,
    ],
)  # fmt: skip
async def test_marks_are_found_in_time_in_proportion_to_the_text(odd: str) -> None:
    began = time.process_time()
    reader = ReplyReader(offered=["search"])
    with suppress(ThoughtAloudError):  # what is told at an end of thoughts after words
        list(reader.read({"choices": [{"message": {"content": f"<function=search>{odd}"}}]}))
        list(reader.end())
    reader.list_calls()
    assert time.process_time() - began < 1


async def test_thoughts_are_not_waited_for_longer_than_silence() -> None:
    async with PROVIDER.open(0.5) as (server, _, model):
        send(server, then=event_of({"reasoning_content": "hm "}))
        with pytest.raises((ModelTimeout, ModelReplyCut)):
            await call(model, "stream")


async def test_thoughts_come_in_few_pieces_which_langchain_puts_together_soon(
    model: OpenAIChat, server: OpenAIServer
) -> None:
    silent = [event_of({"reasoning_content": "hm "}), event_of({"content": ""}), event_of({"role": "assistant"})]
    send(server, *(silent * 10_000), event_of({"content": "Yes."}), event_of({}, "stop"))
    chunks: list[Any] = [chunk async for chunk in model.client.astream("?")]
    assert "".join(chunk.text for chunk in chunks) == "Yes."
    assert len(chunks) < 50
    assert LONGEST_THOUGHTS - 50 < len("".join(map(read_thoughts, chunks))) <= LONGEST_THOUGHTS


async def test_a_model_that_never_pauses_can_be_cancelled(model: OpenAIChat, server: OpenAIServer) -> None:
    send(server, then=event_of({"reasoning_content": "hm "}) * 200)
    asking = asyncio.create_task(call(model, "stream"))
    for _ in range(50):
        await asyncio.sleep(0.01)
    asking.cancel()
    done, _ = await asyncio.wait({asking}, timeout=5)
    assert done
    assert asking.cancelled()


@pytest.mark.parametrize("alive", [b"null", b'"keepalive"', b"[]", b"1"])
async def test_what_keeps_a_connection_alive_is_no_reply(model: OpenAIChat, server: OpenAIServer, alive: bytes) -> None:
    send(server, b"data: " + alive + b"\n\n", event_of({"content": "Yes."}), event_of({}, "stop"))
    assert await call(model, "stream") == "Yes."


async def test_calls_that_nobody_offered_are_dropped_from_a_stream(model: OpenAIChat, server: OpenAIServer) -> None:
    asked = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "x", "arguments": "{"}}]}
    send(server, event_of(asked), event_of({"content": "Yes."}), event_of({}, "stop"))
    chunks: list[Any] = [chunk async for chunk in model.client.astream("?")]
    assert "".join(chunk.text for chunk in chunks) == "Yes."
    assert not any(chunk.tool_call_chunks for chunk in chunks)
    # Nor are they waited for.
    for function in ({"name": "x", "arguments": "["}, {"arguments": "[" * 10_000}):
        endless = event_of({"tool_calls": [{"index": 0, "id": "c", "function": function}]})
        send(server, event_of(asked), event_of({"content": "Yes."}), then=endless)
        sink = Sink()
        assert await asyncio.wait_for(call(model, "stream", sink), 4) == "Yes."
        assert sink.usage[0].full


@pytest.mark.parametrize("odd", [{"choices": [None]}, {"choices": [{"delta": "hi"}]}, {"choices": [{"message": None}]}])
async def test_a_reply_of_another_shape_is_an_error_of_the_model(
    model: OpenAIChat, server: OpenAIServer, odd: Json
) -> None:
    send(server, b"data: " + json.dumps(odd).encode() + b"\n\n")
    with pytest.raises((ModelError, ModelReplyCut)):
        await call(model, "stream")
    send(server, json.dumps(odd).encode())
    for how in ("judge", "act"):
        with pytest.raises(ModelError):
            await call(model, how)


async def test_text_that_cannot_be_stored_is_mended_where_it_comes_in(model: OpenAIChat, server: OpenAIServer) -> None:
    def say(*written: str) -> None:
        pieces = [event_of({"content": "@"}).replace(b"@", piece.encode()) for piece in written]
        send(server, *pieces, event_of({}, "stop"))

    say(r"a\u0000b \ud83d", r"\ude00 \ud83d", "!")
    assert await call(model, "stream") == "a�b 😀 �!"
    function = {"name": "search", "arguments": json.dumps({"query": "a\0b \ud83d"})}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    send(server, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}).encode())
    (called,) = (await model.act(MESSAGES, [SEARCH], Sink(), max_tokens=100)).calls
    assert called.arguments == {"query": "a�b �"}
    judgement = {"kind": "good", "certain": True, "count": 1, "parts": [], "reason": "a\0b \ud83d", "format": ""}
    message = {"role": "assistant", "content": json.dumps(judgement)}
    send(server, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode())
    assert "a�b �" in await call(model, "judge")
