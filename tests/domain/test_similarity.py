"""Limits of similarity belong to an embedding model."""

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.library.similarity import Scale, adapt_limits, find_scale, read_scales
from domain.profile import Profile

SHIPPED = OnnxEmbedder.name


def make_profile(**knobs: dict[str, object]) -> Profile:
    return Profile.model_validate({"name": "own", **knobs})


def test_a_similarity_keeps_its_place_on_another_scale() -> None:
    high, low = Scale(unrelated=0.7, related=0.8), Scale(unrelated=0.2, related=0.6)
    assert [high.map(value, low) for value in (0.6, 0.7, 0.75, 0.8, 1.0)] == [0.0, 0.2, 0.4, 0.6, 1.0]


def test_the_shipped_model_has_a_scale() -> None:
    assert SHIPPED in read_scales()
    assert all(scale.unrelated < scale.related for scale in read_scales().values())


def test_limits_of_another_model_are_mapped_with_a_warning() -> None:
    knobs = {"similarity_threshold": 0.715, "threshold_embedder": "text-embedding-ada-002"}
    adapted, warning = adapt_limits(make_profile(retrieval=knobs), SHIPPED)
    assert adapted.retrieval.similarity_threshold == read_scales()[SHIPPED].unrelated
    assert adapted.retrieval.threshold_embedder == SHIPPED
    assert adapted.grade == make_profile().grade
    assert warning is not None
    assert "0.715 became 0.15" in warning
    assert adapt_limits(adapted, SHIPPED) == (adapted, None)


def test_limits_of_a_confidence_that_is_a_similarity_are_mapped_too() -> None:
    profile = make_profile(
        retrieval={"threshold_embedder": "BAAI/bge-base-en"},
        rerank={"method": "none"},
        grade={"formula": "weighted", "sufficient": 0.8, "caveat": 0.6},
    )
    adapted, _ = adapt_limits(profile, SHIPPED)
    scale = read_scales()[SHIPPED]
    assert (adapted.grade.sufficient, adapted.grade.caveat) == (scale.related, scale.unrelated)


@pytest.mark.parametrize(("made_for", "used"), [("unheard-of", SHIPPED), ("text-embedding-ada-002", "unheard-of")])
def test_without_a_known_scale_the_limits_stay_with_a_warning(made_for: str, used: str) -> None:
    profile = make_profile(retrieval={"similarity_threshold": 0.7, "threshold_embedder": made_for})
    adapted, warning = adapt_limits(profile, used)
    assert adapted == profile
    assert warning is not None
    assert "unheard-of is not known" in warning


def test_limits_without_a_model_are_meant_as_they_are() -> None:
    profile = make_profile(retrieval={"similarity_threshold": 0.7})
    assert adapt_limits(profile, SHIPPED) == (profile, None)


def test_a_model_has_its_scale_wherever_it_is_computed() -> None:
    served, name = "openai:text-embedding-ada-002@1536", "text-embedding-ada-002"
    assert find_scale(served) == read_scales()[name]
    profile = make_profile(retrieval={"similarity_threshold": 0.7, "threshold_embedder": name})
    assert adapt_limits(profile, served) == (profile, None)
