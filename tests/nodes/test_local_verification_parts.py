"""The parts of the local verifier, each by itself and without an embedder."""

import pytest

from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Vector
from domain.ports.models import UsageSink
from nodes.local.verification.contradictions import find_contradiction
from nodes.local.verification.names import find_strange_name
from nodes.local.verification.numbers import agree, read_numbers
from nodes.local.verification.scoring import Signals, average, compute_score
from nodes.local.verification.source_text import SourceText
from nodes.local.verification.verifier import LocalVerifier
from nodes.local.verification.words import flatten, stem_of, stems_of, weigh
from tests.sources import make_source


def read(text: str, title: str = "Handbook") -> SourceText:
    return SourceText.read(make_source(text, title=title))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It costs $3.2 billion in 2023.", [(3.2e9, "$", "$3.2 billion", False), (2023, "", "2023", False)]),
        ("about 30 rooms", [(30, "room", "30 rooms", True)]),
        ("over $5 million dollars", [(5e6, "$", "$5 million", True)]),
        ("5% more", [(5, "%", "5%", False)]),
        ("thirty percent", [(30, "%", "thirty percent", False)]),
        ("1,200 people", [(1200, "peopl", "1,200 people", False)]),
        ("2.5k users", [(2500, "user", "2.5k users", False)]),
        ("twelve-month term", [(12, "month", "twelve-month", False)]),
        ("3 of the rooms", [(3, "", "3", False)]),
        ("A-4 paper, IL-6 and room B204", []),
        ("3 hundred rooms", [(300, "room", "3 hundred rooms", False)]),
        ("3 thousand rooms", [(3000, "room", "3 thousand rooms", False)]),
        ("3 million rooms", [(3e6, "room", "3 million rooms", False)]),
        ("3 bn rooms", [(3e9, "room", "3 bn rooms", False)]),
        ("3m rooms", [(3e6, "room", "3m rooms", False)]),
        ("no numbers", []),
    ],
)
def test_numbers_are_read_with_unit_and_scale(text: str, numbers: list[tuple[float, str, str, bool]]) -> None:
    assert [(n.value, n.unit, n.text, n.roughly) for n in read_numbers(text)] == numbers


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("12 rooms", "twelve rooms", True),
        ("12 rooms", "13 rooms", False),
        ("220", "220 million", True),
        ("220 million", "220", False),
        ("about 100 rooms", "91 rooms", True),
        ("about 100 rooms", "90 rooms", True),
        ("about 100 rooms", "89 rooms", False),
        ("100 rooms", "91 rooms", False),
        ("109 rooms", "nearly 100 rooms", True),
        ("0 rooms", "100 rooms", False),
    ],
)
def test_numbers_agree_by_value_scale_or_roughly(one: str, other: str, same: bool) -> None:
    [first], [second] = read_numbers(one), read_numbers(other)
    assert bool(agree(first, second)) is same


def test_words_weigh_by_kind() -> None:
    assert weigh({"cat"}) == 1.0
    assert weigh({"his"}) == 0.7
    assert weigh({"i"}) == 1.5
    assert weigh({"yes"}) == 1.0
    assert weigh({"his", "cat", "i"}) == 3.2


def test_words_are_compared_by_stem() -> None:
    assert (stem_of("Rooms"), stem_of("Twenty"), stem_of("the"), stem_of("Don’t")) == ("room", "20", "the", "don't")
    assert stems_of("1,200 rooms") == {"1200", "room"}
    assert flatten(" A  b.\n C! .") == "a b. c"


@pytest.mark.parametrize(
    ("signals", "score"),
    [
        (Signals(0.70, 0.59, 0.0), 0.5),
        (Signals(1.0, 1.0, 0.0), 0.95256),
        (Signals(0.0, 0.0, 0.0), 0.04744),
        (Signals(0.5, 1.0, 0.0), 0.06452),
        (Signals(1.0, 0.3, 0.0), 0.04944),
        (Signals(1.0, 0.3, 0.05), 0.59002),
        (Signals(0.9, 0.3, 0.1), 0.95223),
        (Signals(0.85, 0.8, 0.0, 1.0), 0.38029),
        (Signals(0.85, 0.8, 0.0, 0.5), 0.95073),
        (Signals(0.85, 0.8, 0.0, 0.0, 0.12), 0.63642),
    ],
)
def test_a_score_of_a_half_is_where_support_begins(signals: Signals, score: float) -> None:
    assert compute_score(signals) == pytest.approx(score, abs=1e-5)


def test_signals_are_averaged() -> None:
    one, other = Signals(1.0, 0.8, 0.2, 1.0, 0.1), Signals(0.0, 0.4, 0.0, 0.0, 0.3)
    mean = average([one, other])
    values = (mean.coverage, mean.closeness, mean.spread, mean.contradictions, mean.opposition)
    assert values == pytest.approx((0.5, 0.6, 0.1, 0.5, 0.2))
    assert not mean.quoted


def test_words_are_close_within_three_content_words_of_a_sentence() -> None:
    text = read("Rooms need oak doors beside large windows. Visitors park outside.")
    assert text.find_closeness("room", "oak") == 1.0
    assert text.find_closeness("room", "door") == 1.0
    assert text.find_closeness("room", "window") == 0.5
    assert text.find_closeness("room", "park") == 0.0
    assert text.find_closeness("room", "moon") == 0.0


def test_a_source_is_read_with_its_title_and_without_markers() -> None:
    text = read("It was built [3] here.", title="Old mill")
    assert text.flat == "old mill it was built here"
    assert {"old", "mill", "built"} <= text.keys
    assert [number.text for number in text.numbers] == []


@pytest.mark.parametrize(
    ("claim", "said", "reason"),
    [
        (
            "The lease lasts 24 months.",
            "The lease lasts 12 months.",
            "The source says 12 months, the answer says 24 months.",
        ),
        ("The lease lasts twelve months.", "The lease lasts 12 months.", None),
        ("The lease began in 2021.", "The lease began in spring.", "The source does not mention 2021."),
        ("The house has nine rooms.", "The house has a hall and a kitchen.", None),
        (
            "Sales of coffee decreased in Basel.",
            "Sales of coffee increased in Basel.",
            "The source says “increases”, the answer says “decreases”.",
        ),
        ("Sales of coffee increased and decreased in Basel.", "Sales of coffee increased in Basel.", None),
        ("Sales decreased for other firms.", "Sales of coffee increased in Basel.", None),
        ("Dogs are not allowed indoors.", "Dogs are allowed indoors.", "The answer denies what the source says."),
        ("Dogs are allowed indoors.", "Dogs aren't allowed indoors.", "The source denies what the answer says."),
        ("Dogs are not allowed indoors.", "Dogs are never allowed indoors.", None),
        ("Dogs do not bark loudly indoors.", "Dogs bark loudly indoors.", "The answer denies what the source says."),
        ("Dogs bark loudly indoors.", "Dogs do not bite or run; they bark loudly indoors.", None),
        ("Cats never bother big dogs.", "Cats do bother big dogs, not horses.", None),
        ("My lease lasts 12 months.", "The lease lasts 12 months.", "“My” is not the source."),
        ("My lease lasts 12 months.", "My lease lasts 12 months.", None),
    ],
)
def test_a_contradiction_is_told_to_the_reader(claim: str, said: str, reason: str | None) -> None:
    text = read(said)
    assert find_contradiction(claim, said, [text], text.keys) == reason


@pytest.mark.parametrize(
    ("claim", "strange"),
    [
        ("The mill was built by Anna Keller.", None),
        ("The mill was built by Anna Huber.", "The source does not mention Huber."),
        ("The mill belongs to Anna's brother.", None),
        ("Built by someone.", None),
        ("It was old. Huber built it.", None),
        ("The mill stands in the UK now.", None),
        ("The mill stands in the USA now.", "The source does not mention USA."),
        ("The British mill stands.", "The source does not mention British."),
        ("A Swiss mill stands.", None),
        ("The mill obeys a rule (MR) today.", None),
        ("The mill is in Keller-Huber hands.", None),
        ("The mill is in Huber-Keller hands.", "The source does not mention Huber-Keller."),
        ("Mill Anna Huber", None),
        ("It was built by pre-Huber people.", None),
        ("It is a Huber mill of old.", "The source does not mention Huber."),
    ],
)
def test_a_name_that_no_source_has_is_told_to_the_reader(claim: str, strange: str | None) -> None:
    text = read("Anna Keller from Switzerland, called Swiss, built the mill in the United Kingdom.")
    assert find_strange_name(claim, [text], text.keys) == strange


class DownEmbedder:
    name = "down"
    dimension = 1

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        raise EmbedderUnavailable

    async def embed_passages(self, texts: object, sink: UsageSink | None = None) -> Vector:
        raise EmbedderUnavailable


async def test_words_alone_judge_where_the_embedder_is_down() -> None:
    lease = make_source("The lease of the mill lasts 12 months and ends in spring.")
    claims = [("The lease lasts 12 months [1].", [lease]), ("The moon orbits the earth [1].", [lease])]
    checks, score = await LocalVerifier(DownEmbedder()).verify(claims)
    assert [check.verdict for check in checks] == ["supported", "unsupported"]
    assert checks[1].reason == "The source does not mention “moon”, “orbits” or “earth”."
    assert checks[0].score > 0.5 > checks[1].score
    assert 0.0 < score < checks[0].score


async def test_an_empty_source_supports_nothing() -> None:
    empty = make_source("", title="")
    [check], score = await LocalVerifier(DownEmbedder()).verify([("The lease lasts 12 months.", [empty])])
    assert check.verdict == "unsupported"
    assert score == pytest.approx(0.04744, abs=1e-5)
