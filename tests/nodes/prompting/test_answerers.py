"""Who writes the answer, and who is asked next."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from domain.profile import GenerateKnobs
from nodes.context import Models
from nodes.prompting.answerers import LOCAL, find_model, find_next, list_answerers, name_answerer

SMALL, LARGE, FIRST, SECOND = (cast(Any, SimpleNamespace(name=name)) for name in ("small", "large", "first", "second"))
ALL = Models(small=SMALL, large=LARGE, fallbacks=(FIRST, SECOND))
SMALL_WRITES = GenerateKnobs(model="small")
LARGE_WRITES = GenerateKnobs(model="large")


@pytest.mark.parametrize(
    ("models", "answerers"),
    [
        (ALL, ["model", "fallback 1", "fallback 2", "local"]),
        (Models(fallbacks=(FIRST,)), ["fallback 1", "local"]),
        (Models(small=SMALL), ["local"]),
        (Models(large=LARGE), ["model", "local"]),
    ],
)
def test_models_are_asked_before_this_machine(models: Models, answerers: list[str]) -> None:
    assert list_answerers(LARGE_WRITES, models) == answerers


@pytest.mark.parametrize(
    ("answerer", "model"),
    [
        ("fallback 1", FIRST),
        ("fallback 2", SECOND),
        ("fallback 3", None),
        ("fallback 0", None),
        ("fallback x", None),
        ("local", None),
        ("", None),
    ],
)
def test_an_answerer_is_found_by_its_name(answerer: str, model: Any) -> None:
    assert find_model(answerer, LARGE_WRITES, ALL) is model


def test_the_profile_names_the_tier() -> None:
    assert find_model("model", SMALL_WRITES, ALL) is SMALL
    assert find_model("model", LARGE_WRITES, ALL) is LARGE


def test_the_next_one_is_asked_in_order() -> None:
    order = ["model"]
    while order[-1] != LOCAL:
        order.append(find_next(order[-1], LARGE_WRITES, ALL))
    assert order == ["model", "fallback 1", "fallback 2", "local"]
    assert find_next(LOCAL, LARGE_WRITES, ALL) == LOCAL
    assert find_next("unknown", LARGE_WRITES, ALL) == LOCAL


def test_an_answerer_goes_by_its_models_name() -> None:
    assert name_answerer("model", SMALL_WRITES, ALL) == "small"
    assert name_answerer("fallback 2", SMALL_WRITES, ALL) == "second"
    assert name_answerer("fallback 9", SMALL_WRITES, ALL) == "local"
