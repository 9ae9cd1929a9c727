"""What holds for every request and every response: hosts, origins, sizes, headers."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.api.perimeter.perimeter import HEADERS
from app.serving.application import MAX_BODY, make_app
from app.wiring.services import Services, open_services
from tests.http_client import describe_api, open_client

UNGUARDED = {"/api/session", "/api/session/sign-in", "/api/session/callback", "/healthz", "/readyz"}
"""What anybody may call: identity providers and probes add parameters of their own."""

QUESTION = {"question": "How long is the warranty of the Falke?"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(module_services: Services) -> AsyncIterator[Services]:
    hosts = {
        "hosts": frozenset({"ask.example.com", "*.inner.example"}),
        "origins": frozenset({"https://chat.example.com/", "http://localhost:*", "http://[::1]:3000"}),
    }
    async with open_services(module_services.settings.model_copy(update=hosts)) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(services: Services) -> AsyncIterator[httpx.AsyncClient]:
    async with open_client(make_app(services)) as opened:
        yield opened


async def send(client: httpx.AsyncClient, method: str, path: str, **options: Any) -> tuple[int, str]:
    response = await client.request(method, path, **options)
    return response.status_code, response.json().get("error", {}).get("code", "")


async def test_an_address_with_a_slip_is_what_it_means(client: httpx.AsyncClient) -> None:
    for path in ("/api/cache/", "/api//cache", "/v1/models/", "/v1/v1/models", "/models", "/v1//models/fast", "/"):
        assert (await client.get(path)).status_code == 200, path


async def test_only_the_names_of_the_service_are_served(client: httpx.AsyncClient) -> None:
    for host in (
        "localhost:80",
        "LOCALHOST",
        "127.0.0.1:8000",
        "[::1]:8000",
        "10.1.2.3",
        "ask.example.com",
        "a.inner.example",
    ):
        assert (await client.get("/api/cache", headers={"Host": host})).status_code == 200, host
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "xask.example.com",
        "inner.example",
        "",
        "[",
        "a@localhost.evil",
    ):
        assert await send(client, "GET", "/api/cache", headers={"Host": host}) == (400, "unknown_host"), host


async def test_only_pages_of_the_service_may_write(client: httpx.AsyncClient) -> None:
    sent: list[tuple[dict[str, str], bool]] = [
        ({}, False),
        ({"Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        # Another port of this machine is the same site, and another application.
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:3000"}, True),
        ({"Origin": "http://localhost"}, False),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "http://localhost.evil.example:3000"}, True),
        ({"Origin": "https://chat.example.com.evil.example"}, True),
        # These are named.
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://chat.example.com"}, False),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://localhost:3000"}, False),
        ({"Origin": "http://[::1]:3000"}, False),
        ({"Origin": "null"}, True),
    ]
    for headers, refused in sent:
        for method, path in (("POST", "/api/chat"), ("DELETE", "/api/documents/none")):
            status, code = await send(client, method, path, headers=headers)
            assert ((status, code) == (403, "cross_origin")) is refused, headers
        assert (await client.get("/api/cache", headers=headers)).status_code == 200


async def test_pages_of_named_origins_ask_without_our_cookie(client: httpx.AsyncClient, services: Services) -> None:
    there = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}
    wants = there | {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-a"}
    asked = await client.options("/v1/chat/completions", headers=wants)
    assert (asked.status_code, asked.headers["access-control-allow-headers"]) == (204, "authorization,x-a")
    for answered in (asked, await client.get("/v1/models", headers=there), await client.get("/none", headers=there)):
        assert answered.headers["access-control-allow-origin"] == "http://localhost:3000"
        assert "access-control-allow-credentials" not in answered.headers
    cookie = {"Cookie": "askgraph_key=of-the-owner"}
    async with open_client(make_app(services, local_token="of-the-owner", closed=True)) as closed:
        own = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
        got = [(await closed.get("/v1/models", headers=each | cookie)).status_code for each in (own, there)]
    assert got == [200, 401]
    for origin in ("https://evil.example", "null"):
        refused = await client.options("/v1/chat/completions", headers=wants | {"Origin": origin})
        assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (403, False)


async def test_every_response_has_the_headers_that_protect(client: httpx.AsyncClient) -> None:
    for path in ("/", "/docs", "/openapi.json", "/healthz", "/api/documents", "/api/runs/none", "/none"):
        response = await client.get(path)
        assert {name.lower() for name in HEADERS} <= set(response.headers), path
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]


async def test_what_is_large_is_compressed_for_who_takes_it_so(client: httpx.AsyncClient) -> None:
    for path in ("/docs", "/openapi.json"):
        large, small = [await client.get(path, headers={"Accept-Encoding": each}) for each in ("identity", "gzip")]
        assert "content-encoding" not in large.headers
        assert small.headers["content-encoding"] == "gzip"
        assert small.content == large.content
        assert int(small.headers["content-length"]) < len(large.content) / 4
    streamed = await client.post(
        "/api/chat", json=QUESTION, headers={"Accept-Encoding": "gzip", "Accept": "text/event-stream"}
    )
    assert "content-encoding" not in streamed.headers


async def test_an_unexpected_error_has_them_too(client: httpx.AsyncClient, services: Services) -> None:
    app = make_app(services)

    @app.get("/broken")
    async def fail() -> None:
        raise ZeroDivisionError

    async with open_client(app, raise_app_exceptions=False) as broken:
        response = await broken.get("/broken")
    assert response.status_code == 500
    assert response.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_is_counted_as_it_comes(client: httpx.AsyncClient, declared: bool) -> None:
    sent = 0

    async def stream() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 10 * MAX_BODY:
            sent += 100_000
            yield b"x" * 100_000

    headers = {"Content-Type": "application/json"} | ({"Content-Length": str(10 * MAX_BODY)} if declared else {})
    response = await client.post("/api/chat", content=stream(), headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (413, "oversized_request")
    assert "1,000,000 bytes" in response.json()["error"]["message"]
    assert sent <= (0 if declared else MAX_BODY + 100_000)


async def test_an_upload_may_be_larger_than_a_question(client: httpx.AsyncClient) -> None:
    text = b"The Falke is grey.\n\n" * (MAX_BODY // 15)
    response = await client.post("/api/documents?wait=false", files={"files": ("a.txt", text)})
    assert response.status_code == 202


async def test_head_is_answered_like_get_without_the_body(client: httpx.AsyncClient) -> None:
    for path in ("/", "/healthz", "/api/documents", "/api/documents/none"):
        got, head = await client.get(path), await client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        assert head.headers["content-type"] == got.headers["content-type"]


async def test_the_reference_of_the_api_loads_one_script_of_ours(client: httpx.AsyncClient) -> None:
    page = (await client.get("/docs")).text
    assert "/api/chat" in page
    assert (
        page.count("<script") == page.count("src=") == page.count('<script type="module" src="/web/reference.js">') == 1
    )
    assert "<link" not in page


def list_operations() -> list[tuple[str, str]]:
    paths = describe_api()["paths"]
    return [(method.upper(), path) for path, operations in paths.items() for method in operations]


async def test_no_operation_takes_a_parameter_that_it_does_not_know(client: httpx.AsyncClient) -> None:
    taken = []
    for method, path in list_operations():
        response = await client.request(method, re.sub(r"\{\w+\}", "1", path), params={"wrkspace": "legal"})
        if response.status_code != 422 or "'wrkspace'" not in response.json()["error"]["message"]:
            taken.append((method, path, response.status_code))
    assert {path for _, path, _ in taken} == UNGUARDED, taken


async def test_a_field_in_the_wrong_place_is_refused_and_nothing_is_stored(client: httpx.AsyncClient) -> None:
    files = {"files": ("a.md", b"# A\n\nText.")}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"data": {"workspace": "legal"}}, "parameter of the address"),
        ({"data": {"metdata": "{}"}}, "Did you mean 'metadata'"),
        ({"params": {"workspce": "legal"}}, "Did you mean 'workspace'"),
        ({"params": {"metadata": "{}"}}, "field of the form"),
    ]
    for sent, said in wrong:
        response = await client.post("/api/documents", files=files, **sent)
        assert response.status_code == 422
        assert said in response.json()["error"]["message"]
    listed = (await client.get("/api/documents")).json()["documents"]
    assert "a.md" not in [document["source"] for document in listed]
    added = await client.post("/api/documents", files=files, params={"workspace": "legal"})
    assert added.status_code == 200
    listed = await client.get("/api/documents", params={"workspace": "legal"})
    assert [document["source"] for document in listed.json()["documents"]] == ["a.md"]


async def test_a_wrong_method_is_told_all_that_the_path_has(client: httpx.AsyncClient) -> None:
    for path, methods in (
        ("/api/documents", "GET, HEAD, POST"),
        ("/api/documents/x", "DELETE, GET, HEAD, PATCH"),
        ("/api/session", "DELETE, GET, HEAD, POST"),
    ):
        refused = await client.put(path)
        assert (refused.status_code, refused.headers["allow"]) == (405, methods)


async def test_json_needs_no_header_that_says_so(client: httpx.AsyncClient) -> None:
    # The first is what curl sends.
    types = ("application/x-www-form-urlencoded", "text/plain;charset=UTF-8", None)
    for headers in ({"Content-Type": each} if each else {} for each in types):
        answered = await client.post("/api/chat?stream=false", content=json.dumps(QUESTION).encode(), headers=headers)
        assert answered.status_code == 200, answered.text
    refused = await client.post("/api/chat", files={"question": b"Who?"})
    assert (refused.status_code, "application/json" in refused.json()["error"]["message"]) == (422, True)


HUGE = 10**399


async def test_no_json_holds_a_number_that_could_not_be_stored(client: httpx.AsyncClient) -> None:
    for number in ("1e400", "NaN", "-Infinity", str(2**63), "9" * 5000, str(HUGE)):
        for path, body in (
            ("/api/chat", '{"question": "?", "filter": {"year": {"gte": %s}}}'),
            ("/api/threads/t/replay", '{"set": {"profile.rerank.keep": %s}}'),
            ("/langgraph/threads", '{"metadata": {"n": [%s]}}'),
            ("/langgraph/threads/t/state", '{"values": {"confidence": %s}}'),
            ("/v1/chat/completions", '{"model": "fast", "messages": [], "metadata": {"n": %s}}'),
        ):
            as_json = {"Content-Type": "application/json"}
            refused = await client.post(path, content=body % number, headers=as_json)
            assert 400 <= refused.status_code < 500, (path, number, refused.text)
        form = {"metadata": f'{{"n": {number}}}'}
        refused = await client.post("/api/documents", files={"files": ("a.md", b"# A\n\nText.")}, data=form)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "metadata_error"), number


async def test_text_that_cannot_be_stored_is_mended_before_anything_begins(client: httpx.AsyncClient) -> None:
    as_json = {"Content-Type": "application/json"}
    texts = {"a\0b": "a\ufffdb", "half \ud83d of a pair": "half \ufffd of a pair"}
    for text, mended in texts.items():
        for metadata, kept in (({"note": text}, {"note": mended}), ({"deep": [{text: 1}]}, {"deep": [{mended: 1}]})):
            body = json.dumps({"metadata": metadata})
            made = await client.post("/langgraph/threads", content=body, headers=as_json)
            assert made.json()["metadata"] == kept
        asked = json.dumps(
            {"model": "fast", "messages": [{"role": "user", "content": f"How many holidays are there, {text}?"}]}
        )
        for path, body in (
            ("/v1/chat/completions", asked),
            ("/langgraph/runs/wait", json.dumps({"assistant_id": "fast", "input": json.loads(asked)})),
            ("/langgraph/runs/stream", json.dumps({"assistant_id": "fast", "input": json.loads(asked)})),
            ("/api/chat?stream=false", json.dumps({"question": f"How many holidays, {text}?"})),
        ):
            answered = await client.post(path, content=body, headers=as_json)
            assert answered.status_code == 200, (path, answered.text)
            assert "error" not in answered.text, (path, answered.text)
    for address in ("/api/documents/a%00b", "/api/documents?name=%00", "/api/threads/%00", "/api/search?q=a%00b"):
        assert (await client.get(address)).status_code == 400, address
    escaped = await client.post("/langgraph/threads", json={"metadata": {"path": "C:\\u0000"}})
    assert escaped.json()["metadata"] == {"path": "C:\\u0000"}


async def test_a_body_of_many_values_is_refused_and_few_problems_are_told(client: httpx.AsyncClient) -> None:
    bodies: dict[str, Any] = {
        "/api/session": {f"f{number}": 1 for number in range(9_000)},
        "/api/chat": {"question": "?"} | {f"f{number}": 1 for number in range(9_000)},
        "/v1/responses": {"model": "standard", "input": [1] * 9_000},
        "/langgraph/runs/wait": {"assistant_id": "standard", "stream_mode": [1] * 9_000},
    }
    for path, body in bodies.items():
        refused = await client.post(path, json=body)
        assert (400 <= refused.status_code < 500, len(refused.content) < 5_000) == (True, True), path
        much = await client.post(path, json=body | {"more": [0] * 9_000})
        assert "10,000 values" in much.text, path


async def test_every_write_answers_at_once_where_its_body_is_empty(client: httpx.AsyncClient) -> None:
    writes = [
        (method.upper(), re.sub(r"\{\w+\}", "x", path))
        for path, operations in describe_api()["paths"].items()
        for method in operations
        if method in ("post", "put", "patch")
    ]
    assert len(writes) > 8
    dialects = ("/v1/embeddings", "/v1/chat/completions", "/v1/responses", "/langgraph/runs/wait", "/api/bundles/open")
    for method, path in (*writes, *(("POST", path) for path in dialects)):
        for content_type in ("application/json", "multipart/form-data; boundary=x", "application/octet-stream"):
            async with asyncio.timeout(10):
                answer = await client.request(method, path, headers={"Content-Type": content_type})
            assert 400 <= answer.status_code < 500, (method, path, answer.text)
