"""Claude by `anthropic:NAME`: langchain-anthropic and Anthropic's SDK, over the real protocol."""

import pytest

from domain.errors import AskgraphError, ModelError, ModelRefused, ModelUnavailable
from domain.ports.models import ChatModel
from tests.contracts.chat_model import Sink, call
from tests.contracts.provider import PICTURE, Provider, ProviderContract
from tests.wire.anthropic import AnthropicServer, serve_anthropic

NAME = "anthropic:claude-haiku-4-5"
SHOWN = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PICTURE}}
FAULTS: dict[str, type[AskgraphError]] = {
    "invalid": ModelError,
    "refusal": ModelRefused,
    "overloaded": ModelUnavailable,
    "empty": ModelError,
}
PROVIDER = Provider(NAME, "claude-opus-5", "ANTHROPIC_API_KEY", serve_anthropic, SHOWN, FAULTS)

pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture
def provider() -> Provider:
    return PROVIDER


class TestContract(ProviderContract):
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
