"""Tokens of an identity provider open the service like keys."""

from pathlib import Path

import httpx
import pytest

from app.access.keys import make_key
from app.serving.application import make_app
from app.settings import Settings, read_settings
from app.wiring.services import open_services
from domain.errors import ConfigurationError
from domain.people.access import ApiKey
from tests.http_client import open_client
from tests.wire.oidc import AUDIENCE, serve_oidc


async def test_tokens_and_keys_open_a_service_side_by_side(settings: Settings) -> None:
    async with serve_oidc() as provider:
        changed = settings.model_copy(update={"oidc_issuer": provider.issuer, "oidc_audience": AUDIENCE})
        async with open_services(changed) as services, open_client(make_app(services)) as client:
            # Without a key having been made.
            assert (await client.get("/api/documents")).status_code == 401
            # Clients of MCP look for the provider where they are told.
            told = (await client.post("/mcp", json={})).headers["WWW-Authenticate"]
            place = told.removeprefix('Bearer resource_metadata="').removesuffix('"')
            named = (await client.get(place)).json()
            assert (named["authorization_servers"], named["resource"]) == ([provider.issuer], "http://localhost/mcp")
            async with httpx.AsyncClient() as http:
                form = {"sub": "ann", "scope": "openid ask", "workspaces": "legal", "groups": "board"}
                given = (await http.post(f"{provider.issuer}/token", data=form)).json()
            ann = {"Authorization": f"Bearer {given['access_token']}"}
            assert (await client.get("/api/session", headers=ann)).json() == {
                "name": "oidc:ann", "workspaces": ["legal"], "groups": ["board"], "rights": ["ask"],
            }  # fmt: skip
            assert (await client.get("/api/documents", headers=ann)).status_code == 200
            assert (await client.get("/api/documents?workspace=default", headers=ann)).status_code == 404
            refused = await client.get("/api/costs", headers=ann)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
            late = {"Authorization": f"Bearer {provider.sign(exp=1)}"}
            expired = await client.get("/api/documents", headers=late)
            assert (expired.status_code, expired.json()["error"]["message"]) == (
                401, "This token has expired. Sign in again.",
            )  # fmt: skip
            assert expired.headers["WWW-Authenticate"] == "Bearer"
            _, key = await make_key(services.keys, ApiKey("", "test", frozenset({"ask"})))
            assert (await client.get("/api/documents", headers={"X-API-Key": key})).status_code == 200
            # The page's cookie takes a token as well.
            assert (await client.post("/api/session", json={"key": given["access_token"]})).status_code == 200
            assert (await client.get("/api/documents")).status_code == 200


@pytest.mark.parametrize(
    ("variables", "says"),
    [
        ({"ASKGRAPH_OIDC_ISSUER": "https://id.example.com"}, "oidc_issuer needs oidc_audience or oidc_client_id"),
        (
            {"ASKGRAPH_OIDC_ISSUER": "http://id.example.com", "ASKGRAPH_OIDC_AUDIENCE": "askgraph"},
            "oidc_issuer has to begin with https://",
        ),
    ],
)
def test_a_provider_that_could_be_anybody_is_no_setting(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], says: str, tmp_path: Path
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=says):
        read_settings(home=tmp_path)
