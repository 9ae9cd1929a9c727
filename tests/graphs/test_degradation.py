"""What a run goes on without: the next answerer, fewer sources, no more searching. Over the real protocol."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from app.settings import Settings
from app.wiring.services import Services
from domain.events import Done, Event
from domain.execution.budget import Budget
from domain.profile import MODES, GenerateKnobs, GradeKnobs, Profile
from tests.asking import LARGE, SHORT_HANDBOOK, SMALL, ask_for_events, serve_models, steps_of
from tests.wire.openai import OpenAIServer, event_of

SECOND, THIRD = "gpt-4o-mini", "gpt-4o"
TWO = "How long is the warranty of the Falke, and who handles its claims?"

CASH = b"# Cash\n\nThe till of the Falke shop closes at 18:45 and is counted by two people on every working day.\n"


@asynccontextmanager
async def serve(
    settings: Settings, fallbacks: tuple[str, ...] = (SECOND, THIRD), **behaviour: Any
) -> AsyncIterator[tuple[Services, OpenAIServer]]:
    changes = {"model_fallbacks": fallbacks}
    async with serve_models(settings, {"handbook.md": SHORT_HANDBOOK}, changes=changes, **behaviour) as served:
        yield served


def own_mode(base: str = "fast", **knobs: Any) -> Profile:
    """A mode whose steps ask their models one after the other."""
    return MODES[base].model_copy(update={"name": "own", "budget": Budget(), **knobs})


def count_sources(events: list[Event]) -> list[int]:
    """How many sources each event that shows them has."""
    return [len(event["citations"]) for event in events if event["type"] == "sources"]


def tell(done: Done) -> list[tuple[str, str, str, str]]:
    return [(each["node"], each["code"], each["given_up"], each["instead"]) for each in done["degraded"]]


async def test_the_next_model_writes_where_one_fails_and_everything_says_so(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "askgraph.runs")
    async with serve(settings, model_faults={LARGE: "policy"}) as (services, _):
        done, events = await ask_for_events(services, profile=own_mode())
        again, _ = await ask_for_events(services, profile=own_mode())
        run = await services.runs.log.get("default", done["run_id"])
    assert "36 months" in done["answer"]
    assert done["answered_by"] == SECOND
    assert tell(done) == [("generate", "model_refused", LARGE, SECOND)]
    assert steps_of(events)[-3:] == ["generate", "degrade", "generate"]
    assert [event["type"] for event in events].count("sources") == 1
    assert not [event for event in events if event["type"] == "correction"]
    assert done["warnings"] == [done["degraded"][0]["message"]]
    assert not again["cached"]
    assert run is not None
    assert (run.answered_by, run.degraded) == (SECOND, done["degraded"])
    assert f"answered_by={SECOND} degraded=generate:model_refused" in caplog.text


async def test_quotes_in_place_of_a_model_are_those_of_a_service_without_one(settings: Settings) -> None:
    parts = b"# Shop\n\nThe shop sells bells.\n\n# Falke\n\nThe Falke is a bell.\n\n# Claims\n\nPetra handles claims of the Falke.\n"
    documents = {"handbook.md": SHORT_HANDBOOK, "shop.md": parts}
    answers = []
    for changes in ({}, {"model_large": "none"}):
        async with serve_models(settings, documents, changes=changes, fault="policy") as (services, _):
            done, _ = await ask_for_events(services, TWO, profile=own_mode())
        answers.append((done["answer"], [cited["chunk_id"] for cited in done["citations"]]))
    assert answers[0] == answers[1]


async def test_after_the_last_model_this_machine_quotes(settings: Settings) -> None:
    async with serve(settings, fault="policy") as (services, _):
        done, events = await ask_for_events(services, profile=own_mode())
    assert "36 months" in done["answer"]
    assert done["answered_by"] == "local"
    assert tell(done) == [
        ("generate", "model_refused", LARGE, SECOND),
        ("generate", "model_refused", SECOND, THIRD),
        ("generate", "model_refused", THIRD, "local"),
    ]
    assert steps_of(events).count("degrade") == 3


async def test_what_was_streamed_is_corrected_once_when_somebody_has_finished(settings: Settings) -> None:
    async with serve(settings, model_faults={LARGE: "cut", SECOND: "cut"}) as (services, _):
        done, events = await ask_for_events(services, profile=own_mode())
    kinds = [event["type"] for event in events]
    begun = "".join(event["token"] for event in events if event["type"] == "content")
    assert begun
    assert begun != done["answer"]
    [correction] = [event for event in events if event["type"] == "correction"]
    assert (correction["answer"], correction["citations"]) == (done["answer"], done["citations"])
    assert "content" not in kinds[kinds.index("correction") :]
    assert "content" not in [event["type"] for event in events[[e.get("step") for e in events].index("degrade") :]]
    assert done["answered_by"] == THIRD
    assert [each["code"] for each in done["degraded"]] == ["model_reply_cut", "model_reply_cut"]


async def test_sources_are_dropped_from_the_tail_where_the_prompt_is_too_long(settings: Settings) -> None:
    knobs = GenerateKnobs(model="small")
    async with serve(settings) as (services, server):
        for number in range(8):
            text = f"# Note {number}\n\nThe warranty of the Falke in region {number} is {30 + number} months.\n"
            await services.library.ingestion.add("default", f"{number}.md", text.encode())
        mode = own_mode(grade=GradeKnobs(formula="weighted", sufficient=0, caveat=0), generate=knobs)
        whole, _ = await ask_for_events(services, profile=mode)
        longest = max(sum(len(m["content"]) // 4 + 4 for m in body["messages"]) for body in server.requests)
        server.behaviour.window = longest - 20
        mode = mode.model_copy(update={"generate": knobs.model_copy(update={"answer_tokens": 999})})
        done, events = await ask_for_events(services, profile=mode)
    assert not whole["degraded"]
    assert done["answered_by"] == SMALL
    [cut] = done["degraded"]
    assert (cut["code"], cut["given_up"], cut["instead"]) == ("context_too_long", "5 sources", "the first 2")
    shown = [[c["marker"] for c in event["citations"]] for event in events if event["type"] == "sources"]
    assert shown == [[1, 2, 3, 4, 5], [1, 2]]
    assert {citation["marker"] for citation in done["citations"]} <= {1, 2}


async def test_a_prompt_that_never_fits_is_for_the_next_answerer(settings: Settings) -> None:
    async with serve(settings, model_faults={LARGE: "context_length"}) as (services, _):
        await services.library.ingestion.add("default", "cash.md", CASH)
        done, events = await ask_for_events(services, profile=own_mode())
    assert tell(done) == [("generate", "context_too_long", LARGE, SECOND)]
    assert count_sources(events) == [2, 1, 2], "the next one has room for all of them"


async def test_where_no_prompt_fits_all_sources_are_quoted_from_and_that_is_said_once(settings: Settings) -> None:
    question = "What does the notice of the Falke say about Bergen, Narvik, Tromso and Bodo?"
    everything = own_mode(grade=GradeKnobs(formula="weighted", sufficient=0, caveat=0))
    async with serve(settings, (), model_faults={LARGE: "context_length"}) as (services, _):
        for number, place in enumerate(["Bergen", "Narvik", "Tromso", "Bodo"]):
            text = f"# Notice {place}\n\nThe notice of the Falke says that {place} is reached on day {number + 3}.\n"
            await services.library.ingestion.add("default", f"{place}.md", text.encode())
        done, events = await ask_for_events(services, question, profile=everything)
    assert done["answered_by"] == "local"
    assert count_sources(events) == [5, 2, 1, 5]
    assert len(done["citations"]) == 2
    assert len(done["warnings"]) == 1
    assert tell(done) == [("generate", "context_too_long", LARGE, "local")]


async def test_an_answer_that_reached_its_length_says_so_and_is_not_given_again(settings: Settings) -> None:
    reply = "The warranty is 36 months [1]. Claims are handled by Petra Lindqvist, who works for the shop in Malmo [1]."
    async with serve(settings, model_faults={LARGE: "length"}, model_replies={LARGE: reply}) as (services, server):
        done, _ = await ask_for_events(services, "Who handles claims?", profile=own_mode())
        server.behaviour.model_faults.clear()
        again, _ = await ask_for_events(services, "Who handles claims?", profile=own_mode())
    assert done["citations"]
    assert "Malmo" not in done["answer"]
    assert len(done["warnings"]) == 1
    assert not again["cached"]
    assert "Malmo" in again["answer"]
    assert not again["warnings"]


async def repeat(piece: bytes, pause: float = 0.0) -> AsyncIterator[bytes]:
    """A reply that never ends."""
    while True:
        yield piece
        await asyncio.sleep(pause)


@pytest.mark.parametrize(
    ("knobs", "pause", "warning"),
    [
        ({"answer_tokens": 20}, 0.0, "its limit of 20 tokens"),
        ({"answer_seconds": 0.5}, 0.02, "its limit of 0.5 seconds"),
    ],
)
async def test_an_answer_without_an_end_stays_as_far_as_it_may_go(
    settings: Settings, knobs: dict[str, Any], pause: float, warning: str
) -> None:
    sentence = event_of({"content": "Of 36 months [1]. "})
    mode = own_mode(generate=GenerateKnobs.model_validate(knobs))
    async with serve(settings, send=lambda body: repeat(sentence, pause) if body["model"] == LARGE else None) as served:
        for _ in range(2):
            done, _ = await ask_for_events(served[0], "How long is the warranty?", profile=mode)
            assert "Of 36 months [1]. Of 36" in done["answer"]
            assert [citation["marker"] for citation in done["citations"]] == [1]
            assert [warning in each for each in done["warnings"]] == [True]
            assert not done["cached"], "it is not complete"


async def test_thoughts_without_an_answer_are_as_good_as_silence(settings: Settings) -> None:
    thought = event_of({"reasoning_content": "hm "})
    changes = {"model_timeout": 0.5}
    handbook = {"handbook.md": SHORT_HANDBOOK}
    endless = lambda body: repeat(thought, 0.01) if body["model"] == LARGE else None  # noqa: E731
    async with serve_models(settings, handbook, changes=changes, send=endless) as (services, _):
        done, _ = await ask_for_events(services, profile=own_mode())
    assert done["answered_by"] == "local"
    assert "36 months" in done["answer"]
    assert [each["code"] for each in done["degraded"]] == ["model_timeout"]


async def test_over_budget_what_was_found_is_quoted(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        done, events = await ask_for_events(services, TWO, profile=own_mode(budget=Budget(tokens=1)))
        asked = [body["model"] for body in server.requests]
    assert asked == [SMALL]
    assert "36 months" in done["answer"]
    assert tell(done) == [("generate", "over_budget", LARGE, "local")]
    assert steps_of(events)[-3:] == ["grade", "degrade", "generate"]
    assert done["answered_by"] == "local"


async def test_over_budget_nothing_more_is_searched_for(settings: Settings) -> None:
    question = "Which colour does the roof of the town hall of Malmo have?"
    async with serve(settings) as (services, server):
        server.behaviour.replies = ["SEARCH: roof of the town hall"]
        done, events = await ask_for_events(services, question, profile=own_mode("standard", budget=Budget(tokens=1)))
    assert steps_of(events)[-4:] == ["generate", "reformulate", "degrade", "abstain"]
    assert [each for each in tell(done) if each[0] == "generate"] == [
        ("generate", "over_budget", "another search", "what was found")
    ]
    assert done["abstained"]


async def test_a_machine_without_models_has_no_answerer_to_give_up(services: Services, library: Any) -> None:
    done, _ = await ask_for_events(services, profile=own_mode(budget=Budget(seconds=0.0001)))
    assert "36 months" in done["answer"]
    assert done["degraded"] == []
    assert done["answered_by"] == "local"


async def test_small_talk_without_the_model_is_recorded_too(settings: Settings) -> None:
    async with serve(settings, fault="policy") as (services, _):
        done, _ = await ask_for_events(services, "Hello there!", profile=own_mode())
    assert tell(done)[-1] == ("converse", "model_refused", SMALL, "local")
    assert done["answered_by"] == "local"
