"""A profile travels in saved states, as JSON, and is read back by later versions."""

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.modes import PIPELINES, read_modes
from app.settings import read_settings
from domain.profile import MODES, ModelKnobs, Profile

FIRST = """
{"name": "brief", "retrieval": {"candidates": 20, "leg_limit": 100, "fusion": "rrf", "lexical_weight": 0.7,
 "dense_weight": 0.7, "rrf_k": 60, "similarity_threshold": null, "expansion": "none"}, "rerank": {"method": "local", "keep": 3},
 "grade": {"sufficient": 0.6, "caveat": 0.4, "max_retries": 2}, "generate": {"citation_style": "number",
 "source_tokens": 8000, "answer_tokens": 1000, "max_sentences": 4, "temperature": 0.2}, "verify": false,
 "speculate": true}
"""
"""As the first version saved it."""


def test_a_profile_of_the_first_version_is_read_with_defaults_for_what_came_later() -> None:
    profile = Profile.model_validate_json(FIRST)
    assert (profile.retrieval.fusion, profile.retrieval.candidates, profile.rerank.keep) == ("rrf", 20, 3)
    assert profile.generate.fallback == MODES["standard"].generate.fallback


@pytest.mark.parametrize("name", [*MODES, *(file.stem for file in PIPELINES.glob("*.toml"))])
def test_every_profile_that_ships_survives_json(name: str) -> None:
    profile = MODES.get(name) or read_modes(read_settings(profiles=Path(name)))[name]
    assert profile.name == name
    assert Profile.model_validate(json.loads(json.dumps(profile.model_dump()))) == profile


@pytest.mark.parametrize("name", ["", "openai:", "gpt 4", "gpt\t4"])
def test_what_is_no_name_of_a_model_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="is no name of a language model") as refused:
        ModelKnobs(large=name)
    [error] = refused.value.errors()
    assert error["type"] == "model_name"
    assert repr(name) in error["msg"]


def test_a_name_of_a_model_may_have_its_provider() -> None:
    assert ModelKnobs(small="gpt-4.1", large="openai:gpt-4.1").large == "openai:gpt-4.1"
