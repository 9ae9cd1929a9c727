"""Tokens of an OpenID Connect provider.

joserfc, which takes 0.1 s to import with what it needs, is imported in this package only: import it where a provider is
configured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import (
    ExpiredTokenError,
    InvalidClaimError,
    InvalidKeyIdError,
    JoseError,
    MissingClaimError,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from app.adapters.oidc.provider import HOSTILE, LEEWAY_SECONDS, OidcProvider
from domain.errors import Forbidden, Unauthenticated
from domain.people.access import RIGHTS, Caller

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""Asymmetric ones only. With a symmetric one, the provider's public key would be the secret that signs."""

LONGEST_SUBJECT = 255
"""The longest that the standard allows, which also wants ASCII."""
EVERY_WORKSPACE = "*"

_REASONS = {
    "iss": "This token is of another issuer.",
    "aud": "This token is meant for another audience, not for this service.",
    "azp": "This token was given to another client.",
    "nbf": "This token is not valid yet.",
    "iat": "This token is of the future.",
    "nonce": "This token is of another sign-in.",
}


@dataclass(frozen=True, slots=True)
class Claims:
    """Names of the claims that say what a token's holder may do. Dots lead into objects: `realm_access.roles`. Each
    holds a list, or a text with spaces between its parts."""

    workspaces: str = "workspaces"
    groups: str = "groups"
    rights: str = "scope"


class OidcTokens:
    """Implements `domain.ports.identities.TokenVerifier`."""

    def __init__(self, provider: OidcProvider, audiences: Sequence[str], claims: Claims) -> None:
        """`audiences` are the names of this service in tokens, of which a token has to have one."""
        self._provider = provider
        self._names = claims
        self._jws = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        self._rules = self._make_rules(audiences)

    async def verify(self, token: str) -> Caller:
        return self._as_caller(await self._check(token, self._rules))

    async def verify_id_token(self, token: str, client_id: str, nonce: str) -> None:
        """Check that the provider gave this token to this client for this sign-in.

        Raises `Unauthenticated` and `IdentityProviderUnavailable`.
        """
        more: dict[str, Any] = {"nonce": {"essential": True, "value": nonce}, "azp": {"value": client_id}}
        await self._check(token, self._make_rules([client_id], **more))

    def _make_rules(self, audiences: Sequence[str], **more: Any) -> jwt.JWTClaimsRegistry:
        return jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self._provider.issuer},
            aud={"essential": True, "values": list(audiences)},
            exp={"essential": True},
            sub={"essential": True},
            **more,
        )

    async def _check(self, token: str, rules: jwt.JWTClaimsRegistry) -> dict[str, Any]:
        """Return the claims of a token. Raises `Unauthenticated` and `IdentityProviderUnavailable`."""
        described = await self._provider.describe()
        try:
            return self._decode(token, described.keys, rules)
        except InvalidKeyIdError:
            described = await self._provider.describe_again(described)
        try:
            return self._decode(token, described.keys, rules)
        except InvalidKeyIdError as error:
            raise Unauthenticated("This token is signed with a key that its issuer does not have.") from error

    def _decode(self, token: str, keys: KeySet, rules: jwt.JWTClaimsRegistry) -> dict[str, Any]:
        """Check signature and claims. Raises `InvalidKeyIdError` for an unknown key, and `Unauthenticated`."""
        try:
            claims = jwt.decode(token, keys, registry=self._jws).claims
            rules.validate(claims)
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
        except (JoseError, *HOSTILE) as error:
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
            until=claims["exp"],
        )


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
