"""Makes API keys and recognises them."""

import hashlib
import secrets
from dataclasses import replace
from datetime import UTC, datetime

from domain.errors import InputError, NameTaken
from domain.people.access import ApiKey
from domain.people.names import find_twin
from domain.ports.keys import KeyStore
from domain.text.durations import parse_span

PREFIX = "ask_"
"""Every key begins like this, so that scanners for leaked secrets can find it."""


def digest_key(token: str) -> bytes:
    """Return the digest by which a key is stored.

    A plain SHA-256 is enough: a key is 256 random bits, which no list of likely passwords holds, and a slow hash would
    only slow down every request.
    """
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def read_expiry(span: str | None) -> datetime | None:
    """Return when a key's life of this span, such as `90d`, ends; None: never. Raises `InputError`."""
    if span is None:
        return None
    if not (length := parse_span(span)):
        raise InputError(f"{span!r} is no span. Give one in h, d or w, such as 90d.")
    return datetime.now(UTC) + length


async def check_name(keys: KeyStore, wanted: ApiKey) -> None:
    """Raise `NameTaken` where people would take the key's name for another one's that is in use. Equal names are fine:
    so keys are replaced."""
    now = datetime.now(UTC)
    names = [key.name for key in await keys.list() if key.is_valid(now) and key.key_id != wanted.key_id]
    if wanted.name not in names and (twin := find_twin(wanted.name, names)):
        raise NameTaken(f"{wanted.name!r} looks like {twin!r}, the name of another key. Write it as there, or choose.")


async def make_key(keys: KeyStore, wanted: ApiKey) -> tuple[ApiKey, str]:
    """Store a new key like the wanted one, whose id is given here. Returns it and its secret, which is kept nowhere.

    Raises `NameTaken` where people would take the name for another key's, and `DatabaseUnavailable`.
    """
    await check_name(keys, wanted)
    token = PREFIX + secrets.token_urlsafe(32)
    key = replace(wanted, key_id=secrets.token_hex(4))
    await keys.add(key, digest_key(token))
    return key, token
