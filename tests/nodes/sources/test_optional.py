"""A query that a step can do without, and that does not answer in time."""

import pytest

from app.adapters.postgres.pool import Session, open_pool, open_session
from nodes.context import Ledger
from nodes.sources import optional


async def test_a_query_that_does_not_answer_in_time_is_replaced_by_the_default(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optional, "TIMEOUT_SECONDS", 0.1)
    ledger = Ledger()

    async def sleep(session: Session) -> str:
        await session.execute("SELECT pg_sleep(60)")
        return "came"

    async with open_pool(database_url, max_size=2) as pool:
        async with open_session(pool, "a") as session:
            assert await optional.query_or_default(sleep(session), "default", ledger, "Done without") == "default"
        async with open_session(pool, "a") as session:
            assert await session.fetch_one("SELECT 1 AS one") == {"one": 1}
    assert [warning.partition(":")[0] for warning in ledger.warnings] == ["Done without"]
