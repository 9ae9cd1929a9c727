"""What an OpenID Connect provider says of itself, and its keys.

They are fetched when the first token or sign-in comes, and again when a token names a key that is not among them, at
most once a minute, however many invented tokens are sent.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, KeySet

from app.adapters.fetching import fetch, new_client
from app.support.addresses import is_safe_address
from domain.errors import DocumentError, IdentityProviderUnavailable
from domain.health import Diagnosis

logger = logging.getLogger("askgraph.sign_in")

LEEWAY_SECONDS = 60
"""How far the clocks of the provider and of this machine may be apart."""
REFETCH_SECONDS = 60.0
"""The keys are not fetched again before, whatever tokens say."""
FRESH_SECONDS = 3600.0
"""The keys are fetched again after, so that one that the provider has withdrawn ends."""
FETCH_SECONDS = 5.0
MOST_BYTES = 256_000

HOSTILE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""What joserfc and reading JSON raise, besides joserfc's own errors, for what has wrong types."""
UNUSABLE = (httpx.HTTPError, httpx.InvalidURL, TimeoutError, DocumentError, *HOSTILE)
"""What asking the provider raises."""

_KEY_TYPES = {"RSA", "EC", "OKP"}


@dataclass(frozen=True, slots=True)
class Described:
    """What the provider says of itself."""

    metadata: Mapping[str, Any]
    """Its discovery document."""
    keys: KeySet

    def find_endpoint(self, name: str) -> str:
        """Return the address of an endpoint. Raises `ValueError` where there is none that can be used."""
        address = self.metadata.get(name)
        if not isinstance(address, str) or not is_safe_address(address):
            raise ValueError(f"its {name} is {address!r}, which is not https")
        return address


class OidcProvider:
    """A provider. Belongs to one process."""

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer = issuer
        self._clock = clock
        self._http = new_client(seconds=FETCH_SECONDS)
        self._described: Described | None = None
        self._fetched_at = self._not_before = float("-inf")
        self._fetching = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def describe(self) -> Described:
        """Return what is known; what was known before where it does not answer.

        Raises `IdentityProviderUnavailable`.
        """
        described = self._described
        if described is None or self._clock() - self._fetched_at >= FRESH_SECONDS:
            described = await self.describe_again(described)
        return described

    async def describe_again(self, known: Described | None) -> Described:
        """Fetch it, unless that was done a moment ago; where it fails, return what is known.

        Raises `IdentityProviderUnavailable` where nothing is.
        """
        async with self._fetching:
            if self._described is known and self._clock() >= self._not_before:
                self._not_before = self._clock() + REFETCH_SECONDS
                try:
                    self._described = await self._fetch()
                    self._fetched_at = self._clock()
                except UNUSABLE as error:
                    logger.warning("The keys of %s cannot be fetched: %s %s", self.issuer, type(error).__name__, error)
                    if self._described is None:
                        # Nobody can sign in until they are there.
                        self._not_before = self._clock() + FETCH_SECONDS
        if self._described is None:
            raise IdentityProviderUnavailable
        return self._described

    async def examine(self, *, signs_in: bool) -> Diagnosis:
        """Examine whether it can be used; if `signs_in`, by people on the page as well. Fetches in every case."""
        part = "identity provider"
        try:
            described = await self._fetch()
            if signs_in:
                for endpoint in ("authorization_endpoint", "token_endpoint"):
                    described.find_endpoint(endpoint)
        except UNUSABLE as error:
            return Diagnosis(
                part,
                f"{self.issuer} cannot be used: {error or type(error).__name__}",
                "Check ASKGRAPH_OIDC_ISSUER, and that this machine reaches it: below it lies "
                "/.well-known/openid-configuration.",
            )
        return Diagnosis(part, f"{self.issuer} answers, and has keys")

    async def post(self, address: str, form: Mapping[str, str], auth: httpx.BasicAuth | None) -> tuple[int, Any]:
        """Send a form to one of its endpoints. Returns status and JSON. Raises one of `UNUSABLE`."""
        async with asyncio.timeout(FETCH_SECONDS):
            status, content = await self._read("POST", address, data=dict(form), auth=auth)
        return status, json.loads(content)

    async def _fetch(self) -> Described:
        async with asyncio.timeout(FETCH_SECONDS):
            metadata = await self._get(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if metadata["issuer"] != self.issuer:
                raise ValueError(f"it calls itself {metadata['issuer']!r}")
            address = str(metadata["jwks_uri"])
            if not is_safe_address(address):
                raise ValueError(f"its keys are at {address!r}, which is not https")
            listed = await self._get(address)
        keys = []
        for key in listed["keys"]:
            # Keys of other kinds, and for encryption, do not concern us.
            if key.get("kty") in _KEY_TYPES and key.get("use", "sig") == "sig":
                try:
                    keys.append(JWKRegistry.import_key(key))
                except (JoseError, *HOSTILE) as error:
                    logger.warning("A key of %s cannot be used: %s", self.issuer, error)
        if not keys:
            raise ValueError("it has no key that can be used")
        return Described(metadata, KeySet(keys))

    async def _get(self, address: str) -> Any:
        """Read a JSON document."""
        status, content = await self._read("GET", address)
        if status != 200:
            raise ValueError(f"{address} answers {status}")
        return json.loads(content)

    async def _read(self, method: str, address: str, **options: Any) -> tuple[int, bytes]:
        """Read status and body, which is bounded. Redirects are not followed."""
        options |= {"headers": {"Accept": "application/json"}, "reads": lambda _: True}
        answer = await fetch(self._http, address, MOST_BYTES, method=method, **options)
        return answer.status, answer.body
