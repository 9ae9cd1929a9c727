"""The store of API keys."""

from typing import Protocol

from domain.people.access import ApiKey


class KeyStore(Protocol):
    """Keeps keys, and the sessions of browsers, by the digest of their secret. Raises `DatabaseUnavailable`."""

    async def add(self, key: ApiKey, digest: bytes) -> None:
        """Store a new key."""
        ...

    async def find(self, digest: bytes) -> ApiKey | None:
        """Return the key, valid or not, and note that it is used, at most once a minute."""
        ...

    async def list(self) -> list[ApiKey]:
        """Return all keys, oldest first."""
        ...

    async def change(self, key: ApiKey) -> bool:
        """Replace the name, rights, workspaces, groups and limits of the key with this id. False where there is none,
        or it was revoked."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key for good. False where there is none."""
        ...

    async def begin_session(self, digest: bytes) -> None:
        """Note that a browser has signed in. Its session lasts 30 days at most."""
        ...

    async def has_session(self, digest: bytes) -> bool:
        """Return True until the session is ended."""
        ...

    async def end_session(self, digest: bytes) -> None:
        """End a session for good."""
        ...

    async def is_empty(self) -> bool:
        """Return True until the first key is made."""
        ...
