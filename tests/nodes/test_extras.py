"""An extra that does not come in time."""

import pytest

from app.adapters.postgres.pool import Session, open_pool, open_session
from nodes import extras
from nodes.context import Ledger


async def test_what_does_not_come_in_time_is_done_without(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "SECONDS", 0.1)
    ledger = Ledger()

    async def sleep(session: Session) -> str:
        await session.execute("SELECT pg_sleep(60)")
        return "came"

    async with open_pool(database_url, max_size=2) as pool:
        async with open_session(pool, "a") as session:
            assert await extras.have_or("otherwise", sleep(session), ledger, "Done without") == "otherwise"
        async with open_session(pool, "a") as session:
            assert await session.fetch_one("SELECT 1 AS one") == {"one": 1}
    assert ledger.warnings == ["Done without: The database did not answer. Try again in a moment."]
