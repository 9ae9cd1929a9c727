"""Other queries for what was missing."""

import pytest

from domain.documents import Source
from domain.text.abbreviations import find_abbreviations
from nodes.local.reformulation import LocalReformulator
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


ORCHARD = source(
    "Its cameraman Nils Holm-Berg retired in 1990. The Silent Orchard is a film that Marta Ellingsen directed. The pump "
    "stands in Vardal."
)


async def test_names_that_the_sources_bring_in_are_added() -> None:
    question = "Who is the sister of the director of the film The Silent Orchard?"
    assert await reformulate(question, [], [ORCHARD], [question]) == f"{question} (Marta Ellingsen Nils Holm-Berg)"
    assert await reformulate(question, [], [source("A pump."), source("A valve."), ORCHARD], [question]) is None


async def test_a_name_that_the_question_has_is_none_to_add() -> None:
    question = "Which is the film that Ellingsen, Marta was the director of?"
    assert await reformulate(question, [], [ORCHARD], [question]) == f"{question} (The Silent Orchard Nils Holm-Berg)"


async def test_nothing_is_tried_twice() -> None:
    question = "What is the MTBF of the film's pump?"
    tried = [question]
    while (query := await reformulate(question, [], [MANUAL, ORCHARD], tried)) is not None:
        assert query.casefold() not in {earlier.casefold() for earlier in tried}
        tried.append(query)
    assert len(tried) == 3
    assert (
        await reformulate(question, [], [MANUAL, ORCHARD], [question, *(q.upper() + " ?" for q in tried[1:])]) is None
    )


async def test_there_may_be_nothing_new() -> None:
    assert await reformulate("filter pump", [], [], []) is None
    assert await reformulate("why is that so?", [], [ORCHARD], []) is None
    assert await reformulate("What does a zorblat cost?", ["zorblat", "cost"], [ORCHARD], []) is None


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
    question, background = "Who is the sister of the director of it?", " (film The Silent Orchard)"
    query = await reformulate(question, [], [ORCHARD], [question + background], background)
    assert query == f"{question} (Marta Ellingsen Nils Holm-Berg){background}"
    assert await reformulate(question, [], [source("A pump.")], [question + background], background) is None
