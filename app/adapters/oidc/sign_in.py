"""Signing in at an OpenID Connect provider: the authorization code flow with PKCE.

From https://openid.net/specs/openid-connect-core-1_0.html, 3.1, RFC 7636 (PKCE) and RFC 9207 (`iss` of the answer).
"""

import hashlib
import re
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

import httpx

from app.adapters.oidc.provider import UNUSABLE, OidcProvider
from app.adapters.oidc.tokens import OidcTokens
from domain.errors import IdentityProviderUnavailable, SignInFailed
from domain.ports.identities import SignInAttempt


@dataclass(frozen=True, slots=True)
class Client:
    """This service, as the provider knows it."""

    client_id: str
    secret: str
    """Empty for a public client."""
    scopes: str
    """What is asked for, with spaces between; `openid` among them."""


class OidcSignIn:
    """Implements `domain.ports.identities.SignIn`."""

    def __init__(self, provider: OidcProvider, tokens: OidcTokens, client: Client) -> None:
        self._provider = provider
        self._tokens = tokens
        self._client = client

    async def begin(self, callback: str) -> tuple[str, SignInAttempt]:
        attempt = SignInAttempt(*(secrets.token_urlsafe(32) for _ in range(3)))
        challenge = urlsafe_b64encode(hashlib.sha256(attempt.verifier.encode()).digest()).decode().rstrip("=")
        asked = {
            "response_type": "code",
            "client_id": self._client.client_id,
            "redirect_uri": callback,
            "scope": self._client.scopes,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = await self._find("authorization_endpoint")
        return str(httpx.URL(address).copy_merge_params(asked)), attempt

    async def finish(self, attempt: SignInAttempt, callback: str, code: str, issuer: str | None) -> str:
        if issuer is not None and issuer != self._provider.issuer:
            raise SignInFailed("Another identity provider answered than the one that was asked.")
        try:
            status, body = await self._redeem(attempt, callback, code)
            token = body["id_token"] if status == 200 else None
        except UNUSABLE as error:
            raise IdentityProviderUnavailable from error
        if not isinstance(token, str):
            raise SignInFailed(f"The identity provider does not confirm the sign-in{_read_error(body)}.")
        await self._tokens.verify_id_token(token, self._client.client_id, attempt.nonce)
        return token

    async def _redeem(self, attempt: SignInAttempt, callback: str, code: str) -> tuple[int, Any]:
        """Exchange the code for tokens. Returns status and body of the response."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": callback,
            "code_verifier": attempt.verifier,
            "client_id": self._client.client_id,
        }
        described = await self._provider.describe()
        # The default where a provider does not say what it takes.
        methods = described.metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if self._client.secret and "client_secret_basic" in methods:
            # RFC 6749, 2.3.1: both parts are encoded like a form's.
            auth = httpx.BasicAuth(quote_plus(self._client.client_id), quote_plus(self._client.secret))
        elif self._client.secret:
            form["client_secret"] = self._client.secret
        return await self._provider.post(await self._find("token_endpoint"), form, auth)

    async def _find(self, endpoint: str) -> str:
        described = await self._provider.describe()
        try:
            return described.find_endpoint(endpoint)
        except ValueError as error:
            raise IdentityProviderUnavailable(f"The identity provider cannot be used: {error}.") from error


def _read_error(body: Any) -> str:
    """Return the code of the provider's error, for people; empty where it is not one."""
    code = body.get("error") if isinstance(body, dict) else None
    return f" ({code})" if isinstance(code, str) and re.fullmatch(r"\w{1,60}", code, re.ASCII) else ""
