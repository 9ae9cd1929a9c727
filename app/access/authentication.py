"""Finds out who sends a request."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from hmac import compare_digest

from app.access.keys import digest_key
from domain.errors import Unauthenticated
from domain.people.access import OWNER, ApiKey, Caller
from domain.ports.identities import TokenVerifier
from domain.ports.keys import KeyStore

TRUSTED_SECONDS = 2.0
"""Time for which a key is not looked up again. A revoked key works for as long in other processes, and the first key
that is made takes as long to close a service that was open."""
MOST_CACHED = 10_000
SESSION_END = "~"
"""Stands in a browser's cookie between its session and the key or token, which have none."""
DOTS_OF_TOKEN = 2
"""A signed token has three parts with dots between them; a key has none."""


class Authenticator:
    """Identifies callers by their key, or by a token of an identity provider. Belongs to one process."""

    def __init__(
        self,
        keys: KeyStore,
        *,
        local_token: str | None = None,
        tokens: TokenVerifier | None = None,
        always: bool = False,
        anonymous: Caller = OWNER,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`local_token` identifies the owner of the machine. Without `always` and `tokens`, everybody is `anonymous`
        until a key is made."""
        self._keys = keys
        self._local_token = local_token
        self._tokens = tokens
        self._is_closed = always or tokens is not None
        self._anonymous = anonymous
        self._clock = clock
        self._known: dict[bytes, tuple[float, ApiKey | None]] = {}
        self._sessions: dict[bytes, tuple[float, bool]] = {}
        self._asked_at = float("-inf")

    async def identify(self, credential: str | None) -> Caller:
        """Return the caller with this key or token, or with the owner's token. That of a browser names its session.

        Raises `Unauthenticated` where one is needed and is missing or not valid, `Forbidden` for a token that opens no
        workspace, `DatabaseUnavailable` and `IdentityProviderUnavailable`.
        """
        if credential is None:
            if await self._needs_credential():
                raise Unauthenticated
            return self._anonymous
        session, _, credential = credential.rpartition(SESSION_END)
        if session and not await self._has_session(digest_key(session)):
            if await self._needs_credential():
                raise Unauthenticated("You have signed out.")
            return self._anonymous
        if self._local_token is not None and compare_digest(digest_key(credential), digest_key(self._local_token)):
            return OWNER
        if self._tokens is not None and credential.count(".") == DOTS_OF_TOKEN:
            return await self._tokens.verify(credential)
        key = await self._find(digest_key(credential))
        if key is not None and key.is_valid(datetime.now(UTC)):
            return key.as_caller()
        if await self._needs_credential():
            raise Unauthenticated("This key is not known, has expired or was revoked.")
        return self._anonymous

    async def sign_in(self, credential: str) -> str:
        """Begin a session of a browser with this credential, and return what its cookie is to hold."""
        session = secrets.token_urlsafe(16)
        await self._keys.begin_session(digest_key(session))
        return f"{session}{SESSION_END}{credential}"

    async def sign_out(self, cookie: str) -> None:
        """End the session of a browser, which other processes know within `TRUSTED_SECONDS`."""
        session, _, _ = cookie.rpartition(SESSION_END)
        await self._keys.end_session(digest_key(session))
        self._sessions.pop(digest_key(session), None)

    async def _needs_credential(self) -> bool:
        """Return True once there is a key. One that was revoked counts: the service does not open again by itself."""
        if not self._is_closed and self._clock() - self._asked_at >= TRUSTED_SECONDS:
            self._is_closed = not await self._keys.is_empty()
            self._asked_at = self._clock()
        return self._is_closed

    async def _has_session(self, digest: bytes) -> bool:
        at, is_open = self._sessions.get(digest, (float("-inf"), False))
        if self._clock() - at >= TRUSTED_SECONDS:
            is_open = await self._keys.has_session(digest)
            if len(self._sessions) >= MOST_CACHED:
                self._sessions.clear()
            self._sessions[digest] = self._clock(), is_open
        return is_open

    async def _find(self, digest: bytes) -> ApiKey | None:
        at, key = self._known.get(digest, (float("-inf"), None))
        if self._clock() - at >= TRUSTED_SECONDS:
            key = await self._keys.find(digest)
            if len(self._known) >= MOST_CACHED:
                self._known.clear()
            self._known[digest] = self._clock(), key
        return key
