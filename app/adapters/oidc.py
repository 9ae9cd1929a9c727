"""Tokens of an OpenID Connect provider.

joserfc, which takes 0.1 s to import with what it needs, is imported here only: import this module where a provider is
configured. The provider's keys are fetched when the first token comes, and again when a token names a key that is not
among them, at most once a minute, however many invented tokens are sent.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from joserfc import jwt
from joserfc.errors import (
    ExpiredTokenError,
    InvalidClaimError,
    InvalidKeyIdError,
    JoseError,
    MissingClaimError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import JWKRegistry, KeySet
from joserfc.jws import JWSRegistry

from app.support.addresses import is_safe_address
from domain.access import RIGHTS, Caller
from domain.errors import Forbidden, IdentityProviderUnavailable, Unauthenticated

logger = logging.getLogger(__name__)

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Asymmetric ones only. With a symmetric one, the provider's public key would be the secret that signs."""

LEEWAY_SECONDS = 60
"""How far the clocks of the provider and of this machine may be apart."""
REFETCH_SECONDS = 60.0
"""The keys are not fetched again before, whatever tokens say."""
FRESH_SECONDS = 3600.0
"""The keys are fetched again after, so that one that the provider has withdrawn ends."""
FETCH_SECONDS = 5.0
MOST_BYTES = 256_000
LONGEST_SUBJECT = 255
"""The longest that the standard allows, which also wants ASCII."""
EVERY_WORKSPACE = "*"

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
"""Not compressed, so that the bound on bytes holds."""
_KEY_TYPES = {"RSA", "EC", "OKP"}
_HOSTILE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What joserfc raises, besides its own errors, for tokens and keys of wrong types."""
_REASONS = {
    "iss": "This token is of another issuer.",
    "aud": "This token is meant for another audience, not for this service.",
    "nbf": "This token is not valid yet.",
    "iat": "This token is of the future.",
}


@dataclass(frozen=True, slots=True)
class Claims:
    """Names of the claims that say what a token's holder may do. Dots lead into objects: `realm_access.roles`. Each
    holds a list, or a text with spaces between its parts."""

    workspaces: str = "workspaces"
    groups: str = "groups"
    rights: str = "scope"


class OidcTokens:
    """Implements `domain.ports.identities.TokenVerifier`. Belongs to one process."""

    def __init__(
        self, issuer: str, audience: str, claims: Claims, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._names = claims
        self._clock = clock
        self._http = httpx.AsyncClient(timeout=FETCH_SECONDS)
        self._jws = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        self._rules = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": issuer},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        self._keys: KeySet | None = None
        self._fetched_at = self._not_before = float("-inf")
        self._fetching = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def verify(self, token: str) -> Caller:
        keys = await self._find_keys()
        try:
            claims = self._decode(token, keys)
        except InvalidKeyIdError:
            newer = await self._refetch(keys)
            try:
                claims = self._decode(token, newer)
            except InvalidKeyIdError as error:
                raise Unauthenticated("This token is signed with a key that its issuer does not have.") from error
        return self._as_caller(claims)

    def _decode(self, token: str, keys: KeySet) -> dict[str, Any]:
        """Check signature and claims. Raises `InvalidKeyIdError` for an unknown key, and `Unauthenticated`."""
        try:
            claims = jwt.decode(token, keys, registry=self._jws).claims
            self._rules.validate(claims)
        except InvalidKeyIdError:
            raise
        except ExpiredTokenError as error:
            raise Unauthenticated("This token has expired. Sign in again.") from error
        except UnsupportedAlgorithmError as error:
            raise Unauthenticated("This token is signed by a method that is not allowed here.") from error
        except InvalidClaimError as error:
            raise Unauthenticated(
                _REASONS.get(error.claim, f"This token's claim {error.claim!r} is not valid.")
            ) from error
        except MissingClaimError as error:
            raise Unauthenticated(f"This token lacks the claim {error.claim!r}.") from error
        except (JoseError, *_HOSTILE) as error:
            raise Unauthenticated("This token is not valid.") from error
        return claims

    def _as_caller(self, claims: Mapping[str, Any]) -> Caller:
        names = self._names
        subject = claims["sub"]
        if not (0 < len(subject) <= LONGEST_SUBJECT and subject.isascii() and subject.isprintable()):
            raise Unauthenticated("This token's claim 'sub' is not valid.")
        workspaces = _read_names(claims, names.workspaces)
        if not workspaces:
            raise Forbidden(f"Your token opens no workspace: its claim {names.workspaces!r} names none.")
        rights = _read_names(claims, names.rights)
        return Caller(
            f"oidc:{subject}",
            None if EVERY_WORKSPACE in workspaces else workspaces,
            _read_names(claims, names.groups),
            frozenset(right for right in RIGHTS if right in rights),
        )

    async def _find_keys(self) -> KeySet:
        """Return the provider's keys; older ones where it does not answer. Raises `IdentityProviderUnavailable`."""
        keys = self._keys
        if keys is None or self._clock() - self._fetched_at >= FRESH_SECONDS:
            keys = await self._refetch(keys)
        return keys

    async def _refetch(self, known: KeySet | None) -> KeySet:
        """Fetch the keys, unless that was done a moment ago; where it fails, return those that are known.

        Raises `IdentityProviderUnavailable` where there are none.
        """
        async with self._fetching:
            if self._keys is known and self._clock() >= self._not_before:
                self._not_before = self._clock() + REFETCH_SECONDS
                try:
                    async with asyncio.timeout(FETCH_SECONDS):
                        self._keys = await self._fetch_keys()
                    self._fetched_at = self._clock()
                except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, *_HOSTILE) as error:
                    logger.warning("The keys of %s cannot be fetched: %s %s", self._issuer, type(error).__name__, error)
                    if self._keys is None:
                        # Nobody can sign in until they are there.
                        self._not_before = self._clock() + FETCH_SECONDS
        if self._keys is None:
            raise IdentityProviderUnavailable
        return self._keys

    async def _fetch_keys(self) -> KeySet:
        described = await self._fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if described["issuer"] != self._issuer:
            raise ValueError(f"it calls itself {described['issuer']!r}")
        address = str(described["jwks_uri"])
        if not is_safe_address(address):
            raise ValueError(f"its keys are at {address!r}, which is not https")
        keys = []
        for key in (await self._fetch(address))["keys"]:
            # Keys of other kinds, and for encryption, do not concern us.
            if key.get("kty") in _KEY_TYPES and key.get("use", "sig") == "sig":
                try:
                    keys.append(JWKRegistry.import_key(key))
                except (JoseError, *_HOSTILE) as error:
                    logger.warning("A key of %s cannot be used: %s", self._issuer, error)
        if not keys:
            raise ValueError("it has no key that can be used")
        return KeySet(keys)

    async def _fetch(self, address: str) -> Any:
        """Read a JSON document of bounded size. Redirects are not followed."""
        content = b""
        async with self._http.stream("GET", address, headers=_HEADERS) as response:
            if response.status_code != 200:
                raise ValueError(f"{address} answers {response.status_code}")
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > MOST_BYTES:
                    raise ValueError(f"{address} is too long")
        return json.loads(content)


def _read_names(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """Return the values of a claim; none where it is missing or of another type."""
    value: Any = claims.get(name)
    if value is None:
        value = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return frozenset(value.split())
    return frozenset(each for each in value if isinstance(each, str)) if isinstance(value, list) else frozenset()
