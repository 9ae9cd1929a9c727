"""Following what the best passages mention by title."""

import pytest

from app.wiring.services import Services
from domain.documents import Passage
from domain.profile import GradeKnobs
from nodes.ranking.links import find_names, place_linked
from tests.asking import ask_for_state


def test_names_begin_with_a_capital_or_a_digit_and_stay_within_a_clause() -> None:
    names = set(find_names("The film (see O'Neill's list) was shot by Ana de la Reguera; 1984 followed."))
    assert {"The film", "O'Neill's list", "Ana de la Reguera", "Reguera", "1984 followed"} <= names
    assert not {"film", "see O'Neill's", "The film see", "Reguera 1984", "de la Reguera"} & names


def test_a_name_has_eight_words_at_most() -> None:
    assert max(len(name.split()) for name in find_names("A " + "b " * 50)) == 8


def passage(number: int) -> Passage:
    return Passage(str(number), 0, str(number), "", "", 0, 0)


def order(relevance: list[float], linked: set[str], keep: int) -> str:
    ranked = [(passage(number), score) for number, score in enumerate(relevance)]
    return "".join(p.chunk_id for p, _ in place_linked(ranked, linked, keep))


def test_what_is_linked_gets_the_last_places_of_the_sources() -> None:
    assert order([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3], {"5"}, keep=5) == "0125346"
    assert order([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2], {"4", "5", "6"}, keep=5) == "01245637"


def test_a_mention_in_passing_stays_behind_the_sources() -> None:
    assert order([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1], {"6"}, keep=5) == "0123465"
    assert order([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.1], {"6"}, keep=2) == "0126345"


def test_what_is_linked_and_relevant_keeps_its_place() -> None:
    assert order([0.9, 0.8, 0.7, 0.6], {"1"}, keep=5) == "0123"
    assert place_linked([], set(), 5) == []


FILM = b"# The Silent Orchard\n\nThe Silent Orchard is a film of 1961 that was directed by Marta Ellingsen.\n"
DIRECTOR = b"# Marta Ellingsen\n\nMarta Ellingsen (1920-1999) grew up in the fishing port of Vardal.\n"
PLACES = ("Bergen", "Malmo", "Turku", "Riga", "Tartu")
OTHERS = [
    *(
        f"# The {place} Orchard\n\nThe {place} Orchard is a film whose director was born in {place}.\n"
        for place in PLACES
    ),
    "# Pumps\n\nThe pump must be greased every 8 weeks.\n",
    "# Leave\n\nAn employee has 25 days of leave a year.\n",
]


@pytest.mark.parametrize(("mode", "followed"), [("standard", True), ("fast", False)])
async def test_the_document_that_the_best_one_mentions_becomes_a_source(
    services: Services, mode: str, followed: bool
) -> None:
    for number, text in enumerate([FILM, DIRECTOR, *(other.encode() for other in OTHERS)]):
        await services.library.ingestion.add("default", f"{number}.md", text)
    own = services.modes[mode].model_copy(update={"name": "own", "grade": GradeKnobs(max_retries=0)})
    question = "Where was the director of the film The Silent Orchard born?"
    _, state = await ask_for_state(services, question, profile=own)
    titles = [source["title"] for source in state["sources"]]
    assert titles[0] == "The Silent Orchard"
    assert ("Marta Ellingsen" in titles[3:]) == followed
    assert state["queries_tried"] == [question]
    chunk_ids = [candidate["chunk_id"] for candidate in state["candidates"]]
    assert len(chunk_ids) == len(set(chunk_ids))
    assert chunk_ids[:5] == [source["chunk_id"] for source in state["sources"]][:5]
