"""What a deployment's models come to once everything is open: whole questions over the real protocols."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from app.adapters.chat.connections import Connections
from app.adapters.chat.providers import PACKAGES, Access
from app.adapters.circuit import THRESHOLD
from app.adapters.prices import read_prices
from app.modes import read_modes
from app.settings import Settings, read_settings
from app.wiring.fingerprint import fingerprint_installation, name_models
from app.wiring.services import Services, open_services
from domain.errors import ConfigurationError
from nodes.context import Models, Tier
from tests.asking import QUESTION, SHORT_HANDBOOK, ask, read_health, with_models
from tests.wire.anthropic import serve_anthropic
from tests.wire.openai import Fault, OpenAIServer, serve_openai

WHY = "Why is the warranty of the Falke 36 months?"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.adapters.chat.langchain.PAUSES", (0.01, 0.02))


@asynccontextmanager
async def open_with(settings: Settings, server: OpenAIServer, **changes: Any) -> AsyncIterator[Services]:
    async with open_services(with_models(settings, server, **{"model_timeout": 5.0} | changes)) as services:
        await services.library.ingestion.add("default", "handbook.md", SHORT_HANDBOOK)
        yield services


def list_asked(server: OpenAIServer) -> list[str]:
    return [request["model"] for request in server.requests]


def end_pauses(services: Services) -> None:
    """As if time had passed: open circuits let somebody try."""
    for model in services.models.chat.named.values():
        model.circuit._opened_at = float("-inf")  # type: ignore[attr-defined]


async def test_a_provider_that_is_down_is_asked_no_more_as_health_says_and_answers_when_it_is_back(
    settings: Settings,
) -> None:
    failed = "The language model's server reported an error: The server had an error while processing your request."
    async with serve_openai(fault="server_error") as server, open_with(settings, server) as services:
        assert (await read_health(services))["models"] == "ok"
        for number in range(THRESHOLD):
            done = await ask(services, f"{QUESTION} ({number})")
            assert "36 months" in done["answer"]
            if not number:
                assert failed in str((await read_health(services))["models"])
        asked = len(server.requests)
        done = await ask(services, f"{QUESTION} (again)")
        assert "36 months" in done["answer"]
        assert any("is not answering" in warning for warning in done["warnings"])
        body = await read_health(services)
        assert len(server.requests) == asked
        assert body["models"].startswith("The language model gpt-4.1-mini is not answering; it is tried again in")
        assert failed in body["models"]
        assert body["status"] == "degraded"
        assert body["answering"]["gpt-4.1-mini"].startswith("not answering; tried again in")
        assert body["answering"]["gpt-4.1"] == "ok", "nobody asked it"

        server.behaviour.fault = None
        end_pauses(services)
        done = await ask(services, f"{QUESTION} (at last)")
        assert done["warnings"] == []
        body = await read_health(services)
        assert (body["models"], body["status"], set(body["answering"].values())) == ("ok", "ok", {"ok"})


async def test_a_price_file_that_cannot_be_read_is_said_where_no_model_is_asked(
    settings: Settings, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("[chat]\nours = 1\n")
    with pytest.raises(ConfigurationError, match=r"prices\.toml cannot be used: chat\.ours"):
        async with open_services(settings.model_copy(update={"prices": prices})):
            pass


async def test_claude_writes_while_another_provider_judges_and_takes_over(settings: Settings) -> None:
    async with serve_openai() as server, serve_anthropic() as claude:
        changes = {
            "model_large": "anthropic:claude-haiku-4-5",
            "model_fallbacks": ("gpt-4.1-mini",),
            "anthropic_api_key": SecretStr("sk-ant"),
            "anthropic_base_url": claude.base_url,
        }
        async with open_with(settings, server, **changes) as services:
            assert await services.checks["models"]() is None
            assert services.parts["answerer"].startswith("anthropic:claude-haiku-4-5, then gpt-4.1-mini, then local")
            done = await ask(services, WHY)
            claude.behaviour.fault = "overloaded"
            other = await ask(services, f"{QUESTION} (again)")
    assert "36 months" in done["answer"]
    assert done["citations"]
    assert {(used["node"], used["model"]) for used in done["usage"]} == {
        ("route", "gpt-4.1-nano"),
        ("generate", "anthropic:claude-haiku-4-5"),
    }
    assert done["cost"]
    assert "36 months" in other["answer"]
    assert [used["model"] for used in other["usage"] if used["node"] == "generate"] == ["gpt-4.1-mini"]


async def test_a_mode_asks_the_models_that_it_names_and_waits_no_longer_than_it_says(
    settings: Settings, tmp_path: Path
) -> None:
    profiles = tmp_path / "profiles.toml"
    profiles.write_text(
        """[own]
        extends = "fast"
        models.small = "gpt-5-nano"
        models.large = "gpt-5.1"
        [hasty]
        extends = "fast"
        models.timeout = 0.3
        """
    )
    async with (
        serve_openai() as server,
        open_with(settings, server, profiles=profiles, model_timeout=600.0) as services,
    ):
        await ask(services, WHY, mode="own")
        assert list_asked(server) == ["gpt-5-nano", "gpt-5.1"]
        server.behaviour.fault = "stall_before"
        done = await ask(services, mode="hasty")
    assert "36 months" in done["answer"]
    assert len(done["degraded"]) == 1


def test_a_mode_cannot_wait_longer_than_its_steps(tmp_path: Path) -> None:
    profiles = tmp_path / "profiles.toml"
    profiles.write_text("[own]\nmodels.timeout = 90\n")
    with pytest.raises(ConfigurationError, match="ASKGRAPH_MODEL_TIMEOUT"):
        read_modes(read_settings(profiles=profiles))


def test_fallbacks_are_names_with_commas_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKGRAPH_MODEL_FALLBACKS", "gpt-4.1-mini, anthropic:claude-haiku-4-5,")
    assert read_settings().model_fallbacks == ("gpt-4.1-mini", "anthropic:claude-haiku-4-5")


async def test_a_bad_key_is_said_once_and_in_health_and_the_question_is_answered(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve_openai(api_key="another") as server, open_with(settings, server) as services:
        done = await ask(services)
        health = await read_health(services)
    assert "36 months" in done["answer"]
    assert health["status"] == "degraded"
    assert "OPENAI_API_KEY" in health["models"]
    assert "OPENAI_API_KEY" in health["answering"]["gpt-4.1-mini"]
    assert len([record for record in caplog.records if "OPENAI_API_KEY" in record.message]) == 1


async def test_a_model_without_a_price_is_named_and_its_tokens_are_counted(settings: Settings, tmp_path: Path) -> None:
    own = tmp_path / "prices.toml"
    own.write_text('[chat]\n"llama-at-home" = [1000, 1000, 1000]\n')
    models = {"model_small": "nobody-knows", "model_large": "llama-at-home"}
    async with serve_openai() as server, open_with(settings, server, prices=own, **models) as services:
        assert services.parts["prices"].startswith("not known of nobody-knows:")
        done = await ask(services, WHY, mode="fast")
    costs = {used["node"]: used["cost"] for used in done["usage"]}
    assert costs["route"] is None
    assert (costs["generate"] or 0) > 0.01
    assert all(used["input_tokens"] for used in done["usage"])
    assert done["warnings"] == []


def test_every_provider_has_settings_and_its_address_marks_the_answers(settings: Settings) -> None:
    assert set(settings.providers) == {"openai", *PACKAGES}
    elsewhere = settings.model_copy(update={"anthropic_base_url": "http://a.test"})
    assert name_models(Models(), elsewhere) != name_models(Models(), settings)


async def test_answers_of_other_models_are_not_this_machines(settings: Settings) -> None:
    def name(tiers: dict[Tier, str], *fallbacks: str, url: str = "http://a.test/v1") -> tuple[str, ...]:
        connections = Connections({"openai": Access("key", url)}, timeout=5, prices=read_prices())
        models = connections.connect(tiers, fallbacks, {})
        return tuple(name_models(models, settings.model_copy(update={"openai_base_url": url})))

    named = [
        name({"small": "a", "large": "b"}),
        name({"small": "b", "large": "a"}),
        name({"small": "a", "judge": "b"}),
        name({"small": "a", "large": "b"}, "c", "d"),
        name({"small": "a", "large": "b"}, "d", "c"),
        name({"small": "a", "large": "b"}, url="http://b.test/v1"),
    ]
    assert len({fingerprint_installation(*names) for names in named}) == len(named)
    assert fingerprint_installation(*named[0]) == fingerprint_installation(*named[0])


async def test_no_fault_ends_in_a_cached_answer(settings: Settings) -> None:
    faults: list[Fault] = ["rate_limit", "server_error", "empty", "content_filter", "malformed", "unauthorized"]
    async with serve_openai() as server, open_with(settings, server) as services:
        for number, fault in enumerate(faults):
            question = f"{QUESTION} ({number})"
            server.behaviour.fault = fault
            done = await ask(services, question, mode="thorough")
            assert "36 months" in done["answer"], fault
            assert done["warnings"], fault
            server.behaviour.fault = None
            end_pauses(services)
            again = await ask(services, question, mode="thorough")
            assert (again["cached"], again["warnings"]) == (False, []), fault
