"""Steps that a profile may give to the small model, over the wire."""

import json

from app.settings import Settings
from app.wiring.services import Services
from tests.asking import ask_for_state, serve_models, vary

QUESTION = "Who handles the claims?"
DOCUMENTS = {
    "handbook.md": b"# Handbook\n\nClaims are handled by Petra Lindqvist in Malmo.\n",
    "manual.md": b"# Manual\n\nThe funnel of the Amsel rain gauge is cleaned every 8 weeks.\n",
    "notes.md": b"# Notes\n\nThe barometer was moved to room B204 in May.\n",
}


async def test_the_model_ranks_the_candidates(settings: Settings) -> None:
    async with serve_models(settings, DOCUMENTS) as (services, server):
        server.behaviour.replies = [
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
