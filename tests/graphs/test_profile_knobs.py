"""Every knob of a profile changes what the real graph does."""

from pathlib import Path

import pytest
import pytest_asyncio

from app.modes import read_modes
from app.settings import Settings
from app.wiring.services import Services, open_services
from app.workbench.replay.state_changes import apply_changes
from domain.errors import ConfigurationError, StateError
from domain.profile import MODES
from tests.asking import ask_for_state, vary
from tests.tiny_cross_encoder import write_cross_encoder


@pytest.fixture
def with_cross_encoder(settings: Settings, tmp_path: Path) -> Settings:
    return settings.model_copy(update={"cross_encoder": write_cross_encoder(tmp_path / "cross-encoder")})


async def test_a_cross_encoder_scores_where_the_profile_says_so(with_cross_encoder: Settings) -> None:
    async with open_services(with_cross_encoder) as services:
        await services.library.ingestion.add("default", "a.md", b"# Falke\n\nThe Falke has a warranty of 36 months.\n")
        await services.library.ingestion.add("default", "b.md", b"# Claims\n\nClaims are handled by Petra Lindqvist.\n")
        done, state = await ask_for_state(services, profile=vary(rerank={"method": "cross_encoder"}))
        # Twelve and one pairs of equal tokens, less six, through the logistic function.
        assert [round(source["score"], 3) for source in state["sources"]] == [0.998, 0.007]
        assert "36 months" in done["answer"]
        assert done["warnings"] == []
        _, local = await ask_for_state(services, profile=vary())
        assert local["sources"][0]["score"] != state["sources"][0]["score"]
        assert services.make_context().rerankers.keys() == {"local", "cross_encoder"}


async def test_only_complex_questions_are_scored_where_the_profile_says_so(with_cross_encoder: Settings) -> None:
    async with open_services(with_cross_encoder) as services:
        await services.library.ingestion.add("default", "a.md", b"# Falke\n\nThe Falke has a warranty of 36 months.\n")
        knobs = {"method": "cross_encoder", "only_complex": True}
        _, simple = await ask_for_state(services, profile=vary(rerank=knobs))
        _, unscored = await ask_for_state(services, profile=vary(rerank={"method": "none"}))
        assert simple["sources"] == unscored["sources"]
        question = "Why is the warranty of the Falke 36 months?"
        _, complex_ = await ask_for_state(services, question, profile=vary(rerank=knobs))
        _, scored = await ask_for_state(services, question, profile=vary(rerank={"method": "cross_encoder"}))
        _, none = await ask_for_state(services, question, profile=vary(rerank={"method": "none"}))
        assert complex_["sources"] == scored["sources"] != none["sources"]


def test_modes_without_their_cross_encoder_rerank_locally_with_one_warning(
    settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    profiles = tmp_path / "modes.toml"
    profiles.write_text('[exact]\nrerank.method = "cross_encoder"\n[other]\nextends = "hybrid-corrective"\n')
    modes = read_modes(settings.model_copy(update={"profiles": profiles}))
    assert [modes[name].rerank.method for name in ("exact", "other")] == ["local", "local"]
    [warning] = caplog.messages
    assert "exact, other" in warning


def test_a_reranker_that_nobody_knows_is_refused_by_name(settings: Settings, tmp_path: Path) -> None:
    profiles = tmp_path / "modes.toml"
    profiles.write_text('[exact]\nrerank.method = "nobody"\n')
    known = "there is no reranker 'nobody'; there are cohere, cross_encoder, local, model, none"
    with pytest.raises(ConfigurationError, match=f"rerank.method.*{known}"):
        read_modes(settings.model_copy(update={"profiles": profiles}))
    saved = {"profile": MODES["standard"].model_dump()}
    with pytest.raises(StateError, match=known):
        apply_changes(saved, {"profile.rerank.method": "nobody"})


async def test_a_fork_into_a_reranker_that_is_not_there_keeps_the_search_order(services: Services) -> None:
    await services.library.ingestion.add("default", "a.md", b"# Falke\n\nThe Falke has a warranty of 36 months.\n")
    done, _ = await ask_for_state(services, profile=vary(rerank={"method": "cross_encoder"}))
    assert "36 months" in done["answer"]
    assert len(done["warnings"]) == 1


FALKE = b"# Falke\n\nThe Falke has a warranty of 36 months. Its battery lasts 14 months.\n"
CLAIMS = b"# Claims\n\nClaims are handled by Petra Lindqvist in Malmo.\n"


@pytest_asyncio.fixture
async def small(services: Services) -> Services:
    """With two documents of one chunk each."""
    await services.library.ingestion.add("default", "falke.md", FALKE)
    await services.library.ingestion.add("default", "claims.md", CLAIMS)
    return services


async def test_the_fusions_score_by_their_formulas(small: Services) -> None:
    scores = {}
    for fusion in ("standardised", "rrf", "weighted", "dense"):
        _, state = await ask_for_state(
            small, profile=vary(retrieval={"fusion": fusion, "dense_weight": 0.6, "rrf_k": 10})
        )
        scores[fusion] = [c["score"] for c in state["candidates"]]
        dense = [c["dense"] for c in state["candidates"]]
    assert scores["dense"] == dense
    assert scores["rrf"] == pytest.approx([2 / 11, 1 / 12])
    # Both legs have the best one first; the other shares no word with the question.
    assert scores["weighted"] == pytest.approx([1.0, 0.6 * dense[1] / dense[0]], abs=1e-3)
    # z(dense) + 0.7 * z(lexical); of two values, one is a deviation above the mean and one below.
    assert scores["standardised"] == pytest.approx([1.7, -1.7], abs=1e-3)


@pytest.mark.parametrize(("threshold", "found"), [(0.4, 1), (0.9, 0)])
async def test_a_threshold_drops_what_is_not_similar(small: Services, threshold: float, found: int) -> None:
    _, state = await ask_for_state(
        small, profile=vary(retrieval={"similarity_threshold": threshold}, grade={"max_retries": 0})
    )
    assert len(state["candidates"]) == found


async def test_limits_hold(small: Services) -> None:
    _, state = await ask_for_state(small, profile=vary(retrieval={"candidates": 1}))
    assert len(state["candidates"]) == 1
    _, state = await ask_for_state(small, profile=vary(rerank={"keep": 1}))
    assert (len(state["candidates"]), len(state["sources"])) == (2, 1)
    _, state = await ask_for_state(small, profile=vary(retrieval={"leg_limit": 1}))
    assert len(state["candidates"]) == 1


async def test_confidence_by_the_weighted_formula(small: Services) -> None:
    _, state = await ask_for_state(small, profile=vary(grade={"formula": "weighted", "caveat": 0.0, "max_retries": 0}))
    first, second = (source["score"] for source in state["sources"])
    assert state["confidence"] == pytest.approx((first + second / 2) / 1.5, abs=1e-3)
    knobs = {"formula": "weighted", "caveat": 0.0, "max_retries": 0}
    # Neither is reranked: the question is a simple one.
    for rerank in ({"method": "none"}, {"only_complex": True}):
        _, state = await ask_for_state(small, profile=vary(grade=knobs, rerank=rerank))
        first, second = (source["dense"] for source in state["sources"])
        assert state["confidence"] == pytest.approx((first + second / 2) / 1.5, abs=1e-3)


async def test_an_abstention_is_the_sentence_of_the_profile(small: Services) -> None:
    question = "Who won the football world cup of 1954?"
    done, _ = await ask_for_state(small, question, profile=vary(generate={"fallback": "Not in our files."}))
    assert done["answer"] == "Not in our files."


async def test_a_misspelt_question_is_searched_for_as_it_was_meant(small: Services) -> None:
    question = "How long is the waranty of the Fakle?"
    done, state = await ask_for_state(small, question, profile=vary())
    assert "36 months" in done["answer"]
    assert state["query"] == "How long is the warranty of the Falke?"
    assert state["queries_tried"][0] == state["query"]
    assert state["question"] == question
    _, literal = await ask_for_state(
        small, question, profile=vary(retrieval={"correct_spelling": False}, grade={"max_retries": 0})
    )
    assert literal["query"] == question
