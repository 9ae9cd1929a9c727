"""Claude by `anthropic:NAME`: langchain-anthropic and Anthropic's SDK, over the real protocol."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from app.adapters.connections import Connections
from app.adapters.prices import read_prices
from app.adapters.providers import Access
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelRefused,
    ModelRejectedKey,
    ModelReplyCut,
    ModelTimeout,
    ModelUnavailable,
)
from domain.ports import ChatModel, Message
from tests.contracts.chat_model import Call, ChatModelContract, Sink, call
from tests.wire.anthropic import AnthropicServer, Fault, serve_anthropic

NAME = "anthropic:claude-haiku-4-5"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.chat.PAUSES", (0.01, 0.02))


@asynccontextmanager
async def connect(server: AnthropicServer, timeout: float = 10) -> AsyncIterator[tuple[Connections, ChatModel]]:
    access = {"anthropic": Access("key", server.base_url)}
    connections = Connections(access, timeout=timeout, prices=read_prices())
    models = connections.connect({"large": NAME}, [], {})
    assert models.large is not None
    yield connections, models.large
    await connections.close()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[AnthropicServer]:
    async with serve_anthropic() as server:
        yield server


@pytest_asyncio.fixture
async def model(server: AnthropicServer) -> AsyncIterator[ChatModel]:
    async with connect(server) as (_, model):
        yield model


class TestContract(ChatModelContract):
    """`LangChainChat` over Anthropic's protocol."""


async def test_a_judgement_is_the_input_of_a_tool(model: ChatModel, server: AnthropicServer) -> None:
    await call(model, "judge")
    [request] = server.requests
    assert [tool["name"] for tool in request["tools"]] == ["Judgement"]
    assert request["tool_choice"]["name"] == "Judgement"
    assert request["temperature"] == 0


async def test_limits_and_temperature_are_sent(model: ChatModel, server: AnthropicServer) -> None:
    await call(model, "stream")
    [request] = server.requests
    assert (request["model"], request["max_tokens"], request["temperature"]) == ("claude-haiku-4-5", 100, 0.2)
    assert request["system"]
    assert [message["role"] for message in request["messages"]] == ["user"]


async def test_costs_what_the_price_table_says(model: ChatModel) -> None:
    sink = Sink()
    await call(model, "judge", sink)
    await call(model, "stream", sink)
    for usage in sink.usage:
        assert usage.model == NAME
        assert usage.cost == pytest.approx(usage.input_tokens * 1e-6 + usage.output_tokens * 5e-6)


async def test_repairs_once_with_the_error_in_hand(model: ChatModel, server: AnthropicServer) -> None:
    server.behaviour.faults = ["misfit"]
    sink = Sink()
    await call(model, "judge", sink)
    assert "Field required" in str(server.requests[1]["messages"][-1]["content"])
    assert len(sink.usage) == 2


@pytest.mark.parametrize("how", ["judge", "stream"])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("unauthorized", ModelRejectedKey),
        ("forbidden", ModelRejectedKey),
        ("context_length", ContextTooLong),
        ("invalid", ModelError),
        ("refusal", ModelRefused),
        ("rate_limit", ModelUnavailable),
        ("server_error", ModelUnavailable),
        ("overloaded", ModelUnavailable),
        ("silent_length", ModelError),
        ("empty", ModelError),
    ],
)
async def test_a_fault_becomes_the_domain_error(how: Call, fault: Fault, expected: type[AskgraphError]) -> None:
    async with serve_anthropic(fault=fault) as server, connect(server) as (_, model):
        with pytest.raises(AskgraphError) as caught:
            await call(model, how)
    assert type(caught.value) is expected


@pytest.mark.parametrize("how", ["judge", "stream"])
@pytest.mark.parametrize("fault", ["rate_limit", "server_error"])
async def test_a_passing_fault_is_not_noticed(how: Call, fault: Fault) -> None:
    async with serve_anthropic(faults=[fault, fault]) as server, connect(server) as (_, model):
        await call(model, how)
        assert len(server.requests) == 3


async def test_an_error_as_the_first_event_is_tried_again() -> None:
    async with serve_anthropic(faults=["early_stream_error"]) as server, connect(server) as (_, model):
        assert "six weeks" in await call(model, "stream")
        assert len(server.requests) == 2


@pytest.mark.parametrize("how", ["judge", "stream"])
async def test_does_not_wait_for_longer_than_a_reader_would(how: Call) -> None:
    async with serve_anthropic(fault="rate_limit", retry_after=60) as server, connect(server, 60) as (_, model):
        async with asyncio.timeout(10):
            with pytest.raises(ModelUnavailable):
                await call(model, how)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("how", "fault"), [("judge", "stall_before"), ("stream", "stall_before"), ("stream", "stall_within")]
)
async def test_a_server_that_says_nothing_is_a_timeout(how: Call, fault: Fault) -> None:
    async with serve_anthropic(fault=fault) as server, connect(server, 0.2) as (_, model):
        with pytest.raises(ModelTimeout):
            await call(model, how)


@pytest.mark.parametrize("fault", ["cut", "no_finish", "stream_error"])
async def test_a_reply_that_was_not_finished_is_no_reply(fault: Fault) -> None:
    sink = Sink()
    async with serve_anthropic(fault=fault) as server, connect(server) as (_, model):
        with pytest.raises(ModelReplyCut):
            await call(model, "stream", sink)
    assert len(sink.usage) == 1, "a call that was cut costs all the same"


async def test_a_reply_that_reached_its_length_ends_without_an_error() -> None:
    async with serve_anthropic(fault="length") as server, connect(server) as (_, model):
        assert await call(model, "stream")


@pytest.mark.parametrize("fault", ["length", "malformed", "prose", "misfit"])
async def test_a_judgement_that_cannot_be_used_is_an_error(fault: Fault) -> None:
    async with serve_anthropic(fault=fault) as server, connect(server) as (_, model):
        with pytest.raises(ModelError):
            await call(model, "judge")
        assert len(server.requests) <= 2


async def test_leaving_a_stream_closes_the_connection(model: ChatModel, server: AnthropicServer) -> None:
    server.behaviour.rate = 20
    stream = model.stream([Message("user", "Hello!")], Sink(), temperature=0, max_tokens=50)
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    await asyncio.wait_for(server.abandoned.wait(), 10)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ({}, None),
        ({"api_key": "another"}, "ANTHROPIC_API_KEY"),
        ({"models": ("claude-opus-5",)}, "'claude-haiku-4-5'"),
    ],
)
async def test_the_check_says_what_is_wrong(behaviour: dict[str, str], said: str | None) -> None:
    async with serve_anthropic(**behaviour) as server, connect(server) as (connections, _):
        await connections.check()
        problem = await connections.find_problem()
    assert problem is None if said is None else said in (problem or "")


async def test_the_check_says_that_nobody_answers() -> None:
    async with serve_anthropic() as server:
        pass
    async with connect(server) as (connections, _):
        await connections.check()
        assert "does not answer" in (await connections.find_problem() or "")
