"""Limits of callers: refused with 429 before anything is read or begun, and what is left is told in headers."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app.access.keys import make_key
from app.serving.application import make_app
from app.settings import Settings
from app.support.metrics import REGISTRY
from app.wiring.services import Services, open_services
from domain.people.access import ApiKey, Caller, Right
from domain.people.limits import Limits
from domain.ports.question_sets import SetQuestion
from tests.asking import with_models
from tests.http_client import open_client, run_app
from tests.wire.openai import serve_openai
from tests.wire.serving import serve_app

QUESTION = {"question": "How long is the warranty of the Falke?"}
COMPLETION = {"model": "standard", "messages": [{"role": "user", "content": "How long is the warranty of the Falke?"}]}


async def make(services: Services, limits: Limits, *rights: Right) -> dict[str, str]:
    """Make a key with these limits; returns the header with its secret."""
    key = ApiKey("", "test", frozenset(rights or ("ask", "ingest")), limits=limits)
    _, token = await make_key(services.keys, key)
    return {"Authorization": f"Bearer {token}"}


def count_refusals(limit: str) -> float:
    return REGISTRY.get_sample_value("askgraph_refused_by_limit_total", {"limit": limit}) or 0.0


async def test_a_key_may_send_so_many_requests_a_minute(services: Services, library: dict[str, str]) -> None:
    async with open_client(make_app(services)) as client:
        key = await make(services, Limits(requests_per_minute=3))
        refused_before = count_refusals("requests")
        first = await client.post("/api/chat?stream=false", json=QUESTION, headers=key)
        assert (first.status_code, first.headers["RateLimit-Policy"]) == (200, '"requests";q=3;w=60')
        assert first.headers["RateLimit"].startswith('"requests";r=2;t=')
        # The second is answered from the cache, and an error counts too.
        cached = await client.post("/api/chat", json=QUESTION, headers=key)
        assert cached.headers["RateLimit"].startswith('"requests";r=1;t=')
        missing = await client.get("/api/documents/none", headers=key)
        assert (missing.status_code, missing.headers["RateLimit"][:16]) == (404, '"requests";r=0;t')

        async def never() -> AsyncIterator[bytes]:
            raise AssertionError("the body was read")
            yield b""

        upload = {"Content-Type": "multipart/form-data; boundary=x"}
        refused = await client.post("/api/documents", content=never(), headers=key | upload)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["retryable"]) == (429, "rate_limited", True)
        assert error["message"].startswith("You may send 3 requests a minute. Go on in ")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert refused.headers["RateLimit"].startswith('"requests";r=0;t=')
        protocol = await client.post("/v1/chat/completions", json=COMPLETION, headers=key)
        assert (protocol.status_code, protocol.json()["error"]["type"]) == (429, "rate_limit_error")
        assert {"retry-after", "ratelimit", "ratelimit-policy"} <= set(protocol.headers)
        assert count_refusals("requests") == refused_before + 2
        # Another key has a minute of its own, and one without limits has no headers.
        assert (await client.get("/api/documents", headers=await make(services, Limits(1)))).status_code == 200
        assert "ratelimit" not in (await client.get("/api/documents", headers=await make(services, Limits()))).headers


@pytest.mark.parametrize(
    ("limits", "policy", "says"),
    [
        (Limits(tokens_per_day=1), '"tokens";q=1;w=86400', "tokens, and may use 1. A new day begins in "),
        (Limits(dollars_per_day=0.0000001), '"cents";q=0;w=86400', "and may use $0.0000. A new day begins in "),
    ],
)
async def test_a_key_may_spend_so_much_a_day(
    settings: Settings, library: dict[str, str], limits: Limits, policy: str, says: str
) -> None:
    async with (
        serve_openai() as model,
        open_services(with_models(settings, model)) as services,
        open_client(make_app(services)) as client,
    ):
        key = await make(services, limits)
        first = await client.post("/api/chat?stream=false", json=QUESTION, headers=key)
        assert (first.status_code, first.headers["RateLimit-Policy"]) == (200, policy)
        assert first.json()["usage"]
        other: dict[str, Any] = {"question": "What does the repair service cost?"}
        refused = await client.post("/api/chat", json=other, headers=key)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (429, "budget_spent")
        assert says in error["message"]
        assert int(refused.headers["Retry-After"]) <= 86_400
        # What costs nothing goes on.
        assert (await client.get("/api/documents", headers=key)).status_code == 200
        # A cached answer is a run like any other.
        assert (await client.post("/api/chat?stream=false", json=QUESTION, headers=key)).status_code == 429


async def test_questions_at_once_do_not_pass_a_budget_together(settings: Settings, library: dict[str, str]) -> None:
    async with (
        serve_openai(ttft=0.05) as model,
        open_services(with_models(settings, model)) as services,
        open_client(make_app(services)) as client,
    ):
        key = await make(services, Limits(tokens_per_day=3000))

        async def ask(number: int) -> httpx.Response:
            question = {"question": f"What does repair service number {number} cost?"}
            return await client.post("/api/chat?stream=false", json=question, headers=key)

        answers = await asyncio.gather(*map(ask, range(30)))
        assert sorted({answer.status_code for answer in answers}) == [200, 429]
        assert [answer.status_code for answer in answers].count(200) == 1
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert "being answered may take what you may use today" in refused.json()["error"]["message"]
        assert int(refused.headers["Retry-After"]) < 10
        # What it did not take is free again.
        assert (await ask(30)).status_code == 200


async def test_a_refusal_tells_what_was_left_when_it_was_refused(services: Services) -> None:
    async with open_client(make_app(services)) as client:
        key = await make(services, Limits(runs=1))
        caller = Caller((await client.get("/api/session", headers=key)).json()["name"], limits=Limits(runs=1))

        async def ask_late() -> AsyncIterator[bytes]:
            # Read once the request is counted. Meanwhile another one of the caller's begins a run.
            await services.limits.begin_run(caller, "another")
            yield json.dumps(QUESTION).encode()

        sent = key | {"Content-Type": "application/json"}
        refused = await client.post("/api/chat", content=ask_late(), headers=sent)
        assert (refused.status_code, refused.headers["RateLimit"]) == (429, '"runs";r=0')


async def test_limits_of_the_deployment_hold_where_a_key_has_none(settings: Settings) -> None:
    changed = settings.model_copy(update={"requests_per_minute": 1, "max_runs_per_caller": 4})
    async with open_services(changed) as services, open_client(make_app(services)) as client:
        for key, most in (({}, 1), (await make(services, Limits(requests_per_minute=2)), 2)):
            answered = await client.get("/api/session", headers=key or await make(services, Limits()))
            assert answered.headers["RateLimit-Policy"] == f'"requests";q={most};w=60, "runs";q=4'


async def test_without_redis_everybody_is_served(settings: Settings) -> None:
    away = settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1"), "requests_per_minute": 1})
    async with open_services(away) as services, open_client(make_app(services)) as client:
        before = REGISTRY.get_sample_value("askgraph_unlimited_requests_total") or 0.0
        for _ in range(2):
            assert (await client.post("/api/chat?stream=false", json=QUESTION)).status_code == 200
        assert REGISTRY.get_sample_value("askgraph_unlimited_requests_total") == before + 4


async def test_embedding_goes_through_the_door_of_questions(services: Services) -> None:
    body = {"model": "any", "input": ["The Falke has a warranty of 36 months."] * 3}
    async with open_client(make_app(services)) as client:
        spent = await make(services, Limits(tokens_per_day=0))
        refused = await client.post("/v1/embeddings", json=body, headers=spent)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "budget_spent")
        key = await make(services, Limits(tokens_per_day=20, runs=1))
        first = await client.post("/v1/embeddings", json=body, headers=key)
        assert (first.status_code, first.json()["usage"]["total_tokens"]) == (200, 33)
        assert (await client.post("/v1/embeddings", json=body, headers=key)).status_code == 429
        assert (await client.post("/api/chat", json=QUESTION, headers=key)).json()["error"]["code"] == "budget_spent"
        services.admission.most = services.admission.running
        full = await client.post("/v1/embeddings", json=body)
        assert (full.status_code, full.json()["error"]["code"]) == (503, "saturated")


async def test_whoever_leaves_stops_the_embedding_of_their_texts(services: Services) -> None:
    app = make_app(services)
    embedded = 0
    run = services.library.local_embedder._run

    def count(ids: list[int]) -> Any:
        nonlocal embedded
        embedded += 1
        time.sleep(0.02)
        return run(ids)

    services.library.local_embedder._run = count  # type: ignore[method-assign]
    key = await make(services, Limits(runs=1, tokens_per_day=10**6))
    body = {"model": "any", "input": ["The Falke has a warranty of 36 months."] * 256}
    async with run_app(app) as running, serve_app(running) as address, httpx.AsyncClient(base_url=address) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post("/v1/embeddings", json=body, headers=key, timeout=0.5)
        async with asyncio.timeout(5):
            while services.admission.running:  # noqa: ASYNC110 - it ends in the server
                await asyncio.sleep(0.01)
        stopped_at = embedded
        await asyncio.sleep(0.3)
        assert embedded <= stopped_at + 2 < 256
        # It is counted, and is no run of the caller's any more.
        small = await client.post("/v1/embeddings", json=body | {"input": "Falke"}, headers=key, timeout=10)
        assert small.status_code == 200
        assert "r=99" in small.headers["RateLimit"]


async def test_a_set_is_charged_question_by_question_whoever_leaves(
    settings: Settings, library: dict[str, str]
) -> None:
    async with (
        serve_openai() as model,
        open_services(with_models(settings, model)) as services,
        run_app(make_app(services)) as running,
        serve_app(running) as address,
        httpx.AsyncClient(base_url=address, timeout=10) as client,
    ):
        for number in range(7):
            question = SetQuestion(str(number), f"What does repair service number {number} cost?", ["9"], True)
            await services.sets.put("default", "desk", question)

        async def read_left(key: dict[str, str]) -> int:
            told = (await client.get("/api/session", headers=key)).headers["RateLimit"]
            return int(told.partition("r=")[2].partition(";")[0])

        spent = await make(services, Limits(tokens_per_day=1), "debug")
        asked = (await client.post("/api/sets/desk/runs", json={}, headers=spent)).text
        assert ("budget_spent" in asked, '"done":7' in asked, "event: report" in asked) == (True, False, False)

        model.behaviour.rate, model.behaviour.length = 20, 200
        key, before = await make(services, Limits(tokens_per_day=10**6), "debug"), len(model.requests)
        async with client.stream("POST", "/api/sets/desk/runs", json={}, headers=key) as events, asyncio.timeout(5):
            lines = events.aiter_lines()
            assert await anext(lines) == "event: progress"
            while sum(each.get("stream", False) for each in model.requests[before:]) < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            left = await read_left(key)
        async with asyncio.timeout(5):
            while services.admission.running:  # noqa: ASYNC110 - it ends in the server
                await asyncio.sleep(0.01)
        # What four questions had sent and were given until then.
        assert 4 * 300 < left - await read_left(key) < 4 * 6000


async def test_a_key_stores_no_more_than_it_may(services: Services) -> None:
    async with open_client(make_app(services)) as client:
        one, two = await make(services, Limits(max_documents=2)), await make(services, Limits(max_stored_mb=1))

        async def add(
            key: dict[str, str], name: str, text: str = "Text.", workspace: str = "default"
        ) -> dict[str, Any]:
            sent = {"files": (name, f"# {name}\n\n{text}".encode())}
            params = {"workspace": workspace}
            report: dict[str, Any]
            [report] = (await client.post("/api/documents", files=sent, params=params, headers=key)).json()["documents"]
            return report

        first = await add(one, "a.md")
        assert (first["status"], first["note"]) == ("added", None)
        # All workspaces count together.
        assert (await add(one, "b.md", workspace="other"))["note"] == "Your key holds 2 of the 2 documents that it may."
        third = await add(one, "c.md")
        assert (third["code"], third["error"]) == (
            "storage_full",
            "Your key may hold 2 documents, and has 2. Delete some first.",
        )
        # What another has stored is their own, until somebody replaces it. A new version is no new document.
        assert (await add(two, "c.md"))["note"] is None
        assert (await add(one, "c.md", "Taken."))["code"] == "storage_full"
        assert (await add(one, "a.md", "Changed."))["status"] == "updated"
        assert (await add(two, "a.md", "Taken over."))["status"] == "updated"
        assert (await add(one, "c.md", "Taken."))["status"] == "updated"
        large = await add(two, "a.md", "word " * 200_000)
        assert large["error"].startswith("Your key may hold 1,000,000 bytes of files, and has 32.")
        # Of its second version, which is kept for citations, the first key is the bringer.
        assert len(await services.library.documents.list("default")) == 2
