"""A small OpenID Connect provider on loopback: discovery, keys, and tokens by client credentials.

From https://openid.net/specs/openid-connect-discovery-1_0.html and RFC 6749, 4.4. Runs by itself too:
``python -m tests.wire.oidc --port 8300``; ``curl -d 'sub=ann&scope=ask&workspaces=default' .../token`` gives a token.
"""

import argparse
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from joserfc import jwt
from joserfc.jwk import ECKey, Key
from joserfc.jws import JWSRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.wire.serving import serve_app

Json = dict[str, Any]

AUDIENCE = "askgraph"


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
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._discover),
                Route("/keys", self._list_keys),
                Route("/token", self._give_token, methods=["POST"]),
            ]
        )

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
        described = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys", "token_endpoint": f"{self.issuer}/token"}
        return JSONResponse(described | self.discovery)

    async def _list_keys(self, request: Request) -> Response:
        self.fetched += 1
        return self.fault or JSONResponse({"keys": [key.as_dict(private=False) for key in self.keys]})

    async def _give_token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        return JSONResponse({"access_token": self.sign(**form), "token_type": "Bearer", "expires_in": 600})


@asynccontextmanager
async def serve_oidc() -> AsyncIterator[OidcProvider]:
    """A provider for one test."""
    provider = OidcProvider()
    async with serve_app(provider.app) as provider.issuer:
        yield provider


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="an OpenID Connect provider on loopback")
    parser.add_argument("--port", type=int, default=8300)
    port = parser.parse_args().port
    provider = OidcProvider()
    provider.issuer = f"http://127.0.0.1:{port}"
    uvicorn.run(provider.app, host="127.0.0.1", port=port, log_level="warning", ws="none", lifespan="off")


if __name__ == "__main__":
    main()
