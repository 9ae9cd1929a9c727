"""Tokens of an identity provider."""

from typing import Protocol

from domain.access import Caller


class TokenVerifier(Protocol):
    """Knows callers by signed tokens, which are stored nowhere."""

    async def verify(self, token: str) -> Caller:
        """Return who holds the token.

        Raises `Unauthenticated` with what is wrong with it, `Forbidden` where it opens no workspace, and
        `IdentityProviderUnavailable`.
        """
        ...
