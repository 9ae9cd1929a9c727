"""What runs while a model judges: the real SDK asks a loopback server, which holds a judgement back until it has seen
what is asked meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from app.answering.requests import Ask
from app.settings import Settings
from app.wiring.services import Services
from tests.asking import QUESTION, ask_for_events, grading, place_of, routing, serve_models, steps_of
from tests.conftest import HANDBOOK
from tests.wire.openai import OpenAIServer

UNCLEAR = "Tell me about the warranty of the Falke"
"""What the local judgement leaves to the model's, whatever that is."""
WRITTEN = "The Falke has a warranty of 36 months [1]. " * 10


@asynccontextmanager
async def serve(settings: Settings, **behaviour: Any) -> AsyncIterator[tuple[Services, OpenAIServer]]:
    changes = {"model_timeout": 20}
    async with serve_models(settings, {"handbook.md": HANDBOOK}, changes=changes, **behaviour) as (services, server):
        await services.models.judges.prepare()
        yield services, server


def name_request(body: dict[str, Any]) -> str:
    fields = body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    if "route" in fields:
        return "route"
    if "confidence" in fields:
        return "grade"
    return "generate" if "<source" in body["messages"][-1]["content"] else "converse"


def names(server: OpenAIServer) -> list[str]:
    return [name_request(body) for body in server.requests]


class Held:
    """Holds the replies to some requests back until others have arrived."""

    def __init__(self, server: OpenAIServer, **until: str) -> None:
        self.arrived = {name: asyncio.Event() for name in ("route", "grade", "generate", "converse")}
        self._until = until
        server.hold = self

    async def __call__(self, body: dict[str, Any]) -> None:
        name = name_request(body)
        self.arrived[name].set()
        if name in self._until:
            await self.arrived[self._until[name]].wait()


async def test_three_models_are_asked_side_by_side_and_nobody_sees_it(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        Held(server, route="generate", grade="generate")
        done, events = await ask_for_events(services)
        history = [step async for step in services.runs.graph.aget_state_history(place_of(done["thread_id"]))]
    assert names(server) == ["route", "grade", "generate"]
    assert steps_of(events) == ["route", "retrieve", "rerank", "grade", "generate"]
    kinds = [event["type"] for event in events if event["type"] != "content"]
    assert kinds == ["thinking"] * 5 + ["sources", "citation", "done"]
    assert "".join(event["token"] for event in events if event["type"] == "content") == done["answer"]
    assert "36 months" in done["answer"]
    assert done["warnings"] == []
    assert [used["node"] for used in done["usage"]] == ["route", "grade", "generate"]
    assert done["timings"].keys() == {"route", "retrieve", "rerank", "grade", "generate", "total"}
    # The model's confidence, not the local one that generate was begun with: two of the question's three words.
    assert done["confidence"] == 0.67
    assert [step.next for step in reversed(history)] == [
        ("__start__",), ("route",), ("retrieve",), ("rerank",), ("grade",), ("generate",), ()
    ]  # fmt: skip


async def test_a_route_that_disagrees_wins_and_what_ran_ahead_is_on_the_bill(settings: Settings) -> None:
    async with serve(settings, rate=20) as (services, server):
        Held(server, route="generate")
        server.behaviour.replies = [grading(0.9), WRITTEN, routing(route="conversational")]
        done, events = await ask_for_events(services, UNCLEAR)
        await asyncio.wait_for(server.abandoned.wait(), 10)
    assert names(server) == ["route", "grade", "generate", "converse"]
    assert done["route"] == "conversational"
    assert steps_of(events) == ["route", "converse"]
    assert done["citations"] == []
    assert {event["type"] for event in events} == {"thinking", "content", "done"}
    billed = [(used["node"], used["model"]) for used in done["usage"]]
    assert billed.count(("speculation", "gpt-4.1-nano")) == 1
    assert ("route", "gpt-4.1-nano") in billed


async def test_a_route_that_words_a_follow_up_otherwise_is_searched_for(settings: Settings) -> None:
    other = "How often must the barometer of the Falke be calibrated?"
    async with serve(settings) as (services, server):
        first, _ = await ask_for_events(services, "Who handles warranty claims of the Falke?")
        server.requests.clear()
        Held(server, route="generate")
        server.behaviour.replies = [grading(0.9), WRITTEN, routing(other)]
        done, _ = await ask_for_events(services, thread_id=first["thread_id"])
    assert names(server) == ["route", "grade", "generate", "grade", "generate"]
    assert done["standalone_question"] == other
    assert "12 months" in done["answer"]
    assert "36 months" not in done["answer"]
    assert {used["node"] for used in done["usage"]} == {"route", "speculation", "grade", "generate"}


async def test_a_grade_that_disagrees_wins(settings: Settings) -> None:
    async with serve(settings, rate=20) as (services, server):
        Held(server, grade="generate")
        server.behaviour.replies = [routing(), WRITTEN, grading(0.0)]
        done, events = await ask_for_events(services, mode="fast")
        await asyncio.wait_for(server.abandoned.wait(), 10)
    assert steps_of(events) == ["route", "retrieve", "rerank", "grade", "abstain"]
    assert done["abstained"]
    assert not [event for event in events if event["type"] == "sources"]


async def test_generate_begins_ahead_of_grade_where_retrieve_could_not_begin_ahead_of_route(settings: Settings) -> None:
    """A follow-up, whose wording only the model knows."""
    async with serve(settings) as (services, server):
        first, _ = await ask_for_events(services)
        server.requests.clear()
        Held(server, grade="generate")
        server.behaviour.replies = [routing("How long does the battery of the Falke last?")]
        done, _ = await ask_for_events(services, "And its battery?", thread_id=first["thread_id"])
    assert names(server) == ["route", "grade", "generate"]
    assert "14 months" in done["answer"]


async def test_nothing_runs_ahead_where_the_mode_forbids_it(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        quiet = {name: mode.model_copy(update={"speculate": False}) for name, mode in services.modes.items()}
        server.behaviour.replies = [routing(route="conversational")]
        await ask_for_events(replace(services, modes=quiet), UNCLEAR)
    assert names(server) == ["route", "converse"]


async def test_a_run_that_is_stopped_ends_what_runs_ahead_and_knows_what_that_cost(settings: Settings) -> None:
    async with serve(settings, rate=20) as (services, server):
        held = Held(server, route="converse")
        async with services.make_run_manager() as turns:
            started = await turns.start(Ask(QUESTION))
            await asyncio.wait_for(held.arrived["generate"].wait(), 30)
            await turns.stop("default", started.run_id)
            await asyncio.wait_for(server.abandoned.wait(), 30)
        run = await services.runs.log.get("default", started.run_id)
    assert names(server) == ["route", "grade", "generate"]
    assert run is not None
    assert len(run.usage) == 3
    given_up = [used for used in run.usage if used["estimated"]]
    assert {used["model"] for used in given_up} == {"gpt-4.1-nano", "gpt-4.1-mini"}, "route and generate"
    assert all(used["input_tokens"] > 0 and used["cost"] for used in given_up)
