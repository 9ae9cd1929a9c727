"""A small OpenID Connect provider on loopback: discovery, keys, tokens by client credentials, and signing in with an
authorization code and PKCE, where Ann agrees at once.

From https://openid.net/specs/openid-connect-discovery-1_0.html, openid-connect-core-1_0.html (3.1), RFC 6749 (4.1, 4.4)
and RFC 7636.
"""

import hashlib
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from typing import Any
from urllib.parse import unquote_plus, urlencode

from joserfc import jwt
from joserfc.jwk import ECKey, Key
from joserfc.jws import JWSRegistry
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.wire.serving import serve_app

Json = dict[str, Any]

AUDIENCE = "askgraph"
CLIENT, SECRET = "ask graph", "hunter 2:%"
"""With what has to be escaped."""


def make_key(kid: str) -> ECKey:
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig"})


class OidcProvider:
    """The running provider."""

    def __init__(self) -> None:
        self.issuer = ""
        self.keys: list[Key] = [make_key("first")]
        """The last one signs."""
        self.fetched = 0
        """Number of times that the keys were fetched."""
        self.discovery: Json = {}
        """What the discovery document says otherwise."""
        self.fault: Response | None = None
        """The response to every request for the keys."""
        self.refusal = ""
        """The error with which people come back who sign in."""
        self.asks = False
        """If true, people who sign in have to agree first, on a page of the provider."""
        self.claims: Json = {}
        """What the tokens of people who sign in say otherwise."""
        self.asked: list[Json] = []
        """Of whoever came to sign in."""
        self._codes: dict[str, Json] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discover),
                Route("/keys", self._list_keys),
                Route("/authorize", self._authorize),
                Route("/token", self._give_token, methods=["POST"]),
            ]
        )

    @property
    def settings(self) -> Json:
        """Settings of a service whose people sign in here."""
        given = {"oidc_issuer": self.issuer, "oidc_client_id": CLIENT, "oidc_client_secret": SecretStr(SECRET)}
        return given | {"load_samples": False}

    def rotate(self) -> None:
        """Sign with a new key from now on; the old ones are withdrawn."""
        self.keys = [make_key(f"after {self.keys[-1].kid}")]

    def sign(self, **claims: Any) -> str:
        """Make a token of Ann for ten minutes. Claims that are None are left out."""
        return self.sign_with(self.keys[-1], "ES256", **claims)

    def sign_with(self, key: Key, alg: str, **claims: Any) -> str:
        """Sign with another key. The header holds what nobody knows."""
        given = {name: value for name, value in (self.make_claims() | claims).items() if value is not None}
        registry = JWSRegistry(algorithms=[alg], strict_check_header=False)
        return jwt.encode({"alg": alg, "kid": key.kid, "x-unknown": 1}, given, key, registry=registry)

    def make_claims(self) -> Json:
        """Make the claims of Ann's token."""
        now = int(time.time())
        times = {"iat": now, "nbf": now, "exp": now + 600}
        said = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ann", "workspaces": ["default"], "scope": "openid ask"}
        return said | times

    async def _discover(self, request: Request) -> Response:
        described = {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/keys",
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=team",
            "token_endpoint": f"{self.issuer}/token",
        }
        return JSONResponse(described | self.discovery)

    async def _list_keys(self, request: Request) -> Response:
        self.fetched += 1
        return self.fault or JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys]})

    async def _authorize(self, request: Request) -> Response:
        """Send the browser back with a code, or with the error of `refusal`."""
        asked = dict(request.query_params)
        self.asked.append(asked)
        if asked["client_id"] != CLIENT or not asked["redirect_uri"].endswith("/api/session/callback"):
            return Response("unknown client", 400)
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert (asked["tenant"], asked["scope"].split()[0]) == ("team", "openid")
        code = secrets.token_urlsafe()
        self._codes[code] = asked
        answer = {"error": self.refusal} if self.refusal else {"code": code, "iss": self.issuer}
        back = f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}"
        return HTMLResponse(f'<a href="{escape(back)}">Go on as Ann</a>') if self.asks else RedirectResponse(back)

    def _redeem(self, form: Json, authorization: str) -> Response:
        """Give the tokens for a code, once."""
        name, _, secret = b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        sent = (unquote_plus(name), unquote_plus(secret)) if name else (form["client_id"], form.get("client_secret"))
        if sent != (CLIENT, SECRET):
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self._codes.pop(form["code"], None)
        challenge = urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked is None or (asked["code_challenge"], asked["redirect_uri"]) != (challenge, form["redirect_uri"]):
            return JSONResponse({"error": "invalid_grant"}, 400)
        token = self.sign(**{"aud": CLIENT, "nonce": asked["nonce"], **self.claims})
        return JSONResponse({"id_token": token, "access_token": "opaque", "token_type": "Bearer", "expires_in": 600})

    async def _give_token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        if form.get("grant_type") == "authorization_code":
            return self._redeem(form, request.headers.get("authorization", ""))
        return JSONResponse({"access_token": self.sign(**form), "token_type": "Bearer", "expires_in": 600})


@asynccontextmanager
async def serve_oidc() -> AsyncIterator[OidcProvider]:
    """A provider for one test."""
    provider = OidcProvider()
    async with serve_app(provider.app) as provider.issuer:
        yield provider
