"""A provider that is down is not waited for by everybody, and is asked again before long."""

import asyncio
import re
import time
from collections.abc import AsyncIterator

import openai
import pytest
import pytest_asyncio

from app.adapters import circuit
from app.adapters.chat.openai import OpenAIChat
from app.adapters.circuit import THRESHOLD
from domain.errors import AskgraphError, ModelReplyCut, ModelTimeout, ModelUnavailable
from domain.ports.models import Message
from nodes.prompting.asking import within
from tests.contracts.chat_model import Judgement, Sink
from tests.wire.openai import Fault, OpenAIServer, serve_openai

MESSAGES = [Message("system", "You judge."), Message("user", "Judge.")]

pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest_asyncio.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with serve_openai(fault="server_error") as server:
        yield server


@pytest_asyncio.fixture
async def model(server: OpenAIServer) -> AsyncIterator[OpenAIChat]:
    async with openai.DefaultAsyncHttpxClient() as http:
        yield OpenAIChat("gpt-4.1-mini", api_key="key", base_url=server.base_url, timeout=5, http=http)


async def judge(model: OpenAIChat) -> None:
    await model.judge(MESSAGES, Judgement, Sink())


async def stream(model: OpenAIChat) -> None:
    async for _ in model.stream(MESSAGES, Sink(), temperature=0, max_tokens=50):
        pass


async def fail(model: OpenAIChat, times: int = THRESHOLD) -> None:
    for _ in range(times):
        with pytest.raises(AskgraphError):
            await judge(model)


def end_pause(model: OpenAIChat) -> None:
    model.circuit._opened_at = float("-inf")


async def test_after_a_few_failures_calls_fail_without_a_request(model: OpenAIChat, server: OpenAIServer) -> None:
    await fail(model)
    asked = len(server.requests)
    for call in (judge, stream):
        with pytest.raises(ModelUnavailable, match=r"gpt-4\.1-mini is not answering; it is tried again in \d+ s"):
            await call(model)
    assert len(server.requests) == asked
    for told in (model.circuit.describe(), str(model.circuit.find_problem())):
        assert re.search(
            r"not answering; .* s\. Since 20\d\d-.* UTC: The language model's server reported an error", told
        )


async def test_closes_when_the_provider_is_back(model: OpenAIChat, server: OpenAIServer) -> None:
    await fail(model)
    server.behaviour.fault = None
    end_pause(model)
    await judge(model)
    assert model.circuit.describe() == "ok"
    await stream(model)


async def test_one_call_tries_while_the_others_fail_at_once(model: OpenAIChat, server: OpenAIServer) -> None:
    await fail(model)
    server.behaviour.fault, server.behaviour.ttft = None, 0.2
    end_pause(model)
    asked = len(server.requests)
    outcomes = await asyncio.gather(*(judge(model) for _ in range(10)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None)] + [ModelUnavailable] * 9
    assert len(server.requests) == asked + 1


async def test_opens_again_where_the_trial_fails(model: OpenAIChat, server: OpenAIServer) -> None:
    await fail(model)
    end_pause(model)
    await fail(model, 1)
    asked = len(server.requests)
    await fail(model, 1)
    assert len(server.requests) == asked


async def test_a_trial_that_was_given_up_says_nothing(model: OpenAIChat, server: OpenAIServer) -> None:
    await fail(model)
    server.behaviour.fault = "stall_before"
    end_pause(model)
    trial = asyncio.create_task(judge(model))
    await asyncio.sleep(0.05)
    trial.cancel()
    await asyncio.gather(trial, return_exceptions=True)
    assert model.circuit.describe() != "ok"
    server.behaviour.fault = None
    await judge(model)
    assert model.circuit.describe() == "ok"


@pytest.mark.parametrize("fault", ["unauthorized", "policy", "context_length", "malformed", "no_quota"])
async def test_what_the_provider_answers_opens_nothing(model: OpenAIChat, server: OpenAIServer, fault: Fault) -> None:
    server.behaviour.fault = fault
    await fail(model, THRESHOLD + 1)
    assert len(server.requests) == THRESHOLD + 1


async def test_failures_with_an_answer_between_them_open_nothing(model: OpenAIChat, server: OpenAIServer) -> None:
    for _ in range(2):
        server.behaviour.fault = "server_error"
        await fail(model, THRESHOLD - 1)
        server.behaviour.fault = None
        await judge(model)


async def test_a_stream_that_began_has_been_answered(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.fault = "cut"
    for _ in range(THRESHOLD + 1):
        with pytest.raises(ModelReplyCut):
            await stream(model)
    assert model.circuit.describe() == "ok"


async def test_a_rejected_key_is_in_the_state_until_it_is_accepted(model: OpenAIChat, server: OpenAIServer) -> None:
    server.behaviour.fault = "unauthorized"
    await fail(model, 1)
    assert "OPENAI_API_KEY" in model.circuit.describe()
    server.behaviour.fault = None
    await judge(model)
    assert model.circuit.describe() == "ok"


@pytest.mark.parametrize(("seconds", "asked"), [(20, 1), (0.4, 2), (300, 2)])
async def test_a_time_that_the_provider_names_holds_for_the_next_call(
    model: OpenAIChat, server: OpenAIServer, seconds: float, asked: int
) -> None:
    server.behaviour.fault, server.behaviour.retry_after = "rate_limit", seconds
    with pytest.raises((ModelUnavailable, TimeoutError)):
        async with asyncio.timeout(0.2):
            await judge(model)
    server.behaviour.fault = None
    called = time.monotonic()
    if seconds == 20:
        with pytest.raises(ModelUnavailable, match=r"is asked again in (19|20) s"):
            await judge(model)
    else:
        await judge(model)
    assert (time.monotonic() - called > 0.1) == (seconds == 0.4)
    assert len(server.requests) == asked


async def give_up(model: OpenAIChat, *, deadline: float | None = None) -> None:
    """Ask, and stop waiting: at the deadline, in seconds, or because nobody needs the reply any more."""
    until = None if deadline is None else asyncio.get_running_loop().time() + deadline

    async def ask() -> None:
        async with within(until, ModelTimeout()):
            await judge(model)

    asking = asyncio.create_task(ask())
    await asyncio.wait([asking], timeout=0.1 if deadline is None else None)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_silence_counts_where_a_step_waited_for_as_long_as_it_may(
    model: OpenAIChat, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behaviour.fault = "stall_before"
    for _ in range(THRESHOLD):
        await give_up(model, deadline=0.05)
    assert model.circuit.describe() == "ok", "the step had no time left"
    monkeypatch.setattr(circuit, "_SILENCE", 0.01)
    for _ in range(THRESHOLD):
        await give_up(model)
    assert model.circuit.describe() == "ok", "the reader has left, or the step ran ahead in vain"
    for _ in range(THRESHOLD):
        await give_up(model, deadline=0.05)
    assert re.search(r"^not answering.* UTC: The language model gpt-4\.1-mini took too long", model.circuit.describe())
