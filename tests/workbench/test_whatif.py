"""What would have changed the end of a run."""

from contextlib import AsyncExitStack

import pytest

from app.settings import Settings
from app.wiring.services import Services
from app.workbench.explain import whatif
from app.workbench.explain.whatif import Outcome, WhatIf
from domain.errors import StateError
from domain.events import Done
from domain.people.access import Caller
from domain.people.limits import Limits
from domain.scope import DEFAULT_SCOPE
from tests.asking import QUESTION, ask, list_thread, serve_models
from tests.conftest import DOCUMENTS


async def try_all(services: Services, done: Done, **options: object) -> WhatIf:
    return await services.make_debugger().try_variants(DEFAULT_SCOPE, done["run_id"], **options)  # type: ignore[arg-type]


def find(tried: WhatIf, label: str) -> Outcome:
    return next(each for each in tried["outcomes"] if each["label"].startswith(label))


def rank(outcome: Outcome) -> int:
    """What was tried and flips something comes first, what came to no ending last."""
    compared = outcome["compared"]
    return 2 if compared is None else 0 if compared["flipped"] else 1


@pytest.mark.usefixtures("library")
async def test_the_source_that_carries_the_answer_is_found(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    done = await ask(services, limit=2)
    before = await list_thread(services, done["thread_id"])
    tried = await try_all(services, done, sets=[{"question": "How long does the battery of the Falke last?"}])
    first = tried["outcomes"][0]
    assert (first["kind"], first["compared"]) == ("nothing", {"flipped": [], "gained": [], "lost": []})
    # On a busy machine a call may have been given up for want of time. It is made anew.
    saved = await services.make_debugger().read(DEFAULT_SCOPE, done["run_id"])
    assert first["made"] <= sum(call.cut for call in saved.require_tape().calls)
    ranks = [rank(each) for each in tried["outcomes"][1:]]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1}
    assert tried["flipping"] == ranks.count(0)
    without = find(tried, "without source 1, Station handbook")
    assert without["begins"] == "grade"
    assert without["compared"] is not None
    assert {"answer", "citations"} <= set(without["compared"]["flipped"])
    assert [place["name"] for place in without["compared"]["lost"]] == ["Station handbook › Warranty"]
    kept = find(tried, "profile.rerank.keep at its default, 5")
    assert (kept["node"], kept["after"]) == ("rerank", None)
    assert kept["replay"] == f"askgraph replay {done['run_id']} --from rerank --set profile.rerank.keep=5"
    other = find(tried, "question=")
    assert other["ending"] is not None
    assert "14 months" in other["ending"]["answer"]
    assert other["made"] > 0
    assert {each["kind"] for each in tried["outcomes"]} == {
        "nothing", "documents", "source", "grade", "keep", "fusion", "reranker", "mode", "default", "set"
    }  # fmt: skip
    # Nothing was stored.
    assert await list_thread(services, done["thread_id"]) == before
    monkeypatch.setattr(whatif, "TOTAL_SECONDS", 0.1)
    async with AsyncExitStack() as others:
        for _ in range(services.admission.preparing):
            await others.enter_async_context(services.admission.take_turn())
        waited = await try_all(services, done)
    assert {each["problem"] for each in waited["outcomes"]} == {"not tried: the time for all of them was over"}
    with pytest.raises(StateError, match="would change nothing"):
        await try_all(services, done, sets=[{"confidence": done["confidence"]}])
    with pytest.raises(StateError, match="A change of nothing"):
        await try_all(services, done, sets=[{}])
    with pytest.raises(StateError, match="answered from the cache"):
        await try_all(services, await ask(services, limit=2))


@pytest.mark.usefixtures("library")
async def test_a_threshold_that_was_set_wrong_is_named(services: Services) -> None:
    strict = services.modes["standard"].model_copy(
        update={"grade": services.modes["standard"].grade.model_copy(update={"sufficient": 0.99, "caveat": 0.98})}
    )
    services.modes["strict"] = strict.model_copy(update={"name": "strict"})  # type: ignore[index]
    done = await ask(services, mode="strict")
    assert done["outcome"] == "showed_passages"
    tried = await try_all(services, done)
    named = find(tried, "profile.grade.sufficient at its default, 0.6 instead of 0.99")
    assert named["ending"] is not None
    assert "36 months" in named["ending"]["answer"]
    assert named["begins"] == "after grade"


async def test_a_model_is_asked_only_where_that_is_wanted(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        done = await ask(services, QUESTION)
        asked = len(server.requests)
        tried = await try_all(services, done)
        assert len(server.requests) == asked
        assert tried["outcomes"][0]["compared"] == {"flipped": [], "gained": [], "lost": []}
        ranks = [rank(each) for each in tried["outcomes"][1:]]
        assert ranks == sorted(ranks)
        assert {1, 2} <= set(ranks)
        refused = [each["problem"] for each in tried["outcomes"] if each["ending"] is None]
        assert tried["not_tried"] == len(refused) > 0
        assert all(str(problem).startswith("not made: ChatModel gpt-4.1") for problem in refused)
        assert (tried["tokens"], tried["cost"]) == (0, 0.0)
        ann = Caller("ann", limits=Limits(tokens_per_day=10_000_000, dollars_per_day=10.0))
        paid = await try_all(services, done, models=True, caller=ann)
        assert len(server.requests) > asked
        assert paid["not_tried"] < tried["not_tried"]
        # What it used counts towards the caller's day, and the run no longer as one under way.
        counted = await services.runs.usage.begin_run("ann", None, ann.limits)
        assert counted is not None
        assert paid["cost"] is not None
        assert (counted[1].runs, counted[1].tokens) == (0, paid["tokens"])
        assert paid["cost"] > 0
        assert counted[1].dollars == pytest.approx(paid["cost"])
