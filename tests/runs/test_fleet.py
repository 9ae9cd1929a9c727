"""Many runs replayed with one change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.runs.fleet import FleetReport, make_variant
from app.runs.whatif import AT_ONCE
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import StateError
from domain.run_lists import RunFilter
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, with_models
from tests.conftest import HANDBOOK, MANUAL
from tests.wire.openai import serve_openai

SINCE = RunFilter(datetime.now(UTC) - timedelta(days=1), limit=100)


async def replay_all(services: Services, changes: dict[str, Any], mode: str | None = None) -> FleetReport:
    variant = make_variant(changes, mode)
    fleet = services.make_debugger().make_fleet(services.modes)
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
    return await fleet.run(DEFAULT_SCOPE, plan, planned, variant)


@pytest.mark.usefixtures("library")
async def test_runs_that_a_change_affects_are_replayed_from_there(services: Services) -> None:
    first = await ask(services)
    await ask(services)  # from the cache
    await ask(services, "Hello there!")
    battery = await ask(services, "How long does the battery of the Amsel last?")
    parrots = await ask(services, "What does the zoo in Lisbon charge for parrots?")
    before = await services.runs.log.list_thread("default", first["thread_id"])

    # What is erased between plan and replay has a row that says so.
    keep = make_variant({"profile.rerank.keep": 6}, None)
    fleet = services.make_debugger().make_fleet(services.modes)
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, keep)
    gone = replace(planned[0], summary=replace(planned[0].summary, run_id="gone"))
    report = await fleet.run(DEFAULT_SCOPE, plan, [gone, *planned[1:]], keep)
    assert (report["tried"], report["runs"][0]["run_id"]) == (2, "gone")
    assert report["not_tried"] == {"its steps could not be read any more (unknown_run)": 1}

    same = await replay_all(services, {"profile.rerank.keep": 6})
    assert same["plan"]["runs"] == 5
    assert (same["plan"]["affected"], same["plan"]["unaffected"]) == (3, 1)
    assert same["plan"]["skipped"] == {"from the cache": 1}
    assert same["plan"]["begins"] == {"rerank": 3}
    assert (same["tried"], same["changed"], same["not_tried"]) == (3, 0, {})

    strict = await replay_all(services, {"profile.grade.sufficient": 1.0, "profile.grade.caveat": 1.0})
    assert strict["plan"]["begins"] == {"after grade": 3}
    assert strict["flipped"]["outcome"] == 2
    assert strict["outcomes"] == {"answered → abstained": 2}
    assert set(strict["most_different"]) == {first["run_id"], battery["run_id"]}
    assert strict["share_changed"] == round(2 / 3, 4)
    assert {row["run_id"] for row in strict["runs"]} == {first["run_id"], battery["run_id"], parrots["run_id"]}
    assert (await replay_all(services, {}, "fast"))["tried"] == 3
    assert await services.runs.log.list_thread("default", first["thread_id"]) == before
    assert first["standalone_question"] == QUESTION
    with pytest.raises(StateError, match="only knobs"):
        make_variant({"confidence": 0.1}, None)
    with pytest.raises(StateError, match="Say what to change"):
        make_variant({}, None)


async def test_no_further_run_begins_where_a_price_is_not_known(settings: Settings) -> None:
    async with (
        serve_openai() as server,
        open_services(with_models(settings, server, model_large="openai:mystery")) as services,
    ):
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        for number in range(AT_ONCE + 2):
            await ask(services, f"How long is the warranty of the Falke in {2030 + number}?")
        variant = make_variant({"profile.rerank.keep": 1}, None)
        fleet = services.make_debugger().make_fleet(services.modes)
        plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
        assert plan["unpriced_calls"] == len(planned) == AT_ONCE + 2
        report = await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=1.0)
        assert report["not_tried"] == {"the budget cannot be kept: the price of mystery is not known": 2}
