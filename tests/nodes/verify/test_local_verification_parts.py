"""What the local verifier looks at, each by itself."""

import pytest

from nodes.reading.words import read_keys
from nodes.verify.local import LocalVerifier
from tests.sources import make_source


def test_words_are_compared_by_stem() -> None:
    assert read_keys("Rooms Twenty the Don’t") == ["room", "20", "the", "don't"]
    assert read_keys("1,200 rooms") == ["1200", "room"]


OPPOSITE = "The source says the opposite."
SPEAKER = "It speaks of the speaker, who is not the source."


@pytest.mark.parametrize(
    ("claim", "said", "reason"),
    [
        ("The lease lasts 24 months.", "The lease lasts 12 months.", "The source does not mention 24."),
        ("The lease lasts twelve months.", "The lease lasts 12 months.", ""),
        ("The house has nine rooms.", "The house has a hall and a kitchen.", ""),
        ("Sales of coffee decreased in Basel.", "Sales of coffee increased in Basel.", OPPOSITE),
        ("Sales of coffee increased and decreased in Basel.", "Sales of coffee increased in Basel.", ""),
        ("Sales decreased for other firms.", "Sales of coffee increased in Basel.", ""),
        ("Dogs are not allowed indoors.", "Dogs are allowed indoors.", OPPOSITE),
        ("Dogs are allowed indoors.", "Dogs aren't allowed indoors.", OPPOSITE),
        ("Dogs are not allowed indoors.", "Dogs are never allowed indoors.", ""),
        ("My lease lasts 12 months.", "The lease lasts 12 months.", SPEAKER),
        ("My lease lasts 12 months.", "My lease lasts 12 months.", ""),
    ],
)
async def test_a_contradiction_is_told_to_the_reader(claim: str, said: str, reason: str) -> None:
    [check], _ = await LocalVerifier().verify([(claim, [make_source(said, title="")])])
    assert check.reason == reason if reason else check.reason not in (OPPOSITE, SPEAKER)


async def test_words_that_stand_apart_support_less_than_neighbours() -> None:
    scores = []
    for said in (
        "In the mill rents of rooms rise with tenants, says he.",
        "The mill by the river in the valley rents tents, rooms, boats, bikes and cars to guests, friends, tenants.",
        "The mill is old. He rents boats. It has rooms. Nobody likes tenants.",
    ):
        [check], _ = await LocalVerifier().verify([("The mill has rooms and tenants.", [make_source(said, title="")])])
        scores.append(check.score)
    near, apart, scattered = scores
    assert near > 0.5 > apart > scattered == 0


async def test_an_empty_source_supports_nothing() -> None:
    empty = make_source("", title="")
    [check], score = await LocalVerifier().verify([("The lease lasts 12 months.", [empty])])
    assert check.verdict == "unsupported"
    assert score == 0
