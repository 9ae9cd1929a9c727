"""Contract of every `ChatModel` over a provider's own protocol and SDK. An adapter's tests inherit from the class and
provide the fixture `provider`, of which `server` (a test server of that provider) and `model` (a model served by it) are
made."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pytest

from app.adapters.chat.connections import Connections
from app.adapters.chat.providers import Access
from app.adapters.prices import read_prices
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelRejectedKey,
    ModelReplyCut,
    ModelTimeout,
    ModelUnavailable,
)
from domain.ports.models import ChatModel, Message
from domain.ports.pictures import Picture
from tests.contracts.chat_model import MESSAGES, Call, ChatModelContract, Sink, call


class Server(Protocol):
    """A server of `tests/wire`."""

    behaviour: Any
    requests: list[dict[str, Any]]
    abandoned: asyncio.Event
    base_url: str


@asynccontextmanager
async def connect(server: Server, name: str, timeout: float = 10) -> AsyncIterator[tuple[Connections, ChatModel]]:
    """The model of that name, asked on the server."""
    access = {name.partition(":")[0]: Access("key", server.base_url)}
    connections = Connections(access, timeout=timeout, prices=read_prices())
    models = connections.connect({"large": name}, [], {})
    assert models.large is not None
    yield connections, models.large
    await connections.close()


@dataclass(frozen=True)
class Provider:
    """Address and names of a provider."""

    model: str
    other_model: str
    """Which the provider calls so, and which is not `model`."""
    key: str
    """Name of the environment variable that holds its key."""
    serve: Callable[..., AbstractAsyncContextManager[Server]]
    picture: dict[str, Any]
    """The part of a message that shows a JPEG picture with the data `PICTURE`, as the provider documents it."""
    faults: dict[str, type[AskgraphError]]
    """The errors that faults of its own become; those of all providers are `FAULTS`."""
    most_requests: int = 3
    """That it takes to learn what helps after the fault `server_error` or `silent_length`."""
    cuts: tuple[str, ...] = ("cut", "no_finish", "stream_error")
    """The faults after which a stream is not finished."""

    @asynccontextmanager
    async def open(self, timeout: float = 10, **behaviour: Any) -> AsyncIterator[tuple[Server, Connections, ChatModel]]:
        """A server that behaves so, and the model on it."""
        async with self.serve(**behaviour) as server, connect(server, self.model, timeout) as (connections, model):
            yield server, connections, model


async def check_fault(provider: Provider, how: Call, fault: str, expected: type[AskgraphError]) -> None:
    """The fault becomes this error, after as many requests as it is worth."""
    async with provider.open(fault=fault) as (server, _, model):
        with pytest.raises(AskgraphError) as caught:
            await call(model, how)
        # Of a judgement that is empty some SDKs make an error, and others a text that can be repaired.
        wanted = {3} if expected is ModelUnavailable else {1, 2} if (how, fault) == ("judge", "empty") else {1}
        if fault in ("server_error", "silent_length"):
            wanted |= {3, provider.most_requests} if provider.most_requests > 3 else set()
        assert len(server.requests) in wanted, "the SDK must not try again by itself"
    assert type(caught.value) is expected, fault


PICTURE = "/9j/4AAQ"


def _list_parts(value: Any) -> list[Any]:
    """Return every object in a request."""
    if isinstance(value, dict):
        return [value, *(part for each in value.values() for part in _list_parts(each))]
    return [part for each in value for part in _list_parts(each)] if isinstance(value, list) else []


asked = pytest.mark.parametrize("how", ["judge", "act", "stream"])


FAULTS = {
    "unauthorized": ModelRejectedKey,
    "forbidden": ModelRejectedKey,
    "context_length": ContextTooLong,
    "rate_limit": ModelUnavailable,
    "server_error": ModelUnavailable,
    "silent_length": ModelError,
}


class ProviderContract(ChatModelContract):
    @pytest.mark.parametrize("how", ["judge", "stream"])
    async def test_a_fault_becomes_the_domain_error(self, provider: Provider, how: Call) -> None:
        for fault, expected in (FAULTS | provider.faults).items():
            await check_fault(provider, how, fault, expected)

    @pytest.mark.parametrize("how", ["judge", "stream"])
    async def test_shows_pictures_in_the_form_of_the_protocol(self, provider: Provider, how: Call) -> None:
        async with provider.open() as (server, _, model):
            assert model.sees
            *first, question = MESSAGES
            sink = Sink()
            pages = [Picture("d", page, 724, 1024, "digest", PICTURE) for page in (1, 2)]
            shown = [*first, replace(question, pictures=pages)]
            await call(model, how, sink, shown)
            [request] = server.requests
            assert _list_parts(request).count(provider.picture) == 2

    @asked
    @pytest.mark.parametrize("fault", ["rate_limit", "server_error"])
    async def test_a_passing_fault_is_noted_and_not_noticed(self, provider: Provider, how: Call, fault: str) -> None:
        sink = Sink()
        async with provider.open(faults=[fault, fault]) as (server, _, model):
            await call(model, how, sink)
            assert len(server.requests) == 3
        assert len(sink.usage) == 1, "what failed is not paid for"
        assert [failed.status for failed in sink.failures] == [{"rate_limit": 429, "server_error": 500}[fault]] * 2
        assert all(failed.message for failed in sink.failures)

    async def test_an_error_as_the_first_event_is_tried_again(self, provider: Provider) -> None:
        async with provider.open(faults=["early_stream_error"]) as (server, _, model):
            assert "six weeks" in await call(model, "stream")
            assert len(server.requests) == 2

    async def test_repairs_once_with_the_error_in_hand(self, model: ChatModel, server: Server) -> None:
        server.behaviour.faults = ["misfit"]
        sink = Sink()
        await call(model, "judge", sink)
        [asked, again] = server.requests
        assert "Field required" not in str(asked)
        assert "Field required" in str(again)
        assert len(sink.usage) == 2

    @asked
    async def test_does_not_wait_for_longer_than_a_reader_would(self, provider: Provider, how: Call) -> None:
        async with provider.open(60, fault="rate_limit", retry_after=60) as (server, _, model):
            async with asyncio.timeout(10):
                with pytest.raises(ModelUnavailable):
                    await call(model, how)
            assert len(server.requests) == 1

    @pytest.mark.parametrize(
        ("how", "fault"),
        [("judge", "stall_before"), ("act", "stall_before"), ("stream", "stall_before"), ("stream", "stall_within")],
    )
    async def test_a_server_that_says_nothing_is_a_timeout(self, provider: Provider, how: Call, fault: str) -> None:
        sink = Sink()
        async with provider.open(0.2, fault=fault) as (_, _, model):
            with pytest.raises(ModelTimeout):
                await call(model, how, sink)
        (usage,) = sink.usage
        assert usage.estimated or fault == "stall_within", "some providers count with each chunk"
        assert usage.input_tokens > 10
        assert usage.cost
        assert (usage.output_tokens > 0) == (fault == "stall_within")

    @asked
    async def test_a_call_that_is_cancelled_costs_an_estimate(self, provider: Provider, how: Call) -> None:
        sink = Sink()
        async with provider.open(fault="stall_before") as (_, _, model):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await call(model, how, sink)
        assert [used.estimated for used in sink.usage] == [True]
        assert sink.usage[0].input_tokens > 10

    @asked
    async def test_a_server_that_is_gone_is_unavailable(self, provider: Provider, how: Call) -> None:
        async with provider.serve() as server:
            pass
        async with connect(server, provider.model) as (_, model):
            with pytest.raises(ModelUnavailable):
                await call(model, how)

    async def test_a_reply_that_was_not_finished_is_no_reply(self, provider: Provider) -> None:
        for fault in provider.cuts:
            sink = Sink()
            async with provider.open(fault=fault) as (_, _, model):
                with pytest.raises(ModelReplyCut):
                    await call(model, "stream", sink)
            [usage] = sink.usage
            assert usage.output_tokens > 0, "a call that was cut costs all the same"

    async def test_a_reply_that_reached_its_length_ends_without_an_error(self, provider: Provider) -> None:
        sink = Sink()
        async with provider.open(fault="length") as (_, _, model):
            assert await call(model, "stream", sink)
        assert sink.usage[0].full

    @pytest.mark.parametrize("fault", ["length", "malformed", "prose", "misfit"])
    async def test_a_judgement_that_cannot_be_used_is_an_error(self, provider: Provider, fault: str) -> None:
        async with provider.open(fault=fault) as (server, _, model):
            with pytest.raises(ModelError):
                await call(model, "judge")
            assert len(server.requests) <= 2

    async def test_leaving_a_stream_closes_the_connection(self, model: ChatModel, server: Server) -> None:
        server.behaviour.rate = 20
        stream = model.stream([Message("user", "Hello!")], Sink(), temperature=0, max_tokens=50)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(server.abandoned.wait(), 10)

    async def test_cancelling_a_stream_closes_the_connection(self, model: ChatModel, server: Server) -> None:
        server.behaviour.fault = "stall_within"
        stream = model.stream([Message("user", "Hello!")], Sink(), temperature=0, max_tokens=50)
        await anext(stream)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await anext(stream)
        await asyncio.wait_for(server.abandoned.wait(), 10)

    async def test_the_check_finds_nothing_wrong(self, provider: Provider) -> None:
        async with provider.open() as (_, connections, _):
            await connections.check()
            assert await connections.find_problem() is None

    async def test_the_check_says_that_the_key_is_wrong(self, provider: Provider) -> None:
        async with provider.open(api_key="another") as (_, connections, _):
            await connections.check()
            assert provider.key in (await connections.find_problem() or "")

    async def test_the_check_says_that_the_model_is_unknown(self, provider: Provider) -> None:
        async with provider.open(models=(provider.other_model,)) as (_, connections, _):
            await connections.check()
            assert repr(provider.model.partition(":")[2]) in (await connections.find_problem() or "")

    async def test_the_check_says_that_nobody_answers(self, provider: Provider) -> None:
        async with provider.serve() as server:
            pass
        async with connect(server, provider.model) as (connections, _):
            await connections.check()
            assert "does not answer" in (await connections.find_problem() or "")
