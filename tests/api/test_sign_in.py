"""Signing in on the page at an identity provider, which is a real one on loopback."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
import pytest_asyncio
from starlette.types import ASGIApp

from app.adapters.embedded import Servers
from app.adapters.oidc.sign_in import OidcSignIn
from app.api.people.sign_in import COOKIE
from app.serving.application import make_app
from app.settings import Settings, read_settings
from app.wiring.examination import examine
from app.wiring.services import Services, open_services
from tests.conftest import create_database
from tests.http_client import run_app
from tests.wire.oidc import CLIENT, OidcProvider, serve_oidc

SIGN_IN = "/api/session/sign-in"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def running(servers: Servers, template: str) -> AsyncIterator[tuple[OidcProvider, Services, ASGIApp]]:
    """The provider and the service, once for all."""
    async with serve_oidc() as provider, create_database(servers, template) as url:
        settings = read_settings(DATABASE_URL=url, REDIS_URL=servers.redis_url, **provider.settings)
        async with open_services(settings) as services, run_app(make_app(services)) as app:
            yield provider, services, app


@pytest.fixture
def provider(running: tuple[OidcProvider, Services, ASGIApp]) -> OidcProvider:
    """The provider, without faults."""
    provider = running[0]
    provider.discovery, provider.claims = {}, {}
    provider.refusal = ""
    provider.asked.clear()
    return provider


@pytest.fixture
def configured(running: tuple[OidcProvider, Services, ASGIApp]) -> Settings:
    return running[1].settings


@pytest_asyncio.fixture(loop_scope="module")
async def client(
    running: tuple[OidcProvider, Services, ASGIApp], provider: OidcProvider
) -> AsyncIterator[httpx.AsyncClient]:
    """A browser without cookies, of a service that knows nothing of the provider yet."""
    sign_in = running[1].identities.sign_in
    assert isinstance(sign_in, OidcSignIn)
    sign_in._provider._described = None
    sign_in._provider._not_before = 0
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=running[2]), base_url="http://localhost") as opened:
        yield opened


async def visit(address: str) -> str:
    """Follow the browser to the provider. Returns the address to which it is sent back."""
    async with httpx.AsyncClient() as http:
        return str((await http.get(address)).headers["location"])


async def come_back(client: httpx.AsyncClient, back: str = "/") -> str:
    """Begin a sign-in. Returns the address with which the browser comes back."""
    return await visit((await client.get(SIGN_IN, params={"back": back})).headers["location"])


async def test_who_signs_in_at_the_provider_is_signed_in_here(
    client: httpx.AsyncClient, provider: OidcProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert (await client.get("/readyz")).json()["sign_in"] is True
    assert (await client.get("/api/session")).status_code == 401
    begun = await client.get(SIGN_IN, params={"back": "/t/thread-1?workspace=legal"})
    assert begun.status_code == 303
    kept = begun.headers["set-cookie"]
    assert "HttpOnly" in kept
    assert "SameSite=lax" in kept
    assert "Max-Age=600" in kept

    returned = await visit(begun.headers["location"])
    provider.claims = {"scope": "ask openid", "workspaces": ["legal"]}
    finished = await client.get(returned)
    assert (finished.status_code, finished.headers["location"]) == (303, "/t/thread-1?workspace=legal")
    [credential, forgotten] = finished.headers.get_list("set-cookie")
    assert "HttpOnly; Path=/; SameSite=strict" in credential
    assert f'{COOKIE}=""' in forgotten
    assert "Max-Age=0" in forgotten
    assert (await client.get("/api/session")).json()["rights"] == ["ask"]

    # What opens the service is in nobody's log, and a code cannot be used again.
    code = dict(parse_qsl(urlsplit(returned).query))["code"]
    _, token = client.cookies["askgraph_key"].split("~")
    ours = "".join(record.getMessage() for record in caplog.records if record.name.startswith(("app", "askgraph")))
    assert code not in ours
    assert token not in ours
    assert (await client.get(returned)).status_code == 401
    await client.delete("/api/session")
    assert (await client.get("/api/session")).status_code == 401


@pytest.mark.parametrize(
    "back",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "",
        "/\t/evil.example",
        "/\r\nSet-Cookie: a=b",
        "t/1",
    ],
)
async def test_nobody_is_led_elsewhere_after_signing_in(client: httpx.AsyncClient, back: str) -> None:
    finished = await client.get(await come_back(client, back))
    assert (finished.status_code, finished.headers["location"]) == (303, "/")


async def test_the_answer_to_another_browsers_sign_in_signs_nobody_in(client: httpx.AsyncClient) -> None:
    """Login CSRF: somebody sends a victim the address with which they came back from the provider themselves."""
    theirs = await come_back(client)
    client.cookies.clear()
    for _ in range(2):
        refused = await client.get(theirs)
        assert (refused.status_code, "askgraph_key" in client.cookies) == (401, False)
        assert "begun in another browser" in refused.text
        # A victim who is signing in just now has a cookie, for another state.
        await come_back(client)


def forged(**changes: Any) -> dict[str, Any]:
    return {"claims": changes}


@pytest.mark.parametrize(
    ("faults", "status", "says"),
    [
        ({"refusal": "access_denied"}, 401, "did not sign you in. It says: access_denied."),
        ({"refusal": "<script>"}, 401, "did not sign you in.</p>"),
        (forged(nonce="of another"), 401, "of another sign-in"),
        (forged(nonce=None), 401, "lacks the claim &#x27;nonce&#x27;"),
        (forged(aud="billing"), 401, "meant for another audience"),
        (forged(aud=[CLIENT, "billing"], azp="billing"), 401, "given to another client"),
        (forged(aud=[CLIENT, "billing"], azp=7), 401, "given to another client"),
        (forged(aud=[CLIENT, "billing"], azp=CLIENT), 303, ""),
        (forged(exp=1), 401, "expired"),
        (forged(workspaces=None), 403, "opens no workspace"),
        (forged(workspaces=["w" * 4000]), 401, "leave out of it what askgraph does not need"),
        ({"discovery": {"token_endpoint": "http://evil.example/token"}}, 503, "which is not https"),
        ({"discovery": {"token_endpoint_auth_methods_supported": ["client_secret_post"]}}, 303, ""),
    ],
)
async def test_a_sign_in_that_fails_says_why(
    client: httpx.AsyncClient, provider: OidcProvider, faults: dict[str, Any], status: int, says: str
) -> None:
    for name, value in faults.items():
        setattr(provider, name, value)
    finished = await client.get(await come_back(client))
    assert finished.status_code == status
    assert says in finished.text
    assert "<script>" not in finished.text
    assert ("askgraph_key" in client.cookies) == (status == 303)
    assert COOKIE not in client.cookies


async def test_a_code_is_worth_nothing_without_the_secret_of_its_browser(
    client: httpx.AsyncClient, provider: OidcProvider
) -> None:
    returned = await come_back(client)
    [asked] = provider.asked
    asked["code_challenge"] = "of another verifier"
    finished = await client.get(returned)
    assert (finished.status_code, "does not confirm the sign-in (invalid_grant)" in finished.text) == (401, True)
    # One of another provider, whose answer got mixed up with ours.
    mixed = (await come_back(client)).replace("iss=http", "iss=https")
    assert "Another identity provider answered" in (await client.get(mixed)).text


async def test_behind_tls_the_cookie_belongs_to_this_host_alone(client: httpx.AsyncClient) -> None:
    client.base_url = httpx.URL("https://localhost")
    kept = (await client.get(SIGN_IN)).headers["set-cookie"]
    assert kept.startswith(f"__Host-{COOKIE}=")
    assert "Path=/; SameSite=lax; Secure" in kept
    finished = await client.get(await come_back(client))
    [credential, forgotten] = finished.headers.get_list("set-cookie")
    assert credential.startswith("__Host-askgraph_key=")
    assert credential.endswith("; HttpOnly; Path=/; SameSite=strict; Secure")
    assert forgotten.startswith(f'__Host-{COOKIE}="";')
    cookie = client.cookies["__Host-askgraph_key"]
    assert (await client.get("/api/session")).status_code == 200
    ended = (await client.delete("/api/session")).headers["set-cookie"]
    assert (ended.startswith('__Host-askgraph_key="";'), ended.endswith("; Secure")) == (True, True)
    # A neighbour's page can set a cookie without the prefix, such as one of an account of theirs.
    client.cookies.clear()
    client.cookies.set("askgraph_key", cookie)
    assert (await client.get("/api/session")).status_code == 401


async def test_a_provider_that_is_away_is_said_to_people(client: httpx.AsyncClient, provider: OidcProvider) -> None:
    provider.discovery = {"issuer": "https://evil.example"}
    refused = await client.get(SIGN_IN)
    assert (refused.status_code, refused.headers["content-type"]) == (503, "text/html; charset=utf-8")
    assert "The identity provider did not answer" in refused.text


async def test_the_doctor_examines_the_provider(configured: Settings, provider: OidcProvider, tmp_path: Path) -> None:
    async def look(settings: Settings) -> tuple[str, str | None]:
        examined = settings.model_copy(update={"home": tmp_path})
        [found] = [each async for each in examine(examined) if each.part == "identity provider"]
        return found.found.replace(provider.issuer, "it"), found.remedy

    assert await look(configured) == ("it answers, and has keys", None)
    provider.discovery = {"authorization_endpoint": None}
    found, remedy = await look(configured)
    assert "authorization_endpoint is None" in found
    assert await look(configured.model_copy(update={"oidc_client_id": None, "oidc_audience": "a"})) == (
        "it answers, and has keys",
        None,
    )
    found, remedy = await look(configured.model_copy(update={"oidc_issuer": "http://127.0.0.1:1"}))
    assert "cannot be used" in found
    assert remedy is not None
    assert "ASKGRAPH_OIDC_ISSUER" in remedy
