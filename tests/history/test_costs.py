"""What answering has cost, asked from the outside."""

from datetime import UTC, datetime, timedelta

import pytest

from app.history.costs import parse_since, read_costs
from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import open_services
from domain.errors import InputError
from tests.asking import ask
from tests.conftest import HANDBOOK
from tests.http_client import open_client
from tests.wire.openai import serve_openai

MOMENT = timedelta(seconds=5)


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("30m", timedelta(minutes=30)),
        ("24h", timedelta(days=1)),
        (" 7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
    ],
)
def test_a_span_counts_back_from_now(text: str, span: timedelta) -> None:
    assert abs(datetime.now(UTC) - span - parse_since(text)) < MOMENT


def test_a_date_is_utc_where_it_does_not_say_otherwise() -> None:
    assert parse_since("2026-11-01") == datetime(2026, 11, 1, tzinfo=UTC)
    assert parse_since("2026-11-01T12:00:00+02:00") == datetime(2026, 11, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "7", "7 days", "-7d", "999999w", "tomorrow", "2026-13-01", "0x7d"])
def test_an_invalid_start_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"is no time.*7d"):
        parse_since(text)


async def test_the_log_holds_what_the_readers_were_told(settings: Settings) -> None:
    async with serve_openai() as server:
        connected = settings.model_copy(update={"openai_base_url": server.base_url})
        async with open_services(connected) as services:
            await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
            done = [await ask(services, "How long is the warranty of the Falke?") for _ in range(2)]
            report = await read_costs(services.runs.log, None, parse_since("1h"), "node")
            days = await read_costs(services.runs.log, None, parse_since("1h"), "day")
            async with open_client(make_app(services)) as client:
                modes = {each["name"]: each for each in (await client.get("/api/modes")).json()["modes"]}
    assert [one["cached"] for one in done] == [False, True]
    usage = done[0]["usage"]
    assert {spent["name"] for spent in report["costs"]} == {used["node"] for used in usage} | {None}
    assert days["total"] == report["total"]
    assert {len(spent["name"]) for spent in days["costs"]} == {len("2026-11-01")}
    # A question is what was asked of a model, not what came from the cache.
    assert modes["standard"]["dollars"] == pytest.approx(done[0]["cost"], abs=1e-5)
    assert (modes["fast"]["dollars"], modes["fast"]["most_dollars"]) == (None, 0.05)
    total = report["total"]
    assert (total["runs"], total["cached"], total["calls"]) == (2, 1, sum(used["calls"] for used in usage))
    assert total["input_tokens"] == sum(used["input_tokens"] for used in usage) > 0
    assert total["cost"] == pytest.approx(done[0]["cost"], abs=1e-5)
