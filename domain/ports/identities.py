"""An identity provider: its tokens, and signing in there."""

from dataclasses import dataclass
from typing import Protocol

from domain.people.access import Caller


class TokenVerifier(Protocol):
    """Knows callers by signed tokens, which are stored nowhere."""

    async def verify(self, token: str) -> Caller:
        """Return who holds the token.

        Raises `Unauthenticated` with what is wrong with it, `Forbidden` where it opens no workspace, and
        `IdentityProviderUnavailable`.
        """


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """What a browser keeps while its user signs in at the provider. Each part is random, of characters that need no
    escaping."""

    state: str
    """Comes back in the address: the answer belongs to this browser."""
    nonce: str
    """Comes back in the token: it was made for this sign-in."""
    verifier: str
    """The secret without which nobody can exchange the code for a token."""


class SignIn(Protocol):
    """Signs people in at an identity provider, by redirecting their browser."""

    async def begin(self, callback: str) -> tuple[str, SignInAttempt]:
        """Return the address to which to send the browser, which comes back to `callback`.

        Raises `IdentityProviderUnavailable`.
        """

    async def finish(self, attempt: SignInAttempt, callback: str, code: str, issuer: str | None) -> str:
        """Return the token for the code with which the browser came back. `issuer` is who sent it, if it says so.

        Raises `SignInFailed`, `Unauthenticated` and `IdentityProviderUnavailable`.
        """
