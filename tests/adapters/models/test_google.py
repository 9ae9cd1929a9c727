"""Gemini by `google_genai:NAME`: langchain-google-genai and Google's SDK, over the real protocol."""

import asyncio
from typing import Any

import pytest
from pydantic import SecretStr

from app.settings import Settings
from app.wiring.services import open_services
from domain.errors import AskgraphError, ModelError, ModelRefused, ModelRejectedKey, ModelUnavailable
from domain.ports.models import ChatModel
from tests.asking import SHORT_HANDBOOK, ask
from tests.contracts.chat_model import Call, Sink, call
from tests.contracts.provider import PICTURE, Provider, ProviderContract, connect
from tests.wire.google import Fault, GoogleServer, serve_google

pytest.importorskip("langchain_google_genai", reason="needs the extra: pip install -e '.[google]'")

NAME = "google_genai:gemini-2.5-flash"
SHOWN = {"data": PICTURE.replace("/", "_"), "mime_type": "image/jpeg"}
FAULTS: dict[str, type[AskgraphError]] = {
    "bad_key": ModelRejectedKey,
    "unknown_model": ModelError,
    "invalid": ModelError,
    **dict.fromkeys(("blocked", "safety", "recitation"), ModelRefused),
    **dict.fromkeys(("busy_gateway", "overloaded"), ModelUnavailable),
    "malformed": ModelError,
    "empty": ModelError,
}
PROVIDER = Provider(NAME, "gemini-3-pro", "GOOGLE_API_KEY", serve_google, SHOWN, FAULTS)

pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture
def provider() -> Provider:
    return PROVIDER


class TestContract(ProviderContract):
    """`LangChainChat` over the Gemini API."""


async def test_a_judgement_is_the_arguments_of_a_function(model: ChatModel, server: GoogleServer) -> None:
    await call(model, "judge")
    [request] = server.requests
    assert [tool["name"] for tool in request["tools"][0]["functionDeclarations"]] == ["Judgement"]
    assert request["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["Judgement"]}
    assert request["generationConfig"]["temperature"] == 0


async def test_limits_and_temperature_are_sent(model: ChatModel, server: GoogleServer) -> None:
    await call(model, "stream")
    [request] = server.requests
    config = request["generationConfig"]
    assert (config["maxOutputTokens"], config["temperature"]) == (100, 0.2)
    assert request["systemInstruction"]["parts"] == [{"text": "You answer."}]
    assert [content["role"] for content in request["contents"]] == ["user"]


async def test_the_server_is_not_told_to_end_a_stream_that_flows(model: ChatModel, server: GoogleServer) -> None:
    await call(model, "stream")
    assert "x-server-timeout" not in server.headers[0]
    assert server.headers[0]["x-goog-api-key"] == "key"


@pytest.mark.parametrize(
    ("name", "thinking", "room", "own_temperature"),
    [
        ("gemini-2.0-flash", None, 0, False),
        ("gemini-2.5-flash-lite", {"thinking_budget": 0}, 0, False),
        ("gemini-2.5-pro", {"thinking_budget": 128}, 2000, False),
        ("gemini-3.5-flash", {"thinking_level": "MINIMAL"}, 2000, True),
        ("gemini-3.5-flash-lite", {"thinking_level": "MINIMAL"}, 2000, True),
        ("gemini-3.1-pro-preview", {"thinking_level": "LOW"}, 2000, True),
        ("gemini-flash-latest", None, 2000, True),
    ],
)
async def test_thinks_as_little_as_the_model_can(
    server: GoogleServer, name: str, thinking: dict[str, Any] | None, room: int, own_temperature: bool
) -> None:
    async with connect(server, f"google_genai:{name}") as (_, model):
        await call(model, "stream")
    config = server.requests[0]["generationConfig"]
    assert config.get("thinkingConfig") == thinking
    assert config["maxOutputTokens"] == 100 + room
    assert ("temperature" not in config) == own_temperature


@pytest.mark.parametrize("how", ["judge", "stream"])
async def test_thoughts_are_paid_for_and_what_was_cached_costs_less(how: Call) -> None:
    sink = Sink()
    async with PROVIDER.open(thoughts=70, cached=5) as (_, _, model):
        await call(model, how, sink)
    [usage] = sink.usage
    assert usage.model == NAME
    assert usage.output_tokens > 70
    fresh = usage.input_tokens - 5
    assert usage.cost == pytest.approx(fresh * 0.3e-6 + 5 * 0.03e-6 + usage.output_tokens * 2.5e-6)


@pytest.mark.parametrize(
    ("how", "fault"), [("stream", "rate_limit"), ("judge", "busy_gateway"), ("stream", "overloaded")]
)
async def test_is_not_asked_before_the_provider_says(how: Call, fault: Fault) -> None:
    async with PROVIDER.open(faults=[fault], retry_after=4) as (server, _, model):
        # The wait itself would make the test slow: our own pauses end long before this.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await call(model, how)
        assert len(server.requests) == 1


async def test_does_not_wait_for_longer_than_a_reader_would_whoever_says_so() -> None:
    async with PROVIDER.open(60, fault="busy_gateway", retry_after=60) as (server, _, model):
        async with asyncio.timeout(10):
            with pytest.raises(ModelUnavailable):
                await call(model, "stream")
        assert len(server.requests) == 1


async def test_writes_and_judges_a_whole_answer(settings: Settings) -> None:
    async with serve_google(thoughts=20) as server:
        models = {"model_small": f"{NAME}-lite", "model_large": NAME, "model_judge": "google_genai:gemini-3.5-flash"}
        access = {"google_api_key": SecretStr("key"), "google_base_url": server.base_url}
        async with open_services(settings.model_copy(update={**models, **access})) as services:
            await services.library.ingestion.add("default", "handbook.md", SHORT_HANDBOOK)
            done = await ask(services, mode="thorough")
    assert "36 months" in done["answer"]
    assert done["citations"]
    assert done["warnings"] == []
    assert {(used["node"], used["model"]) for used in done["usage"]} >= {
        ("route", f"{NAME}-lite"),
        ("generate", NAME),
        ("verify", "google_genai:gemini-3.5-flash"),
    }
    assert done["cost"]
