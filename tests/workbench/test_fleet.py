"""Many runs replayed with one change."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.explain.whatif import AT_ONCE
from app.workbench.explain.why import explain_run
from app.workbench.fleet.fleet import make_variant
from app.workbench.fleet.report import FleetReport
from app.workbench.replay.saved_run import SavedStep
from domain.errors import BudgetSpent, StateError
from domain.history.run_lists import RunFilter
from domain.people.access import Caller
from domain.people.limits import Limits
from domain.scope import DEFAULT_SCOPE
from domain.state import STATE_VERSION
from tests.asking import LARGE, QUESTION, ask, list_thread, serve_models, with_models
from tests.conftest import DOCUMENTS, HANDBOOK, MANUAL
from tests.wire.openai import serve_openai

SINCE = RunFilter(datetime.now(UTC) - timedelta(days=1), limit=100)


async def replay_all(services: Services, changes: dict[str, Any], mode: str | None = None) -> FleetReport:
    variant = make_variant(changes, mode)
    fleet = services.make_debugger().make_fleet()
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
    return await fleet.run(DEFAULT_SCOPE, plan, planned, variant)


@pytest.mark.usefixtures("library")
async def test_runs_that_a_change_affects_are_replayed_from_there(services: Services) -> None:
    first = await ask(services)
    await ask(services)  # from the cache
    await ask(services, "Hello there!")
    battery = await ask(services, "How long does the battery of the Amsel last?")
    parrots = await ask(services, "What does the zoo in Lisbon charge for parrots?")
    before = await list_thread(services, first["thread_id"])

    # What is erased between plan and replay has a row that says so.
    keep = make_variant({"profile.rerank.keep": 6}, None)
    fleet = services.make_debugger().make_fleet()
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
    assert strict["outcomes"] == {"answered → showed_passages": 2}
    assert {row["run_id"] for row in strict["runs"][:2]} == {first["run_id"], battery["run_id"]}
    assert strict["share_changed"] == round(2 / 3, 4)
    assert {row["run_id"] for row in strict["runs"]} == {first["run_id"], battery["run_id"], parrots["run_id"]}
    assert (await replay_all(services, {}, "fast"))["tried"] == 3
    assert await list_thread(services, first["thread_id"]) == before
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
        fleet = services.make_debugger().make_fleet()
        plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
        assert plan["unpriced_calls"] == len(planned) == AT_ONCE + 2
        report = await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=1.0)
        # The first one runs alone, because nobody knows before what a run costs.
        assert report["not_tried"] == {"the budget cannot be kept: the price of mystery is not known": AT_ONCE + 1}


async def test_a_run_begins_only_while_what_it_may_cost_is_left(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        await ask(services)
        await ask(services, "How long does the battery of the Amsel last?")
        server.behaviour.model_replies[LARGE] = "36 months [1]"
        variant = make_variant({"profile.rerank.keep": 1}, None)
        fleet = services.make_debugger().make_fleet()
        plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
        report = await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=1.0)
        # Of the Amsel no source says it.
        answers = {row["ending"]["answer"] for row in report["runs"] if row["ending"]}
        assert answers == {"36 months [1]", "36 months [1]\n\nNo source was found for “36 months”."}
        assert report["spent"] == pytest.approx(sum(row["cost"] for row in report["runs"]), abs=1e-5)
        assert report["spent"] > 0
        dear = "it may cost more than is left of the budget"
        refused = await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=1e-9)
        assert refused["not_tried"] == {dear: 2}
        half = await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=planned[0].repeated_cost + 1e-9)
        assert (half["tried"], half["not_tried"]) == (1, {dear: 1})
        # Nor does a run begin when the caller's own budget of the day is spent.
        asked, caller = len(server.requests), Caller("ann", limits=Limits(tokens_per_day=1))
        with pytest.raises(BudgetSpent):
            async for _ in services.make_debugger().replay_many(
                DEFAULT_SCOPE, SINCE, variant, budget=1.0, caller=caller
            ):
                pass
        assert len(server.requests) == asked + 1


@pytest.mark.usefixtures("library")
async def test_a_state_of_another_version_does_not_end_the_plan(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = await ask(services)
    await ask(services, "How long does the battery of the Amsel last?")
    debugger = services.make_debugger()
    read_end = debugger.read_end

    async def read(workspace_id: str, thread_id: str, run_id: str) -> SavedStep:
        step = await read_end(workspace_id, thread_id, run_id)
        return replace(step, version=STATE_VERSION + (run_id == newer["run_id"]))

    monkeypatch.setattr(debugger, "read_end", read)
    fleet = debugger.make_fleet()
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, make_variant({"profile.rerank.keep": 1}, None))
    assert (plan["skipped"], len(planned)) == ({"saved by another version of askgraph": 1}, 1)
    with pytest.raises(StateError, match="wings"):
        await fleet.plan(DEFAULT_SCOPE, SINCE, make_variant({"profile.wings": 2}, None))


@pytest.mark.usefixtures("library")
async def test_a_document_that_was_replaced_is_found_by_searching_anew(services: Services) -> None:
    done = await ask(services)
    await ask(services, "Hello there!")
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK.replace(b"36 months", b"48 months"))
    tried = await services.make_debugger().try_variants(DEFAULT_SCOPE, done["run_id"])
    [row] = [each for each in tried["outcomes"] if each["kind"] == "documents"]
    assert row["ending"] is not None
    assert row["compared"] is not None
    assert ("48 months" in row["ending"]["answer"], "answer" in row["compared"]["flipped"]) == (True, True)
    assert row["replay"] == f"askgraph replay {done['run_id']} --from retrieve"

    variant = make_variant({}, None, search_anew=True)
    fleet = services.make_debugger().make_fleet()
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
    assert (plan["begins"], plan["unaffected"]) == ({"retrieve": 1}, 1)
    report = await fleet.run(DEFAULT_SCOPE, plan, planned, variant)
    assert (report["changed"], report["runs"][0]["ending"]) == (1, row["ending"])
    again = await ask(services)
    facts = explain_run(await services.make_debugger().read(DEFAULT_SCOPE, again["run_id"]))["facts"]
    assert any(", revision 2 of 20" in fact["text"] for fact in facts)
    with pytest.raises(StateError, match="a change of its own"):
        make_variant({"profile.rerank.keep": 1}, None, search_anew=True)
