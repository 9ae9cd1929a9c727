"""The store of API keys."""

from typing import Protocol

from domain.people.access import ApiKey


class KeyStore(Protocol):
    """Keeps keys by the digest of their secret. Raises `DatabaseUnavailable`."""

    async def add(self, key: ApiKey, digest: bytes) -> None:
        """Store a new key."""
        ...

    async def find(self, digest: bytes) -> ApiKey | None:
        """Return the key, valid or not, and note that it is used, at most once a minute."""
        ...

    async def list(self) -> list[ApiKey]:
        """Return all keys, oldest first."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key for good. False where there is none."""
        ...

    async def is_empty(self) -> bool:
        """Return True until the first key is made."""
        ...
