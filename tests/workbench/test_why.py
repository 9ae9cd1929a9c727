"""Why a run ended as it did, from what it saved."""

from typing import get_args, get_type_hints

import pytest

from app.wiring.services import Services
from app.workbench.explain.why import _DOUBTS, explain_run
from domain.events import Done
from domain.outcome import Reason
from domain.scope import Scope
from tests.asking import QUESTION, ask


async def explain(services: Services, done: Done) -> list[dict[str, str]]:
    facts: list[dict[str, str]] = explain_run(await services.make_debugger().read(Scope("default"), done["run_id"]))[
        "facts"
    ]
    return facts


def texts(facts: list[dict[str, str]], about: str) -> list[str]:
    return [fact["text"] for fact in facts if fact["about"] == about]


def test_each_reason_for_an_outcome_has_words() -> None:
    codes = {get_args(get_type_hints(reason)["code"])[0] for reason in get_args(Reason)}
    assert codes == _DOUBTS.keys()


@pytest.mark.usefixtures("library")
async def test_an_answer_names_its_threshold_its_passage_and_the_runner_up(services: Services) -> None:
    done = await ask(services, mode="thorough")
    facts = await explain(services, done)
    above = done["confidence"] - 0.6
    [outcome] = texts(facts, "outcome")
    assert outcome == (
        f"answered by local in mode thorough, confidence {done['confidence']:.2f}: {above:.2f} above the 0.60 that "
        "answers at once"
    )
    [search] = texts(facts, "search")
    assert search.startswith(f"“{QUESTION}” found ")
    assert texts(facts, "sources")[0].startswith("1. Station handbook › Warranty: ")
    assert texts(facts, "sources")[0].endswith(", cited")
    claim = texts(facts, "claim")[0]
    assert "36 months" in claim
    assert "rests on source 1 (Warranty); quoted" in claim
    assert texts(facts, "path") == ["route → retrieve → rerank → grade → generate → verify"]


async def test_each_claim_names_the_section_that_it_rests_on(services: Services) -> None:
    rest = "Further rules of this kind are agreed upon with the works council. " * 6
    rules = f"# Rules\n\n## Leave\n\nAn employee has 25 days of leave. {rest}\n\n## Notice\n\nThe notice period is three months. {rest}"
    await services.library.ingestion.add("default", "rules.md", rules.encode())
    done = await ask(services, "How many days of leave does an employee have, and how long is the notice period?")
    claims = texts(await explain(services, done), "claim")
    assert "rests on source 1 (Leave)" in next(claim for claim in claims if "25 days" in claim)
    assert "rests on source 1 (Notice)" in next(claim for claim in claims if "three months" in claim)


@pytest.mark.usefixtures("library")
async def test_an_abstention_names_each_search_and_what_was_missing(services: Services) -> None:
    first = await ask(services, QUESTION)
    done = await ask(services, "What does the zoo in Lisbon charge for parrots?", thread_id=first["thread_id"])
    assert done["outcome"] == "abstained"
    facts = await explain(services, done)
    [outcome] = texts(facts, "outcome")
    assert outcome.startswith("abstained in mode standard, confidence 0.")
    assert "confidence 0.00" not in outcome
    assert "below the 0.60 that answers at once" in outcome
    assert "below the 0.40 that answers with a caveat" in outcome
    searches = texts(facts, "search")
    assert [search.endswith("so it searched again") for search in searches] == [True] * (len(searches) - 1) + [False]
    assert texts(facts, "doubt")
    assert texts(facts, "claim") == []
    # The thread's other run is explained on its own.
    assert texts(await explain(services, first), "claim")


@pytest.mark.usefixtures("library")
async def test_a_cached_answer_and_a_greeting_are_explained_too(services: Services) -> None:
    first = await ask(services, QUESTION)
    again = await ask(services, QUESTION)
    assert again["cached"]
    facts = await explain(services, again)
    [outcome] = texts(facts, "outcome")
    assert f", from the cache, confidence {first['confidence']:.2f}" in outcome
    assert f"the answer of run {first['run_id']}" in texts(facts, "repeats")[0]
    assert texts(facts, "claim") == texts(await explain(services, first), "claim")
    # Where that run is gone, the stored citations still say what the claims rest on.
    await services.make_forgetting().forget_thread("default", first["thread_id"])
    facts = await explain(services, again)
    assert "not on record any more" in texts(facts, "repeats")[0]
    assert "rests on Station handbook › Warranty" in texts(facts, "claim")[0]
    greeting = await explain(services, await ask(services, "Hello!"))
    assert texts(greeting, "outcome") == ["conversed by local in mode standard"]
