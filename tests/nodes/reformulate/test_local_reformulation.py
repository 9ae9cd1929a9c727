"""Other queries for what was missing."""

import pytest

from domain.documents import Source
from domain.text.abbreviations import find_abbreviations
from nodes.reformulate.local import LocalReformulator
from tests.sources import make_source


async def reformulate(
    question: str, missing: list[str], sources: list[Source], tried: list[str], background: str = ""
) -> str | None:
    return await LocalReformulator().reformulate(question, missing, sources, tried, background)


def source(text: str) -> Source:
    return make_source(text, title="Pump manual", score=0.3, dense=0.4)


MANUAL = source(
    "The mean time between failures (MTBF) of the pump is 9,000 hours. Use PPE (personal protective equipment)."
)


async def test_an_abbreviation_is_spelt_out_as_the_sources_do() -> None:
    query = await reformulate("What is the MTBF?", [], [MANUAL], ["What is the MTBF?"])
    assert query == "What is the MTBF mean time between failures?"


async def test_a_spelt_out_term_gets_its_abbreviation() -> None:
    query = await reformulate("Which personal protective equipment is needed?", [], [MANUAL], [])
    assert query == "Which personal protective equipment is needed? PPE"


async def test_nothing_is_tried_twice() -> None:
    question = "What is the MTBF?"
    assert (
        await reformulate(question, [], [MANUAL], [question, "WHAT IS THE MTBF mean time between failures ?"]) is None
    )


async def test_there_may_be_nothing_new() -> None:
    assert await reformulate("filter pump", [], [], []) is None
    assert await reformulate("What does a zorblat cost?", ["zorblat", "cost"], [MANUAL], []) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("made by the National Aeronautics and Space Administration (NASA).", {"NASA"}),
        ("An IDS (intrusion detection system) and two application programming interfaces (APIs)", {"IDS", "APIs"}),
        ("the report (PDF) and Table (B2)", set()),
        ("see the annex (A4 paper) in March (2019)", set()),
        ("", set()),
    ],
)
def test_only_real_abbreviations_are_found(text: str, found: set[str]) -> None:
    assert set(find_abbreviations(text)) == found


async def test_a_follow_up_keeps_what_its_conversation_lent_it() -> None:
    question, background = "What is its MTBF?", " (pump Amsel)"
    query = await reformulate(question, [], [MANUAL], [question + background], background)
    assert query == f"What is its MTBF mean time between failures?{background}"
    assert await reformulate("What is it?", [], [MANUAL], [f"What is it?{background}"], background) is None
