"""The store of API keys, and counts of what callers use."""

from typing import Protocol

from domain.people.access import ApiKey
from domain.people.limits import FREE, Cost, Limits, Used


class KeyStore(Protocol):
    """Keeps keys, and the sessions of browsers, by the digest of their secret. Raises `DatabaseUnavailable`."""

    async def add(self, key: ApiKey, digest: bytes) -> None:
        """Store a new key."""

    async def find(self, digest: bytes) -> ApiKey | None:
        """Return the key, valid or not, and note that it is used, at most once a minute."""

    async def get(self, key_id: str) -> ApiKey | None:
        """Return the key with this id, valid or not."""

    async def list(self) -> list[ApiKey]:
        """Return all keys, oldest first."""

    async def change(self, key: ApiKey) -> bool:
        """Replace the name, rights, workspaces, groups and limits of the key with this id. False where there is none,
        or it was revoked."""

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key for good. False where there is none."""

    async def begin_session(self, digest: bytes) -> None:
        """Note that a browser has signed in. Its session lasts 30 days at most."""

    async def has_session(self, digest: bytes) -> bool:
        """Return True until the session is ended."""

    async def end_session(self, digest: bytes) -> None:
        """End a session for good."""

    async def is_empty(self) -> bool:
        """Return True until the first key is made."""


class UsageCounter(Protocol):
    """Counts what callers use, for all processes of a deployment.

    Never raises. Returns None while its server is away: answering does not depend on it.
    """

    async def count_request(self, caller: str, limits: Limits) -> tuple[bool, Used] | None:
        """Count a request, unless this minute has had as many as the limits allow: then False. With what the caller has
        used by now."""

    async def begin_run(
        self, caller: str, run_id: str | None, limits: Limits, expected: Cost = FREE
    ) -> tuple[bool, Used] | None:
        """Count a run, and what it is expected to cost, until it ends, unless the limits allow none: then False. None:
        only look."""

    async def end_run(self, caller: str, run_id: str, tokens: int, dollars: float) -> None:
        """Count the run no more, and what it has cost. A run that never ends is counted for a quarter of an hour."""
