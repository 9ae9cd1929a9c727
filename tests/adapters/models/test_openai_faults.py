import asyncio

import openai
import pytest

from app.adapters.chat.openai import OpenAIChat
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
from tests.contracts.chat_model import Call, Sink, call
from tests.wire.openai import Fault, OpenAIServer, serve_openai


async def ask(server: OpenAIServer, how: Call, *, timeout: float = 10, sink: Sink | None = None) -> None:
    async with openai.DefaultAsyncHttpxClient() as http:
        model = OpenAIChat("gpt-4.1-mini", api_key="key", base_url=server.base_url, timeout=timeout, http=http)
        await call(model, how, sink)


@pytest.mark.parametrize("how", ["judge", "stream"])
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("unauthorized", ModelRejectedKey),
        ("forbidden", ModelRejectedKey),
        ("context_length", ContextTooLong),
        ("policy", ModelRefused),
        ("content_filter", ModelRefused),
        ("rate_limit", ModelUnavailable),
        ("server_error", ModelUnavailable),
        ("no_quota", ModelError),
        ("malformed", ModelError),
        ("silent_length", ModelError),
    ],
)
async def test_a_fault_becomes_the_domain_error(how: Call, fault: Fault, expected: type[AskgraphError]) -> None:
    async with serve_openai(fault=fault, retry_after=0.01) as server:
        with pytest.raises(AskgraphError) as caught:
            await ask(server, how)
    assert type(caught.value) is expected
    assert caught.value.__cause__ is not None or fault in ("content_filter", "silent_length")


@pytest.mark.parametrize("how", ["judge", "stream"])
@pytest.mark.parametrize("fault", ["rate_limit", "server_error"])
async def test_a_passing_fault_is_not_noticed(how: Call, fault: Fault) -> None:
    async with serve_openai(faults=[fault, fault]) as server:
        await ask(server, how)
        assert len(server.requests) == 3


async def test_waits_as_long_as_the_server_says() -> None:
    async with serve_openai(faults=["rate_limit"], retry_after=4) as server:
        # The wait itself would make the test slow: that no second request comes within the longest
        # pause of our own is what tells that the header counted.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await ask(server, "judge")
        assert len(server.requests) == 1


@pytest.mark.parametrize("how", ["judge", "stream"])
@pytest.mark.parametrize("fault", ["rate_limit", "server_error"])
async def test_does_not_wait_for_longer_than_a_reader_would(how: Call, fault: Fault) -> None:
    async with serve_openai(fault=fault, retry_after=60) as server:
        async with asyncio.timeout(10):
            with pytest.raises(ModelUnavailable):
                await ask(server, how, timeout=60)
        assert len(server.requests) == 1


async def test_does_not_wait_past_its_own_time() -> None:
    async with serve_openai(fault="rate_limit", retry_after=4) as server:
        with pytest.raises(ModelUnavailable) as caught:
            await ask(server, "judge", timeout=3)
        assert type(caught.value) is ModelUnavailable, "said by the provider, not waited for"
        assert len(server.requests) == 1


@pytest.mark.parametrize("how", ["judge", "stream"])
@pytest.mark.parametrize(
    ("fault", "requests"), [("server_error", 3), ("rate_limit", 3), ("no_quota", 1), ("policy", 1)]
)
async def test_what_may_pass_is_tried_three_times_and_nothing_else_twice(
    how: Call, fault: Fault, requests: int
) -> None:
    async with serve_openai(fault=fault, retry_after=0.01) as server:
        with pytest.raises(AskgraphError):
            await ask(server, how)
        assert len(server.requests) == requests


@pytest.mark.parametrize("how", ["judge", "stream"])
async def test_a_server_that_is_gone_is_unavailable(how: Call) -> None:
    async with serve_openai() as server:
        pass
    with pytest.raises(ModelUnavailable):
        await ask(server, how)


@pytest.mark.parametrize(
    ("how", "fault"), [("judge", "stall_before"), ("stream", "stall_before"), ("stream", "stall_within")]
)
async def test_a_server_that_says_nothing_is_a_timeout(how: Call, fault: Fault) -> None:
    async with serve_openai(fault=fault) as server:
        with pytest.raises(ModelTimeout):
            await ask(server, how, timeout=0.2)


@pytest.mark.parametrize("fault", ["cut", "no_finish"])
async def test_a_reply_that_was_not_finished_is_no_reply(fault: Fault) -> None:
    sink = Sink()
    async with serve_openai(fault=fault) as server:
        with pytest.raises(ModelReplyCut):
            await ask(server, "stream", sink=sink)
    assert len(sink.usage) == 1, "a call that was cut costs all the same"


async def test_an_error_within_the_stream_cuts_it() -> None:
    async with serve_openai(fault="stream_error") as server:
        with pytest.raises(ModelReplyCut):
            await ask(server, "stream")


@pytest.mark.parametrize("how", ["judge", "stream"])
async def test_a_reply_without_choices_is_an_error(how: Call) -> None:
    async with serve_openai(fault="empty") as server:
        with pytest.raises(ModelError):
            await ask(server, how)


@pytest.mark.parametrize("sends_usage", [True, False])
async def test_a_reply_that_reached_its_length_ends_without_an_error_and_says_so(sends_usage: bool) -> None:
    sink = Sink()
    async with serve_openai(faults=["length"], sends_usage=sends_usage) as server:
        await ask(server, "stream", sink=sink)
        await ask(server, "stream", sink=sink)
    assert [used.full for used in sink.usage] == [True, False]


async def test_a_judgement_that_reached_its_length_is_an_error_and_costs() -> None:
    sink = Sink()
    async with serve_openai(fault="length") as server:
        with pytest.raises(ModelError):
            await ask(server, "judge", sink=sink)
    assert sink.usage[0].input_tokens > 0


async def test_a_refusal_is_an_error() -> None:
    async with serve_openai(fault="refusal") as server:
        with pytest.raises(ModelRefused):
            await ask(server, "judge")


@pytest.mark.parametrize("fault", ["prose", "misfit"])
async def test_a_judgement_that_never_fits_is_an_error_after_one_repair(fault: Fault) -> None:
    async with serve_openai(fault=fault) as server:
        with pytest.raises(ModelError):
            await ask(server, "judge")
        assert len(server.requests) == 2


async def test_an_unknown_model_is_named() -> None:
    async with serve_openai(models=("another",)) as server:
        with pytest.raises(ModelError, match="no language model gpt"):
            await ask(server, "judge")
