"""Claims against the sources that they cite."""

import pytest

from domain.documents import Source
from domain.ports.judgement import SUPPORTED, Check
from domain.text.words import read_keys
from nodes.verify.local import LocalVerifier
from tests.sources import make_source


def source(text: str, title: str = "Lindenhof W2 manual") -> Source:
    return make_source(text, title=title)


async def check(claim: str, sources: list[Source]) -> Check:
    """The verdict on one claim alone."""
    [outcome], score = await LocalVerifier().verify([(claim, sources)])
    assert score >= SUPPORTED or outcome.verdict == "unsupported"
    return outcome


MANUAL = source(
    "The warranty of the Lindenhof W2 lasts 12 months from the date of purchase. Water damage is not covered. "
    "Sales increased by 5% to $3.2 billion in 2023. All employees receive a laptop before the first day. "
    "The machine was designed by Maria Keller in Basel, Switzerland. The office has twelve rooms."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The warranty of the Lindenhof W2 lasts 12 months from the date of purchase. [1]",
        "The warranty lasts twelve months [1].",
        "Damage by water is not covered [1].",
        "Sales rose by 5% to $3.2 billion in 2023 [1].",
        "Maria Keller designed the machine in Basel [1].",
        "According to the document, the office has 12 rooms.",
    ],
)
async def test_what_the_source_says_is_supported(claim: str) -> None:
    outcome = await check(claim, [MANUAL])
    assert outcome.verdict == "supported", outcome
    assert 0.0 <= outcome.score <= 1.0


def test_words_are_compared_by_stem() -> None:
    assert read_keys("Rooms Twenty the Don’t") == ["room", "20", "the", "don't"]
    assert read_keys("1,200 rooms") == ["1200", "room"]


OPPOSITE = "The source says the opposite."
SPEAKER = "It speaks of the speaker, who is not the source."


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("The warranty lasts 24 months from the date of purchase [1].", "The source does not mention 24."),
        ("Water damage is covered.", OPPOSITE),
        ("Sales did not increase in 2023.", OPPOSITE),
        ("Sales decreased by 5% to $3.2 billion in 2023.", OPPOSITE),
        ("Sales increased by 7% to $3.2 billion in 2023.", "The source does not mention 7."),
        ("Sales increased by 5% to $3.2 billion in 2021.", "The source does not mention 2021."),
        ("Some employees receive a laptop before the first day.", OPPOSITE),
        ("All employees receive a laptop after the first day.", OPPOSITE),
        ("I believe that the warranty lasts 12 months.", SPEAKER),
        (
            "Keller increased purchase sales before machine employees.",
            "The source has these words, but says something else.",
        ),
        ("The moon orbits the earth because of gravity.", "The source does not mention “moon”, “orbits” or “earth”."),
    ],
)
async def test_what_it_does_not_say_is_not_and_the_reason_tells(claim: str, reason: str) -> None:
    outcome = await check(claim, [MANUAL])
    assert (outcome.verdict, outcome.reason) == ("unsupported", reason)


async def test_only_the_cited_sources_count() -> None:
    other = source("The canteen opens at 11:30.", title="Canteen")
    claim = "The warranty lasts 12 months."
    assert (await check(claim, [other])).verdict == "unsupported"
    assert (await check(claim, [other, MANUAL])).verdict == "supported"
    assert (await check(claim, [source("", title="")])).verdict == "unsupported"
    nothing = await check(claim, [])
    assert (nothing.verdict, nothing.reason, nothing.score) == ("unsupported", "It cites no source.", 0.0)


async def test_codes_and_abbreviations_are_neither_numbers_nor_strangers() -> None:
    text = "Patients in the United Kingdom received interleukin and an IL-6 inhibitor."
    assert (await check("UK patients received an IL-6 inhibitor.", [source(text)])).verdict == "supported"


async def test_a_quotation_without_its_footnote_numbers_is_exact() -> None:
    outcome = await check("It was built\nin 1990 and sold.", [source("It was built in 1990[3] and sold.[4]")])
    assert (outcome.verdict, outcome.score) == ("supported", 1.0)


async def test_words_of_several_sources_need_not_stand_together() -> None:
    rooms = source("Basel rents twelve rooms for visitors from abroad.")
    meals = source("Every canteen lunch costs nine francs on weekdays.")
    claim = "Basel rents rooms, every lunch costs nine francs, visitors on weekdays from abroad."
    shuffled = "Visitors francs rooms lunch Basel nine weekdays rents canteen twelve abroad."
    assert (await check(claim, [rooms, meals])).verdict == "supported"
    together = source(f"{rooms['text']} {meals['text']}")
    assert (await check(shuffled, [together])).verdict == "unsupported"


async def test_what_claims_nothing_counts_for_nothing() -> None:
    quote = "Water damage is not covered."
    outcomes, score = await LocalVerifier().verify([(quote, [MANUAL]), ("Why?", [MANUAL])])
    assert [outcome.verdict for outcome in outcomes] == ["supported"] * 2
    assert score == (await LocalVerifier().verify([(quote, [MANUAL])]))[1] > 0.9
    assert await LocalVerifier().verify([("Why?", [MANUAL])]) == ([outcomes[1]], 0.0)


async def test_an_invention_among_quotations_is_found_and_lowers_the_whole() -> None:
    quotes = ["Water damage is not covered.", "The office has twelve rooms."]
    invention = "Every customer may keep a spare grinder at home for free."
    outcomes, score = await LocalVerifier().verify([(text, [MANUAL]) for text in [*quotes, invention]])
    assert [outcome.verdict for outcome in outcomes] == ["supported", "supported", "unsupported"]
    assert score < (await LocalVerifier().verify([(text, [MANUAL]) for text in quotes]))[1]


@pytest.mark.parametrize(
    ("claim", "said", "reason"),
    [
        ("The lease lasts twelve months.", "The lease lasts 12 months.", ""),
        ("The house has nine rooms.", "The house has a hall and a kitchen.", ""),
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
