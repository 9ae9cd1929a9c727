"""Against a loopback server that speaks Cohere's protocol."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.adapters.circuit import THRESHOLD
from app.adapters.embeddings.openai import OpenAIEmbedder
from app.adapters.prices import read_prices
from app.adapters.rerankers.cohere import CohereReranker
from app.settings import Settings
from app.wiring.services import open_services
from domain.errors import (
    AskgraphError,
    ConfigurationError,
    ModelError,
    ModelRejectedKey,
    ModelTimeout,
    ModelUnavailable,
)
from domain.scope import DEFAULT_SCOPE
from nodes.context import Ledger
from tests.asking import ask, ask_for_state
from tests.conftest import HANDBOOK, MANUAL
from tests.contracts.reranker import QUESTION, SCOPE, TEXTS, RerankerContract, make_passage
from tests.wire.cohere import CohereServer, Fault, serve_cohere
from tests.wire.serving import serve_app

PASSAGES = [make_passage(text) for text in TEXTS]


@asynccontextmanager
async def connect(server: CohereServer, model: str = "rerank-v3.5", **options: Any) -> AsyncIterator[CohereReranker]:
    given: dict[str, Any] = {"api_key": "key", "base_url": server.base_url, "prices": read_prices()}
    reranker = CohereReranker(model, **(given | options))
    try:
        yield reranker
    finally:
        await reranker.aclose()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[CohereServer]:
    async with serve_cohere() as running:
        yield running


class TestCohereReranker(RerankerContract):
    @pytest_asyncio.fixture
    async def reranker(self, server: CohereServer) -> AsyncIterator[CohereReranker]:
        async with connect(server) as connected:
            yield connected


async def test_no_redirect_of_questions_or_texts_to_another_server_is_followed() -> None:
    async def send_away(request: Request) -> Response:
        return Response(status_code=307, headers={"location": "http://user:pass@127.0.0.1:9/v1?key=1"})

    away = Starlette(routes=[Route("/{path:path}", send_away, methods=["GET", "POST"])])
    async with serve_app(away) as address:
        embedder = OpenAIEmbedder("openai:m@3", api_key="", base_url=f"{address}/v1", prices=read_prices())
        reranker = CohereReranker("m", api_key="", base_url=address, prices=read_prices())
        told = [str(await embedder.check()), str(await reranker.check())]
        with pytest.raises(ModelError) as caught:
            await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
        await embedder.aclose()
        await reranker.aclose()
    for each in [*told, caught.value.message]:
        assert "to another server, http://127.0.0.1:9/, which gets nothing. Check " in each


async def test_a_search_is_recorded_with_its_price(server: CohereServer) -> None:
    ledger = Ledger()
    async with connect(server) as reranker:
        await reranker.score(SCOPE, QUESTION, PASSAGES, ledger)
        await reranker.score(SCOPE, QUESTION, [make_passage("word " * 10_000)] * 40, ledger)
        server.behaviour.bills = False
        await reranker.score(SCOPE, QUESTION, PASSAGES, ledger)
    # Passages are cut, so that forty of them are five documents each and no more.
    assert [(used.model, used.cost) for used in ledger.usage] == [
        ("rerank-v3.5", pytest.approx(0.002)),
        ("rerank-v3.5", pytest.approx(0.004)),
        ("rerank-v3.5", None),
    ]


async def test_the_price_of_a_model_that_is_not_listed_is_not_known() -> None:
    ledger = Ledger()
    async with serve_cohere(models=("ours",)) as server, connect(server, "ours") as reranker:
        await reranker.score(SCOPE, QUESTION, PASSAGES, ledger)
    assert [(used.model, used.cost) for used in ledger.usage] == [("ours", None)]


async def test_what_passes_is_tried_again(server: CohereServer) -> None:
    server.behaviour.faults = ["rate_limit", "overloaded"]
    async with connect(server) as reranker:
        scores = await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
    assert scores[1] == max(scores)
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "expected", "requests"),
    [
        ("rate_limit", ModelUnavailable, 3),
        ("server_error", ModelUnavailable, 3),
        ("overloaded", ModelUnavailable, 3),
        ("cut", ModelUnavailable, 3),
        ("stall", ModelTimeout, 1),
        ("no_billing", ModelError, 1),
        ("malformed", ModelError, 1),
        ("misfit", ModelError, 1),
        ("nan", ModelError, 1),
    ],
)
async def test_faults_become_ours(
    server: CohereServer, fault: Fault, expected: type[AskgraphError], requests: int
) -> None:
    server.behaviour.fault = fault
    ledger = Ledger()
    async with connect(server, seconds=0.2 if fault == "stall" else 5) as reranker:
        with pytest.raises(expected) as raised:
            await reranker.score(SCOPE, QUESTION, PASSAGES, ledger)
    assert [used.cost for used in ledger.usage if used.estimated] == ([0.002] if fault == "stall" else [])
    assert type(raised.value) is expected
    assert len(server.requests) == requests
    assert "rerank-v3.5" in raised.value.message


async def test_a_server_that_is_down_is_left_alone(server: CohereServer) -> None:
    server.behaviour.fault = "server_error"
    async with connect(server) as reranker:
        for _ in range(THRESHOLD):
            with pytest.raises(ModelUnavailable):
                await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
        asked = len(server.requests)
        with pytest.raises(ModelUnavailable, match="tried again in"):
            await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
    assert len(server.requests) == asked


async def test_a_wrong_key_and_a_wrong_model_are_said(server: CohereServer) -> None:
    server.behaviour.api_key = "right"
    async with connect(server) as reranker:
        with pytest.raises(ModelRejectedKey, match="COHERE_API_KEY"):
            await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
    async with connect(server, "rerank-9", api_key="right") as reranker:
        with pytest.raises(ModelError, match=r"reranker rerank-9.*ASKGRAPH_RERANK_MODEL"):
            await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())


async def test_a_check_says_what_is_wrong_and_costs_nothing(server: CohereServer) -> None:
    server.behaviour.api_key = "right"
    found = []
    for options in ({"api_key": "right"}, {"api_key": "wrong"}, {"base_url": "http://127.0.0.1:9"}):
        async with connect(server, **options) as reranker:
            found.append(await reranker.check())
    async with connect(server, "ours", api_key="right") as reranker:
        # Servers of one's own know no list of Cohere's.
        found.append(await reranker.check())
    assert found[0] is None
    assert "COHERE_API_KEY" in str(found[1])
    assert "COHERE_BASE_URL" in str(found[2])
    assert found[3] is None
    assert server.requests == []


async def test_a_server_of_ones_own_needs_no_key(server: CohereServer) -> None:
    async with connect(server, api_key="") as reranker:
        await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
    assert server.headers[0]["authorization"] == "Bearer none"


async def test_results_that_are_missing_or_strange_are_borne(server: CohereServer) -> None:
    server.behaviour.faults = ["some", "strange"]
    async with connect(server) as reranker:
        some = await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
        strange = await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger())
    assert [score > 0 for score in some] == [False, True, False]
    assert strange == pytest.approx([0.999, 0.047, 0], abs=0.001)


@pytest.mark.parametrize(
    ("behaviour", "below"),
    [
        ({"path": "/v1/rerank", "is_logit": True}, "/v1"),
        ({"path": "/v1/rerank", "form": "voyage"}, "/v1/rerank"),
        ({"path": "/rerank", "form": "tei", "most": 2}, ""),
        ({"path": "/rerank", "most": 1}, "/"),
    ],
)
async def test_servers_that_have_something_like_it_are_understood(behaviour: dict[str, Any], below: str) -> None:
    async with serve_cohere(**behaviour) as server, connect(server, base_url=server.base_url + below) as reranker:
        scores = [await reranker.score(SCOPE, QUESTION, PASSAGES, Ledger()) for _ in range(2)]
    assert scores[0] == scores[1]
    assert all(0 <= score <= 1 for score in scores[0])
    assert len(set(scores[0])) > 1
    assert scores[0][1] == max(scores[0])


async def test_another_model_or_server_has_another_name(server: CohereServer) -> None:
    names = set()
    for options in ({}, {"model": "rerank-v4.0-fast"}, {"base_url": None}):
        async with connect(server, **options) as reranker:
            names.add(reranker.name)
    assert len(names) == 3


@pytest.fixture
def exact(settings: Settings, tmp_path: Path) -> Settings:
    """A deployment with a mode that reranks with Cohere."""
    profiles = tmp_path / "profiles.toml"
    profiles.write_text('[exact]\nrerank.method = "cohere"\n')
    return settings.model_copy(update={"profiles": profiles})


async def test_a_mode_without_its_key_is_refused_at_start(exact: Settings) -> None:
    with pytest.raises(ConfigurationError, match=r"'exact' reranks with Cohere.*COHERE_API_KEY"):
        async with open_services(exact):
            pass


async def test_a_run_ranks_by_it_and_goes_on_without_it(exact: Settings, server: CohereServer) -> None:
    server.behaviour.api_key = "key"
    connected = exact.model_copy(
        update={"cohere_api_key": SecretStr("key"), "cohere_base_url": server.base_url, "answer_ttl_hours": 1}
    )
    async with open_services(connected) as services:
        for source, text in {"handbook.md": HANDBOOK, "manual.md": MANUAL}.items():
            await services.library.ingestion.add("default", source, text)

        done, state = await ask_for_state(services, "How long is the warranty of the Falke?", mode="exact")
        sources = state["sources"]
        assert "36 months" in done["answer"]
        # On a slow machine the database may warn about something else.
        assert not [warning for warning in done["warnings"] if "rank" in warning]
        # Three content words, of which the best passage has two and the last source at most one.
        assert sources[0]["score"] == 0.6567
        assert sources[-1]["score"] < 0.5
        assert [(used["node"], used["model"], used["cost"]) for used in done["usage"]] == [
            ("rerank", "rerank-v3.5", 0.002)
        ]
        assert done["cost"] == pytest.approx(0.002)

        # Trying the run otherwise asks it no other question, unless that may cost.
        asked, otherwise = len(server.requests), {"question": "How long does the battery of the Falke last?"}
        debugger = services.make_debugger()
        tried = await debugger.try_variants(DEFAULT_SCOPE, done["run_id"], sets=[otherwise])
        problems = {each["problem"] for each in tried["outcomes"] if each["kind"] == "set"}
        assert problems == {
            "not made: Reranker cohere/rerank-v3.5 at " + server.base_url + ", score would have to be asked"
        }
        assert (len(server.requests), tried["cost"]) == (asked, 0.0)
        tried = await debugger.try_variants(DEFAULT_SCOPE, done["run_id"], sets=[otherwise], models=True)
        assert tried["cost"] == pytest.approx(0.002 * (len(server.requests) - asked)) != 0.0

        assert await services.checks["rerank"]() is None
        server.behaviour.api_key = "another"
        done = await ask(services, "How long does the battery of the Amsel last?", mode="exact")
        assert "9 months" in done["answer"]
        assert ["COHERE_API_KEY" in warning for warning in done["warnings"]] == [True]
        assert done["usage"] == []
        assert "COHERE_API_KEY" in (await services.checks["rerank"]() or "")
        server.behaviour.api_key = "key"
        await ask(services, "How long does the battery of the Falke last?", mode="exact")
        assert await services.checks["rerank"]() is None
