"""Every knob of a profile changes what the real graph does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.runs.turns import Ask, Turns, collect
from app.services import Services, open_services
from app.settings import Settings, merge_knobs
from domain.errors import ConfigurationError
from domain.events import Done
from domain.profile import MODES, Profile
from tests.tiny_cross_encoder import write_cross_encoder

WARRANTY = "How long is the warranty of the Falke?"


def vary(**knobs: Any) -> Profile:
    """Mode standard with other knobs."""
    return Profile.model_validate(merge_knobs(MODES["standard"].model_dump(), knobs) | {"name": "own"})


async def ask(services: Services, question: str = WARRANTY, **knobs: Any) -> tuple[Done, dict[str, Any]]:
    """The end of the turn, and the state that it left."""
    turns = Turns(replace(services, modes={"own": vary(**knobs)}))
    ended, _ = await collect(await turns.start(Ask(question, mode="own")))
    await turns.close()
    assert ended["type"] == "done", ended
    state = await services.graph.aget_state({"configurable": {"thread_id": ended["thread_id"]}})
    return ended, state.values


async def test_mmr_passes_over_what_says_the_same(services: Services) -> None:
    for number in range(3):
        text = f"# Leaflet {number}\n\nThe Falke has a warranty of 36 months.\n"
        await services.ingestion.add("default", f"{number}.md", text.encode())
    await services.ingestion.add("default", "a.md", b"# Prices\n\nPetra Lindqvist extends a warranty for 40 euros.\n")
    _, plain = await ask(services, rerank={"keep": 2})
    _, varied = await ask(services, rerank={"keep": 2, "mmr_lambda": 0.3})
    assert ["36" in source["text"] for source in plain["sources"]] == [True, True]
    assert ["36" in source["text"] for source in varied["sources"]] == [True, False]
    assert varied["sources"][0]["score"] > varied["sources"][1]["score"]
    assert plain["candidates"] == varied["candidates"]
    _, relevant = await ask(services, rerank={"keep": 2, "mmr_lambda": 1.0})
    assert relevant["sources"] == plain["sources"]


@pytest.fixture
def with_cross_encoder(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"cross_encoder": write_cross_encoder(tmp_path / "cross-encoder")})


async def test_a_cross_encoder_scores_where_the_profile_says_so(with_cross_encoder: Settings) -> None:
    async with open_services(with_cross_encoder) as services:
        await services.ingestion.add("default", "a.md", b"# Falke\n\nThe Falke has a warranty of 36 months.\n")
        await services.ingestion.add("default", "b.md", b"# Claims\n\nClaims are handled by Petra Lindqvist.\n")
        done, state = await ask(services, rerank={"method": "cross_encoder"})
        # Twelve and one pairs of equal tokens, less six, through the logistic function.
        assert [round(source["score"], 3) for source in state["sources"]] == [0.998, 0.007]
        assert "36 months" in done["answer"]
        assert done["warnings"] == []
        _, local = await ask(services)
        assert local["sources"][0]["score"] != state["sources"][0]["score"]
        assert services.make_context().rerankers.keys() == {"local", "cross_encoder"}


async def test_only_complex_questions_are_scored_where_the_profile_says_so(with_cross_encoder: Settings) -> None:
    async with open_services(with_cross_encoder) as services:
        await services.ingestion.add("default", "a.md", b"# Falke\n\nThe Falke has a warranty of 36 months.\n")
        knobs = {"method": "cross_encoder", "only_complex": True}
        _, simple = await ask(services, rerank=knobs)
        _, unscored = await ask(services, rerank={"method": "none"})
        assert simple["sources"] == unscored["sources"]
        question = "Why is the warranty of the Falke 36 months?"
        _, complex_ = await ask(services, question, rerank=knobs)
        _, scored = await ask(services, question, rerank={"method": "cross_encoder"})
        assert complex_["sources"] == scored["sources"] != (await ask(services, question, rerank={"method": "none"}))


async def test_a_mode_without_its_cross_encoder_is_refused_at_start(settings: Settings, tmp_path: Path) -> None:
    profiles = tmp_path / "modes.toml"
    profiles.write_text('[exact]\nrerank.method = "cross_encoder"\n')
    with pytest.raises(ConfigurationError, match=r"'exact' reranks with a cross-encoder.*ASKGRAPH_CROSS_ENCODER"):
        async with open_services(settings.model_copy(update={"profiles": profiles})):
            pass


async def test_a_fork_into_a_reranker_that_is_not_there_keeps_the_search_order(services: Services) -> None:
    await services.ingestion.add("default", "a.md", b"# Falke\n\nThe Falke has a warranty of 36 months.\n")
    done, _ = await ask(services, rerank={"method": "cross_encoder"})
    assert "36 months" in done["answer"]
    assert done["warnings"] == ["Kept the order of the search: there is no reranker 'cross_encoder' here."]
