"""Steps that a profile may give to the small model, over the wire."""

import json
from typing import Any

import pytest

from app.settings import Settings
from app.wiring.services import Services
from tests.asking import ask_for_state, routing, serve_models, vary

QUESTION = "Who handles the claims?"
DOCUMENTS = {
    "handbook.md": b"# Handbook\n\nClaims are handled by Petra Lindqvist in Malmo.\n",
    "manual.md": b"# Manual\n\nThe funnel of the Amsel rain gauge is cleaned every 8 weeks.\n",
    "notes.md": b"# Notes\n\nThe barometer was moved to room B204 in May.\n",
}
ROUTING = routing(QUESTION)

ONE: dict[str, Any] = {"candidates": 1, "fusion": "rrf"}
"""So few that what comes first can be told apart."""


async def test_several_queries_are_searched_for_and_their_ranks_fused(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        server.behaviour.replies = [
            ROUTING,
            json.dumps({"queries": ["barometer room", "barometer moved", "where the barometer is", "a fourth"]}),
        ]
        knobs: dict[str, Any] = {
            "retrieval": ONE | {"expansion": "multi_query", "expansion_queries": 3},
            "grade": {"max_retries": 0},
        }
        done, state = await ask_for_state(services, QUESTION, profile=vary(**knobs))
    # Three queries that agree outweigh the question.
    assert [source["title"] for source in state["sources"]] == ["Notes"]
    assert state["queries_tried"] == [QUESTION, "barometer room", "barometer moved", "where the barometer is"]
    assert ("retrieve", 1) in {(used["node"], used["calls"]) for used in done["usage"]}
    assert "3 search queries" in server.requests[1]["messages"][0]["content"]


async def test_a_made_up_answer_is_searched_for_by_its_meaning(settings: Settings) -> None:
    passage = "The barometer now stands in room B204, to which it was moved in the spring."
    async with serve_models(settings, DOCUMENTS) as (services, server):
        server.behaviour.replies = [ROUTING, json.dumps({"passage": passage})]
        _, state = await ask_for_state(
            services, QUESTION, profile=vary(retrieval={"candidates": 3, "fusion": "rrf", "expansion": "hyde"})
        )
    scores = {candidate["chunk_id"]: candidate["score"] for candidate in state["candidates"]}
    titles = {source["chunk_id"]: source["title"] for source in state["sources"]}
    by_title = {titles[chunk_id]: score for chunk_id, score in scores.items()}
    assert state["queries_tried"] == [QUESTION, passage]
    # Each is first for one and last for the other.
    assert by_title == {
        title: pytest.approx(score)
        for title, score in zip(
            ("Handbook", "Notes", "Manual"), (1 / 61 + 1 / 63, 1 / 61 + 1 / 63, 2 / 62), strict=True
        )
    }


async def test_a_retry_is_not_expanded_again(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        server.behaviour.replies = [
            ROUTING,
            json.dumps({"queries": ["claims department"]}),
            json.dumps({"confidence": 0.5, "missing": []}),
            json.dumps({"queries": ["person responsible for claims"]}),
            json.dumps({"confidence": 0.9, "missing": []}),
        ]
        _, state = await ask_for_state(
            services, QUESTION, profile=vary(retrieval={"expansion": "multi_query"}, grade={"max_retries": 1})
        )
    assert state["retries"] == 1
    assert state["queries_tried"] == [QUESTION, "claims department", "person responsible for claims"]


async def test_without_a_model_the_question_is_searched_for_alone(services: Services) -> None:
    await services.library.ingestion.add("default", "handbook.md", DOCUMENTS["handbook.md"])
    for expansion in ("multi_query", "hyde"):
        done, state = await ask_for_state(
            services, QUESTION, profile=vary(retrieval={"expansion": expansion}, grade={"max_retries": 0})
        )
        assert [source["title"] for source in state["sources"]] == ["Handbook"]
        assert len(done["warnings"]) == 1
        assert state["queries_tried"] == [QUESTION]


async def test_a_model_that_fails_costs_the_expansion_only(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        server.behaviour.faults = [None, "policy"]
        done, state = await ask_for_state(services, QUESTION, profile=vary(retrieval={"expansion": "hyde"}))
    assert "Petra Lindqvist" in done["answer"]
    assert state["queries_tried"] == [QUESTION]
    assert len(done["warnings"]) == 1


async def test_the_model_ranks_the_candidates(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        server.behaviour.replies = [
            ROUTING,
            json.dumps({"scores": [{"source": 2, "relevance": 0.9}, {"source": 1, "relevance": 0.4}]}),
        ]
        _, state = await ask_for_state(
            services, QUESTION, profile=vary(rerank={"method": "model"}, grade={"max_retries": 0})
        )
        plain, unranked = await ask_for_state(services, QUESTION, profile=vary(rerank={"method": "none"}))
    first, second, third = (candidate["chunk_id"] for candidate in unranked["candidates"])
    assert [source["chunk_id"] for source in state["sources"]] == [second, first, third]
    assert [source["score"] for source in state["sources"]] == [0.9, 0.4, 0.0]
    assert plain["warnings"] == []


async def test_without_a_model_to_rank_the_order_of_the_search_stands(services: Services) -> None:
    await services.library.ingestion.add("default", "handbook.md", DOCUMENTS["handbook.md"])
    done, state = await ask_for_state(services, QUESTION, profile=vary(rerank={"method": "model"}))
    assert [source["title"] for source in state["sources"]] == ["Handbook"]
    assert len(done["warnings"]) == 1
