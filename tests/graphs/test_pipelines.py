"""The pipelines that ship answer a question on the sample library, each in its own way."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

import app.samples
from app.answering.requests import Ask, collect
from app.modes import PIPELINES, fit_modes, read_modes
from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.outcome import ANSWERS
from tests.asking import ask_for_state
from tests.tiny_cross_encoder import write_cross_encoder

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "How long is the probation period?"
NAMES = {"hybrid-corrective", "workspace", "disclosures", "visual", "knowledge-base"}


MARKERS = {
    "hybrid-corrective": "[Source {number}]",
    "workspace": "[cite:{chunk_id}]",
    "disclosures": "[Citation {number}]",
    "visual": "[{number}]",
    "knowledge-base": "[{number}]",
}
QUESTIONS = """How long is the probation period?
How much is the SAT-1?
What does the satellite modem cost?
How many days of holiday do employees get?
What is the accuracy of the wind speed?
What does the WS-200 cost?
How long is the warranty for stations?
What discount do schools get?
When was the incident in March 2025?
How often does the station have to be calibrated?
Who approves travel expenses?
What is the daily allowance?
What protection class does the housing have?
How much does the station weigh?
What changed in the last release?
How long must a password be?
What is the battery life?
How do I return a device?
What does the plan Team cost?
How fast is the WS-400 delivered?""".splitlines()


async def test_five_pipelines_ship() -> None:
    assert {file.stem for file in PIPELINES.glob("*.toml")} == NAMES


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stocked(module_services: Services, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Services]:
    """With the sample library, a cross-encoder and every pipeline."""
    folder = write_cross_encoder(tmp_path_factory.mktemp("models") / "cross-encoder")
    async with open_services(module_services.settings.model_copy(update={"cross_encoder": folder})) as services:
        await services.library.ingestion.add_path("default", Path(app.samples.__file__).parent)
        original = {name: read_modes(read_settings(profiles=Path(name), cross_encoder=folder))[name] for name in NAMES}
        modes = fit_modes(original, services.library.embedder.name, None)
        # The tiny cross-encoder's probabilities say nothing, so its pipeline must not abstain by them.
        fused = modes["hybrid-corrective"]
        modes["hybrid-corrective"] = fused.model_copy(update={"grade": fused.grade.model_copy(update={"caveat": 0.0})})
        yield replace(services, modes={**services.modes, **modes})


async def test_each_answers_in_its_own_way(stocked: Services) -> None:
    states = {}
    for name in sorted(NAMES):
        done, states[name] = await ask_for_state(stocked, QUESTION, mode=name)
        # The cross-encoder of this test counts shared tokens, and is no judge of what answers.
        assert "six months" in done["answer"] or name == "hybrid-corrective", name
        assert done["citations"], name
        assert done["warnings"] == [], name

    found = {name: state["candidates"] for name, state in states.items()}
    # Standardised scores may be negative, reciprocal ranks are at most two sixty-firsts, and weighted scores 1.
    assert 0 < found["hybrid-corrective"][0]["score"] <= 2 / 61
    assert 0.7 <= found["knowledge-base"][0]["score"] <= 1
    # With this question and this cross-encoder, probabilities of whole numbers of shared tokens.
    assert len({candidate["relevance"] for candidate in found["hybrid-corrective"]}) < len(found["hybrid-corrective"])
    for name, most in (("workspace", 10), ("disclosures", 5)):
        threshold = stocked.modes[name].retrieval.similarity_threshold
        assert threshold is not None
        assert len(found[name]) <= most
        assert all(c["dense"] >= threshold and c["lexical"] is None for c in found[name]), name
        assert all(source["score"] == round(source["dense"], 4) for source in states[name]["sources"]), name
    assert states["visual"]["verification"]["status"] == "quoted"
    for name, marker in MARKERS.items():
        cited = states[name]["citations"][0]
        assert marker.format(number=cited["marker"], chunk_id=cited["chunk_id"]) in states[name]["answer"], name
    scores = [source["dense"] for source in states["disclosures"]["sources"]]
    ranks = range(1, len(scores) + 1)
    weighted = sum(score / rank for score, rank in zip(scores, ranks, strict=True)) / sum(1 / rank for rank in ranks)
    assert abs(states["disclosures"]["confidence"] - weighted) < 1e-3


@pytest.mark.parametrize(("name", "least"), [("workspace", 12), ("disclosures", 16)])
async def test_thresholds_fit_the_model_that_ships(stocked: Services, name: str, least: int) -> None:
    """At the original numbers workspace answered 1 of these and disclosures 7."""
    async with stocked.make_run_manager() as turns:
        ended = [(await collect(await turns.ask(Ask(question, mode=name))))[0] for question in QUESTIONS]
    assert sum(done["type"] == "done" and done["outcome"] in ANSWERS for done in ended) >= least
