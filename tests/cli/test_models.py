"""`askgraph models`: what is found on this machine, and what is kept of a choice."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from typer.testing import CliRunner

from app.adapters.chat import discovery
from app.chosen_models import ChosenModels
from app.cli import cli
from app.settings import read_settings
from app.wiring import model_chooser
from app.wiring.model_chooser import FAST, ModelChooser
from domain.errors import ConfigurationError
from tests.wire.openai import serve_openai
from tests.wire.serving import serve_app


async def run(home: Path, *arguments: str, code: int = 0, **variables: str) -> Any:
    """Run the command in a thread: the server of models is in this one."""
    environment = {"ASKGRAPH_HOME": str(home), **variables}
    command = CliRunner(env=environment).invoke
    done = await asyncio.to_thread(command, cli, ["models", *arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def listen(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(discovery, "PORTS", {"ollama": urlsplit(address).port, "vllm": 9})


async def test_a_server_of_this_machine_is_found_tried_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve_openai(models=("qwen3:8b",)) as server:
        listen(monkeypatch, server.base_url)
        found = await run(tmp_path)
        assert found == {
            "used": {},
            "address": None,
            "chosen": None,
            "found": [{"kind": "ollama", "address": server.base_url, "models": ["qwen3:8b"]}],
        }
        wanted = '{"x-gateway": "pc-1"}'
        tried = await run(
            tmp_path, "use", "ollama:qwen3:8b", OPENAI_API_KEY="sk-of-another", ASKGRAPH_MODEL_HEADERS=wanted
        )
        assert {(sent["authorization"], sent["x-gateway"]) for sent in server.headers} == {("Bearer none", "pc-1")}
        assert [tried[does]["problem"] for does in ("writes", "judges", "calls")] == [None, None, None]
        assert tried["cites"]
    assert (tmp_path / "models.json").stat().st_mode & 0o077 == 0
    monkeypatch.setenv("ASKGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    settings = read_settings()
    assert (settings.model_large, settings.model_small, settings.model_judge) == ("qwen3:8b",) * 3
    assert (settings.providers["openai"].api_key, settings.openai_base_url) == ("", server.base_url)
    monkeypatch.setenv("ASKGRAPH_MODEL", "gpt-5")
    settings = read_settings()
    assert (settings.model_large, settings.providers["openai"].base_url) == ("gpt-5", None)


async def test_a_model_that_answers_is_kept_whatever_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_openai(models=("another",)) as server:
        refused = await run(tmp_path, "use", "some", "--address", server.base_url, code=1)
        assert "it lists another" in refused
        monkeypatch.setattr(server, "_check_body", lambda body: None)
        assert (await run(tmp_path, "use", "some", "--address", server.base_url))["writes"]["problem"] is None


@pytest.mark.parametrize("fault", ["empty", "unauthorized", "server_error"])
async def test_a_model_that_does_not_write_is_not_kept(tmp_path: Path, fault: str) -> None:
    async with serve_openai(fault=fault) as server:
        said = await run(tmp_path, "use", "some", "--address", server.base_url, code=1)
    assert not (tmp_path / "models.json").exists()
    assert said if fault == "unauthorized" else said["writes"]["problem"]


async def test_no_model_is_a_choice_and_wrong_ones_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(tmp_path, "use", "none")
    monkeypatch.setenv("ASKGRAPH_HOME", str(tmp_path))
    assert "has its own" in await run(tmp_path, "use", "anthropic:x", "--address", "http://127.0.0.1:9", code=2)
    assert "needs a key" in await run(tmp_path, "use", "gpt-5", code=1)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    assert read_settings().model_large == "none"
    (tmp_path / "models.json").write_text('{"model_large": 5}')
    with pytest.raises(ConfigurationError, match=r"models\.json cannot be read.*Delete it"):
        read_settings()


async def test_askgraph_is_no_server_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {"data": [{"id": "standard", "object": "model", "owned_by": "askgraph"}]}
    app = Starlette(routes=[Route("/v1/models", lambda request: JSONResponse(ours))])
    async with serve_app(app) as address:
        listen(monkeypatch, address)
        assert await discovery.find_servers() == []


@pytest.mark.parametrize(
    ("is_configured", "is_owner", "gets"), [(True, False, True), (False, False, False), (False, True, True)]
)
async def test_the_headers_of_a_gateway_go_to_no_other_server_unless_its_owner_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_configured: bool, is_owner: bool, gets: bool
) -> None:
    monkeypatch.setenv("ASKGRAPH_HOME", str(tmp_path))
    monkeypatch.setenv("ASKGRAPH_MODEL_HEADERS", '{"x-gateway": "pc-1"}')
    async with serve_openai() as server:
        settings = read_settings(openai_base_url=server.base_url if is_configured else "http://gateway.example/v1")
        await ModelChooser(settings).try_model("x", server.base_url, keep=True, is_owner=is_owner)
    assert {"x-gateway" in sent for sent in server.headers} == {gets}
    assert bool(read_settings().openai.headers) == gets


@pytest.mark.parametrize(
    "given", ["not JSON sk-secret", '["sk-secret"]', '{"x": "sk-secret\\n"}', '{"x y": "sk-secret"}']
)
def test_wrong_headers_are_told_in_one_line_without_their_values(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASKGRAPH_MODEL_HEADERS", given)
    with pytest.raises(ConfigurationError, match="model_headers: ") as caught:
        read_settings()
    assert "sk-secret" not in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("seconds", "judging"), [(FAST, "x"), (0.0, "none")])
async def test_a_slow_judge_does_not_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, judging: str
) -> None:
    monkeypatch.setattr(model_chooser, "FAST", seconds)
    async with serve_openai() as server:
        await ModelChooser(read_settings(home=tmp_path)).try_model("x", server.base_url, keep=True)
    chosen = ChosenModels.read(tmp_path)
    assert chosen is not None
    assert (chosen.model_large, chosen.model_small, chosen.model_judge) == ("x", judging, judging)
