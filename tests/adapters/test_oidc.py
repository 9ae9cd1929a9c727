"""Tokens of an OpenID Connect provider, from a real one on loopback."""

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
import pytest_asyncio
from joserfc.jwk import ECKey, RSAKey
from starlette.responses import JSONResponse, RedirectResponse, Response

from app.adapters.oidc import provider as oidc
from app.adapters.oidc.tokens import Claims, OidcTokens
from domain.errors import AskgraphError, Forbidden, IdentityProviderUnavailable, Unauthenticated
from domain.people.access import Caller
from tests.wire.oidc import AUDIENCE, OidcProvider, make_key, serve_oidc


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with serve_oidc() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture
async def tokens(provider: OidcProvider, clock: Clock) -> AsyncIterator[OidcTokens]:
    async with aclosing(oidc.OidcProvider(provider.issuer, clock=clock)) as asked:
        yield OidcTokens(asked, [AUDIENCE], Claims(rights="realm_access.roles"))


async def test_a_token_says_who_may_do_what_where(provider: OidcProvider, tokens: OidcTokens) -> None:
    roles = {"realm_access": {"roles": ["ask", "ingest", "offline_access"]}}
    mine = provider.sign(workspaces="default legal", groups=["board"], aud=["other", AUDIENCE], **roles)
    assert await tokens.verify(mine) == Caller(
        "oidc:ann", frozenset({"default", "legal"}), frozenset({"board"}), frozenset({"ask", "ingest"})
    )
    assert await tokens.verify(provider.sign(workspaces=["*"])) == Caller("oidc:ann", None, frozenset(), frozenset())
    rsa = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
    provider.keys.insert(0, rsa)
    tokens._provider._not_before = 0
    for alg in ("RS256", "PS256"):
        assert (await tokens.verify(provider.sign_with(rsa, alg))).name == "oidc:ann"
    with pytest.raises(Forbidden, match="opens no workspace: its claim 'workspaces' names none"):
        await tokens.verify(provider.sign(workspaces={"legal": True}))


def encode(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def forge_with_the_public_key(provider: OidcProvider) -> str:
    """Use the public key, which everybody knows, as the secret of a symmetric signature."""
    [key] = provider.keys
    assert isinstance(key, ECKey)
    signed = f"{encode({'alg': 'HS256', 'kid': key.kid})}.{encode(provider.make_claims())}"
    signature = hmac.digest(key.as_pem(private=False), signed.encode(), "sha256")
    return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def change(provider: OidcProvider) -> str:
    header, _, signature = provider.sign().split(".")
    return f"{header}.{encode(provider.make_claims() | {'sub': 'eve'})}.{signature}"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: p.sign(exp=int(time.time()) - 61), "has expired"),
        (lambda p: p.sign(exp=None), "lacks the claim 'exp'"),
        (lambda p: p.sign(exp="soon"), "claim 'exp' is not valid"),
        (lambda p: p.sign(nbf=int(time.time()) + 120), "not valid yet"),
        (lambda p: p.sign(iss="https://evil.example"), "of another issuer"),
        (lambda p: p.sign(aud="billing"), "meant for another audience"),
        (lambda p: p.sign(aud=None), "lacks the claim 'aud'"),
        (lambda p: p.sign(sub=None), "lacks the claim 'sub'"),
        (lambda p: p.sign(sub="x" * 256), "claim 'sub' is not valid"),
        (lambda p: p.sign(sub="ann\n"), "claim 'sub' is not valid"),
        (lambda p: f"{encode({'alg': 'none'})}.{p.sign().split('.')[1]}.", "signed by a method"),
        (forge_with_the_public_key, "signed by a method"),
        (change, "This token is not valid"),
        (lambda p: p.sign_with(make_key("first"), "ES256"), "This token is not valid"),
        (lambda p: p.sign_with(make_key("unknown"), "ES256"), "a key that its issuer does not have"),
        (lambda _: "a.b.c", "This token is not valid"),
        (lambda _: f"{encode([1])}.{encode(1)}.x", "This token is not valid"),
        (lambda _: f"{encode({'alg': 7, 'kid': {}})}.{encode(1)}.x", "This token"),
        (lambda _: f"{base64.urlsafe_b64encode(b'[' * 500).decode()}.e30.x", "This token is not valid"),
    ],
)
async def test_a_token_that_is_not_valid_is_refused_with_what_is_wrong(
    provider: OidcProvider, tokens: OidcTokens, make: Callable[[OidcProvider], str], says: str
) -> None:
    with pytest.raises(Unauthenticated, match=says):
        await tokens.verify(make(provider))


async def test_a_minute_between_clocks_is_forgiven(provider: OidcProvider, tokens: OidcTokens) -> None:
    now = int(time.time())
    await tokens.verify(provider.sign(exp=now - 50))
    await tokens.verify(provider.sign(nbf=now + 50, iat=now + 50))


async def test_new_keys_are_fetched_when_a_token_needs_them_once_a_minute(
    provider: OidcProvider, tokens: OidcTokens, clock: Clock
) -> None:
    old = provider.sign()
    await tokens.verify(old)
    provider.rotate()
    for _ in range(3):
        with pytest.raises(Unauthenticated, match="key that its issuer does not have"):
            await tokens.verify(provider.sign())
    assert provider.fetched == 1
    clock.now += oidc.REFETCH_SECONDS
    await tokens.verify(provider.sign())
    assert provider.fetched == 2
    with pytest.raises(Unauthenticated, match="key that its issuer does not have"):
        await tokens.verify(old)
    # Withdrawn keys end, though no token names a new one; and a provider that is away withdraws none.
    provider.keys.append(make_key("next"))
    provider.fault = JSONResponse({}, 500)
    clock.now += oidc.FRESH_SECONDS
    current = provider.sign_with(provider.keys[0], "ES256")
    await tokens.verify(current)
    provider.fault, provider.keys = None, provider.keys[1:]
    clock.now += oidc.REFETCH_SECONDS
    with pytest.raises(Unauthenticated):
        await tokens.verify(current)


@pytest.mark.parametrize(
    ("discovery", "fault"),
    [
        ({"issuer": "https://evil.example"}, None),
        ({"jwks_uri": "http://evil.example/keys"}, None),
        ({"jwks_uri": 7}, None),
        ({}, JSONResponse({}, 404)),
        ({}, RedirectResponse("http://127.0.0.1:1/")),
        ({}, Response("<html>")),
        ({}, JSONResponse({"keys": 1})),
        ({}, JSONResponse({"keys": [{"kty": "RSA"}]})),
        ({}, JSONResponse([])),
        ({}, JSONResponse({"keys": ["x" * oidc.MOST_BYTES]})),
    ],
)
async def test_a_provider_that_cannot_be_used_is_asked_again_later(
    provider: OidcProvider, tokens: OidcTokens, clock: Clock, discovery: dict[str, Any], fault: Response | None
) -> None:
    provider.discovery, provider.fault = discovery, fault
    for _ in range(2):
        with pytest.raises(IdentityProviderUnavailable):
            await tokens.verify(provider.sign())
    provider.discovery, provider.fault = {}, None
    with pytest.raises(IdentityProviderUnavailable):
        await tokens.verify(provider.sign())
    clock.now += oidc.FETCH_SECONDS
    assert (await tokens.verify(provider.sign())).name == "oidc:ann"


async def test_keys_of_other_kinds_do_not_matter(provider: OidcProvider, tokens: OidcTokens) -> None:
    signing = provider.keys[-1].as_dict(private=False)
    others = [
        {"kty": "AKP", "kid": "a"},
        {"kty": "EC", "crv": "none", "kid": "b"},
        {"kty": "oct", "k": "eA", "kid": "c"},
    ]
    provider.fault = JSONResponse({"keys": [*others, signing]})
    await tokens.verify(provider.sign())
    with pytest.raises(AskgraphError):
        await tokens.verify(provider.sign_with(make_key("c"), "ES256"))


async def test_a_provider_that_is_away_is_said(clock: Clock) -> None:
    async with aclosing(oidc.OidcProvider("http://127.0.0.1:1", clock=clock)) as away:
        with pytest.raises(IdentityProviderUnavailable):
            await OidcTokens(away, [AUDIENCE], Claims()).verify("a.b.c")
