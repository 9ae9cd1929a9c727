"""The parts of the local verifier, each by itself and without an embedder."""

import pytest

from domain.errors import EmbedderUnavailable
from domain.ports.embedding import Vector
from domain.ports.models import UsageSink
from nodes.local.verification.scoring import Signals, average, compute_score
from nodes.local.verification.source_text import SourceText, flatten
from nodes.local.verification.verifier import LocalVerifier
from nodes.local.words import read_keys
from tests.sources import make_source


def read(text: str, title: str = "Handbook") -> SourceText:
    return SourceText.read(make_source(text, title=title))


def test_words_are_compared_by_stem() -> None:
    assert read_keys("Rooms Twenty the Don’t") == ["room", "20", "the", "don't"]
    assert read_keys("1,200 rooms") == ["1200", "room"]
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
        (Signals(0.85, 0.8, 0.0, 0.0, 0.12), 0.76130),
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
    assert "3" not in text.keys


class DownEmbedder:
    name = "down"
    dimension = 1

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        raise EmbedderUnavailable

    async def embed_passages(self, texts: object, sink: UsageSink | None = None) -> Vector:
        raise EmbedderUnavailable


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
    [check], _ = await LocalVerifier(DownEmbedder()).verify([(claim, [make_source(said, title="")])])
    assert check.reason == reason if reason else check.reason not in (OPPOSITE, SPEAKER)


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
