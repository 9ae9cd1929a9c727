"""Many runs replayed with one change."""

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.cli import replaying
from app.workbench.cli.replaying import ManyRuns
from app.workbench.explain.whatif import AT_ONCE, TrialParts
from app.workbench.explain.why import explain_run
from app.workbench.fleet.budget import Budget
from app.workbench.fleet.fleet import Fleet, make_variant
from app.workbench.fleet.fleet_journal import FleetJournal
from app.workbench.fleet.fleet_page import draw_report
from app.workbench.fleet.fleet_report import FleetReport
from app.workbench.replay.saved_run import SavedStep
from domain.errors import InputError, StateError
from domain.ports.models import ModelUsage
from domain.run_lists import RunFilter
from domain.scope import DEFAULT_SCOPE
from domain.state import STATE_VERSION
from tests.asking import JUDGE, LARGE, QUESTION, ask, with_models
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
    parrots = await ask(services, "What does the zoo in Lisbon charge for <img> parrots?")
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
    assert (strict["judge"], strict["better"], strict["worse"]) == ("verifier", 0, 2)
    page = draw_report(strict)
    assert all(run["standalone_question"] in page for run in (first, battery))
    assert "for &lt;img&gt; parrots" in page
    assert not re.search("<(img|script)|src=|href=|https?:", page)
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
        # Writing that ran ahead in vain is counted too.
        assert plan["unpriced_calls"] >= len(planned) == AT_ONCE + 2
        report = await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=1.0)
        # The first one runs alone, because nobody knows before what a run costs.
        assert report["not_tried"] == {"the budget cannot be kept: the price of mystery is not known": AT_ONCE + 1}


async def test_a_model_compares_answers_in_both_orders(settings: Settings) -> None:
    async with serve_openai() as server, open_services(with_models(settings, server)) as services:
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        await ask(services)
        server.behaviour.model_replies[LARGE] = "36 months [1]"
        variant = make_variant({"profile.rerank.keep": 1}, None)
        fleet = services.make_debugger().make_fleet(services.modes)
        plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)

        async def replay(budget: float) -> FleetReport:
            judge = services.models.chat.judge
            return await fleet.run(DEFAULT_SCOPE, plan, planned, variant, budget=budget, judge=judge)

        report = await replay(1.0)
        [row] = report["runs"]
        assert row["ending"] is not None
        assert (row["ending"]["answer"], row["judged"] and row["judged"]["now"]) == ("36 months [1]", "worse")
        assert (report["judge"], report["worse"], report["share_worse"]) == (JUDGE, 1, 1.0)
        assert 0 < (report["by_node"]["generate"]["cost"][1] or 0) < report["spent"]
        server.behaviour.model_replies[JUDGE] = '{"better": "second"}'
        contradicting = await replay(1.0)
        assert (contradicting["better"], contradicting["worse"]) == (0, 0)
        assert (await replay(1e-9))["not_tried"] == {"it may cost more than is left of the budget": 1}


@pytest.mark.usefixtures("library")
async def test_an_interrupted_replay_goes_on_from_its_journal(services: Services, tmp_path: Path) -> None:
    for number in range(3):
        await ask(services, f"How long is the warranty of the Falke in {2030 + number}?")
    variant = make_variant({"profile.rerank.keep": 1}, None)
    fleet = services.make_debugger().make_fleet(services.modes)
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
    file = tmp_path / "journal.jsonl"

    async def replay() -> FleetReport:
        return await fleet.run(DEFAULT_SCOPE, plan, planned, variant, journal=FleetJournal(file, change="keep=1"))

    whole = await replay()
    head, first, second, third = file.read_text().splitlines(keepends=True)
    file.write_text(head + first + second[:40] + "\n")
    resumed = await replay()
    assert (whole["resumed"], resumed["resumed"], resumed["tried"]) == (0, 1, 3)
    assert [row["ending"] for row in resumed["runs"]] == [row["ending"] for row in whole["runs"]]
    assert len(file.read_text().splitlines()) == 5
    # What a kill leaves: no line feed, and half of a character. A line separator within a row ends no row.
    file.write_bytes((head + first.replace("How long", "How\u2028long") + second[:40]).encode() + "ü".encode()[:1])
    assert (await replay())["resumed"] == 1
    assert (await replay())["resumed"] == 3
    assert third
    with pytest.raises(InputError, match="no journal of this work"):
        FleetJournal(file, change="keep=2")


@pytest.mark.usefixtures("library")
async def test_a_state_of_another_version_does_not_end_the_plan(services: Services) -> None:
    newer = await ask(services)
    await ask(services, "How long does the battery of the Amsel last?")
    debugger = services.make_debugger()

    class Reader:
        read_to_repeat = debugger.read_to_repeat

        async def read_end(self, workspace_id: str, thread_id: str, run_id: str) -> SavedStep:
            step = await debugger.read_end(workspace_id, thread_id, run_id)
            return replace(step, version=STATE_VERSION + (run_id == newer["run_id"]))

    states = services.runs.states
    trial = TrialParts(states.graph, services.modes, services.make_context().judges, services.make_context)
    fleet = Fleet(Reader(), services.runs.log, trial)
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, make_variant({"profile.rerank.keep": 1}, None))
    assert (plan["skipped"], len(planned)) == ({"saved by another version of askgraph": 1}, 1)
    with pytest.raises(StateError, match="wings"):
        await fleet.plan(DEFAULT_SCOPE, SINCE, make_variant({"profile.wings": 2}, None))


def test_what_a_run_may_cost_is_set_aside_before_it_begins() -> None:
    budget, used = Budget(1.0), [ModelUsage("m", 1, 1, 0.3)]
    with budget.reserve(0.6, used) as problem, budget.reserve(0.6, []) as refused:
        assert (problem, refused) == (None, "it may cost more than is left of the budget")
    with budget.reserve(0.1, []) as first, budget.reserve(0.1, []) as second, budget.reserve(0.1, []) as third:
        assert (first, second) == (None, None)
        assert third is not None, "the dearest so far has cost 0.3"
    assert budget.spent == 0.3


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
    fleet = services.make_debugger().make_fleet(services.modes)
    plan, planned = await fleet.plan(DEFAULT_SCOPE, SINCE, variant)
    assert (plan["begins"], plan["unaffected"]) == ({"retrieve": 1}, 1)
    report = await fleet.run(DEFAULT_SCOPE, plan, planned, variant)
    assert (report["changed"], report["runs"][0]["ending"]) == (1, row["ending"])
    again = await ask(services)
    facts = explain_run(await services.make_debugger().read(DEFAULT_SCOPE, again["run_id"]))["facts"]
    assert any(", revision 2 of 20" in fact["text"] for fact in facts)
    with pytest.raises(StateError, match="a change of its own"):
        make_variant({"profile.rerank.keep": 1}, None, search_anew=True)


@pytest.mark.usefixtures("library")
async def test_the_command_writes_page_and_journal_and_ends_with_1_past_its_limit(
    services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await ask(services)
    monkeypatch.setattr(replaying, "open_services", lambda settings: nullcontext(services))
    options = ManyRuns(
        since="1d", where=None, changes={"profile.grade.caveat": "1.0", "profile.grade.sufficient": "1.0"}, mode=None,
        profile=None, search_anew=False, budget=None, judge=False, dry_run=False, most_changed=None, most_worse=0.5,
        journal=tmp_path / "journal.jsonl", report=tmp_path / "report.html", upload=False, workspace="default",
        as_json=False,
    )  # fmt: skip
    assert await replaying.replay_many(options) == 1
    assert "0 better, 1 worse, by verifier" in capsys.readouterr().out
    assert QUESTION in (tmp_path / "report.html").read_text()
    assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == 2
    assert await replaying.replay_many(replace(options, most_worse=None, as_json=True)) == 0
    assert json.loads(capsys.readouterr().out)["resumed"] == 1
    with pytest.raises(StateError, match="say with --budget"):
        await replaying.replay_many(replace(options, judge=True))
    with pytest.raises(StateError, match="ASKGRAPH_MODEL_JUDGE"):
        await replaying.replay_many(replace(options, judge=True, budget=1.0))
