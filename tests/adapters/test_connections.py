"""Which models a deployment connects, and what is said of those that it cannot."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from app.adapters.chat.connections import Connections
from app.adapters.chat.providers import Access
from app.adapters.prices import read_prices
from domain.errors import ConfigurationError, ModelRejectedKey, StateError
from domain.ports.models import Message
from domain.profile import ModelKnobs, Profile
from nodes.context import Models, Tier
from tests.contracts.chat_model import Judgement, Sink
from tests.wire.openai import OpenAIServer, serve_openai


@pytest_asyncio.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIServer]:
    # The first client of a process takes seconds to build on a busy machine.
    monkeypatch.setattr("app.adapters.chat.openai.CHECK_SECONDS", 30.0)
    async with serve_openai() as server:
        yield server


async def connected(server: OpenAIServer) -> str | None:
    connections = connect(server)
    try:
        await connections.check()
        return await connections.find_problem()
    finally:
        await connections.close()


def connect(server: OpenAIServer, key: str = "key") -> Connections:
    connections = Connections({"openai": Access(key, server.base_url)}, timeout=5, prices=read_prices())
    connections.connect({"small": "a", "large": "b", "judge": "b"}, [], {})
    return connections


async def test_the_check_names_what_is_wrong_once(server: OpenAIServer) -> None:
    """What it finds of each provider: `tests/contracts/provider.py`."""
    for listed in (("a", "b:latest"), ("models/a", "docker.io/some/b:latest"), ("a-2026-10-01", "b-1001")):
        server.behaviour.models = listed
        assert await connected(server) is None
    server.behaviour.models = ("a", "c", "xb", "b2", "b-large")
    problem = await connected(server) or ""
    assert "'b'" in problem
    assert not problem.startswith("b: "), "it is named already"
    server.behaviour.api_key = "another"
    assert (await connected(server) or "").startswith("a, b: "), "these two have it"


async def test_a_key_in_a_file_is_read_anew(server: OpenAIServer, tmp_path: Path) -> None:
    key = tmp_path / "key"
    access = Access("none", server.base_url, key_file=key)
    connections = Connections({"openai": access}, timeout=5, prices=read_prices())
    try:
        model = connections.connect({"large": "b"}, [], {}).large
        assert model
        for now in ("first", "second"):
            server.behaviour.api_key = now
            with pytest.raises(ModelRejectedKey):
                await model.judge([Message("user", "Judge.")], Judgement, Sink())
            key.write_text(f"{now}\n")
            await model.judge([Message("user", "Judge.")], Judgement, Sink())
            await connections.check()
            assert await connections.find_problem() is None
        key.unlink()
        await connections.check()
        assert "cannot be read" in (await connections.find_problem() or "")
    finally:
        await connections.close()


async def test_what_was_found_of_a_model_that_nobody_asks_is_looked_at_again_before_long(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = connect(server)
    try:
        server.behaviour.api_key = "another"
        await connections.check()
        server.behaviour.api_key = None
        assert await connections.find_problem()
        monkeypatch.setattr("app.adapters.chat.connections.RECHECK", 0.0)
        assert await connections.find_problem() is None
        assert set(connections.describe().values()) == {"ok"}
    finally:
        await connections.close()


async def test_the_check_needs_no_list_of_models(server: OpenAIServer) -> None:
    server.behaviour.lists_models = False
    assert await connected(server) is None


async def test_the_check_does_not_wait_for_long(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.chat.openai.CHECK_SECONDS", 0.2)
    server.behaviour.fault = "stall_before"
    assert "does not answer" in (await connected(server) or "")


async def test_a_local_server_needs_no_key(server: OpenAIServer) -> None:
    connections = Connections({"openai": Access("", server.base_url)}, timeout=5, prices=read_prices())
    models = connections.connect({"large": "b"}, [], {})
    assert models.large is not None
    stream = models.large.stream([Message("user", "Hello!")], Sink(), temperature=0, max_tokens=50)
    assert [piece async for piece in stream]
    await connections.close()


@pytest_asyncio.fixture
async def connections() -> AsyncIterator[Connections]:
    access = {"openai": Access("key"), "anthropic": Access("key")}
    connections = Connections(access, timeout=5, prices=read_prices())
    yield connections
    await connections.close()


def name_tiers(models: Models) -> list[str | None]:
    return [None if tier is None else tier.name for tier in (models.small, models.large, models.judge)]


def test_a_model_is_constructed_once_whoever_names_it(connections: Connections) -> None:
    modes = {"own": ModelKnobs(large="gpt-5.1", judge="gpt-5-mini")}
    models = connections.connect(
        {"small": "gpt-5-mini", "large": "openai:gpt-5-mini"}, ["gpt-4.1", "gpt-5-mini"], modes
    )
    assert list(connections.describe()) == ["gpt-5-mini", "openai:gpt-5-mini", "gpt-4.1", "gpt-5.1"]
    assert name_tiers(models) == ["gpt-5-mini", "gpt-5-mini", None]
    assert [model.name for model in models.fallbacks] == ["gpt-4.1", "gpt-5-mini"]
    assert models.fallbacks[1] is models.small


def test_a_mode_has_the_models_that_it_names(connections: Connections) -> None:
    knobs = ModelKnobs(large="gpt-5.1", judge="anthropic:claude-haiku-4-5")
    models = connections.connect({"small": "gpt-5-nano", "large": "gpt-5-mini", "judge": "gpt-4.1"}, [], {"own": knobs})
    assert name_tiers(models.choose(ModelKnobs())) == ["gpt-5-nano", "gpt-5-mini", "gpt-4.1"]
    assert name_tiers(models.choose(knobs)) == ["gpt-5-nano", "gpt-5.1", "anthropic:claude-haiku-4-5"]
    with pytest.raises(StateError, match=r"profile\.models\.large is 'gpt-9', which is not connected"):
        models.choose(ModelKnobs(large="gpt-9"))


def test_only_a_temperature_that_somebody_chose_is_missed(connections: Connections) -> None:
    connections.connect({"large": "gpt-5-mini"}, [], {})
    warmer = Profile.model_validate({"name": "own", "generate": {"temperature": 0.7}})
    (misfit,) = connections.find_misfits({"standard": Profile(name="standard"), "own": warmer}, {"large": "gpt-5-mini"})
    assert "generate.temperature" in misfit
    assert "modes own," in misfit


def test_a_colon_in_a_local_name_names_no_provider(connections: Connections) -> None:
    models = connections.connect({"large": "qwen3:8b"}, [], {})
    assert name_tiers(models) == [None, "qwen3:8b", None]


async def test_without_a_key_nothing_is_connected() -> None:
    connections = Connections({"openai": Access()}, timeout=5, prices=read_prices())
    models = connections.connect({"small": "gpt-5-nano", "large": "gpt-5-mini"}, [], {"own": ModelKnobs(large="gpt-5")})
    assert name_tiers(models.choose(ModelKnobs(large="gpt-5"))) == [None, None, None]
    assert connections.describe() == {}
    await connections.close()


async def test_only_the_tiers_in_use_need_a_key() -> None:
    connections = Connections({"openai": Access(), "anthropic": Access("key")}, timeout=5, prices=read_prices())
    models = connections.connect({"small": "gpt-5-nano", "large": "anthropic:claude-haiku-4-5"}, [], {})
    assert name_tiers(models) == [None, "anthropic:claude-haiku-4-5", None]
    await connections.close()


@pytest.mark.parametrize(
    ("tiers", "fallbacks", "modes", "said"),
    [
        ({"large": "anthropic:claude-haiku-4-5"}, [], {}, "ASKGRAPH_MODEL_LARGE is .* needs ANTHROPIC_API_KEY"),
        ({}, ["gpt-5", "anthropic:claude-haiku-4-5"], {}, "ASKGRAPH_MODEL_FALLBACKS is .* needs ANTHROPIC_API_KEY"),
        (
            {"large": "gpt-5"},
            [],
            {"own": ModelKnobs(judge="anthropic:claude-haiku-4-5")},
            "models.judge of the mode 'own' is .* needs ANTHROPIC_API_KEY",
        ),
        ({"large": "google_genai:gemini-3"}, [], {}, "OPENAI_BASE_URL=.* name the model 'gemini-3'"),
    ],
)
async def test_a_provider_without_a_key_is_named(
    tiers: dict[Tier, str], fallbacks: list[str], modes: dict[str, ModelKnobs], said: str
) -> None:
    connections = Connections({"openai": Access("key")}, timeout=5, prices=read_prices())
    with pytest.raises(ConfigurationError, match=said):
        connections.connect(tiers, fallbacks, modes)
    await connections.close()


def test_a_package_that_is_not_installed_is_named_with_its_command(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "app.adapters.chat.anthropic", raising=False)
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'askgraph\[anthropic\]'"):
        connections.connect({"large": "anthropic:claude-haiku-4-5"}, [], {})


def test_models_without_a_price_are_known(connections: Connections) -> None:
    connections.connect({"large": "gpt-5", "small": "llama-at-home"}, ["anthropic:claude-haiku-4-5-20251001"], {})
    assert connections.unpriced() == ["llama-at-home"]
