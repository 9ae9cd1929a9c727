"""Every operation of the API and of every dialect, with every kind of credential that must not do, by real keys."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import pytest_asyncio

from app.access.keys import make_key
from app.serving.application import make_app
from app.wiring.services import Services
from domain.people.access import RIGHTS, ApiKey
from tests.api.test_matrix import ENDPOINTS, IN_A_WORKSPACE, NAMES, Service, never
from tests.http_client import open_client

pytestmark = pytest.mark.asyncio(loop_scope="module")

KINDS = ("no key", "wrong", "expired", "revoked", "other workspace", "ask-only")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def keyed(module_services: Services) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, str | None]]]:
    """A client without a key, and a credential of each kind."""
    services = module_services
    await services.library.ingestion.add("mine", "lawn.md", b"# Lawn\n\nThe lawn is mown on Tuesdays.")

    async def make(**options: Any) -> tuple[str, str]:
        wanted = replace(ApiKey("", "test", RIGHTS, frozenset({"mine"})), **options)
        key, token = await make_key(services.keys, wanted)
        return key.key_id, token

    revoked, of_revoked = await make()
    await services.keys.revoke(revoked)
    soon = datetime.now(UTC) + timedelta(milliseconds=50)
    credentials = {
        "no key": None,
        "wrong": f"{of_revoked[:-4]}abcd",
        "expired": (await make(expires_at=soon))[1],
        "revoked": of_revoked,
        "other workspace": (await make(workspaces=frozenset({"theirs"})))[1],
        "ask-only": (await make(rights=frozenset({"ask"})))[1],
    }
    await asyncio.sleep(0.1)
    async with open_client(make_app(services)) as client:
        yield client, credentials


async def test_no_credential_that_must_not_do_does(
    keyed: tuple[httpx.AsyncClient, dict[str, str | None]],
) -> None:
    client, credentials = keyed
    counts: dict[str, Counter[int]] = {kind: Counter() for kind in KINDS}
    wrong: list[tuple[str, str, int]] = []
    for name in NAMES:
        needed = ENDPOINTS[name].instead | {ENDPOINTS[name].right}
        for kind in KINDS:
            credential = credentials[kind]
            client.headers = httpx.Headers({} if credential is None else {"Authorization": f"Bearer {credential}"})
            status, _ = await Service(client, {}, {}).send(name, never(), "mine")
            counts[kind][status] += 1
            match kind:
                case "ask-only":
                    as_meant = (status == 403) == ("ask" not in needed) and status != 401
                case "other workspace":
                    # Figures of all workspaces are for keys of all workspaces.
                    as_meant = status == 404 if name in IN_A_WORKSPACE else status != 401
                case _:
                    as_meant = status == 401
            if not as_meant:
                wrong.append((kind, name, status))
    print(f"\n{len(NAMES)} operations x {len(KINDS)} credentials = {len(NAMES) * len(KINDS)} requests")
    for kind, seen in counts.items():
        print(f"{kind:>16}: {', '.join(f'{status} x {count}' for status, count in sorted(seen.items()))}")
    assert wrong == []
