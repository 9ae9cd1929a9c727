"""Questions about the library itself, through the whole graph."""

import re

import pytest

from app.answering.requests import Ask, collect
from app.settings import Settings
from app.wiring.services import Services
from domain.events import Done, Event
from tests.asking import LARGE, steps_of
from tests.graphs.test_answer_with_model import serve

GUIDE = b"""# Travel guide

The company pays for journeys that a manager has approved.

## Budget

Each team has 1,850 dollars a year for its meetings. Ask early.

- A night in a hotel costs at most 300 dollars.
- Meals cost at most 80 dollars a day.

## Booking

All journeys are booked in Navan. It takes a minute.

```
navan book --help
```
"""


async def ask_in_a_thread(services: Services, *questions: str) -> tuple[Done, list[Event]]:
    ended: list[Done] = []
    events: list[Event] = []
    async with services.make_run_manager() as runs:
        for question in questions:
            thread = ended[-1]["thread_id"] if ended else None
            done, events = await collect(await runs.ask(Ask(question, thread_id=thread)))
            assert done["type"] == "done", done
            ended.append(done)
    return ended[-1], events


@pytest.fixture
async def guide(services: Services, library: dict[str, str]) -> None:
    await services.library.ingestion.add("default", "guides/travel.md", GUIDE)


@pytest.mark.usefixtures("guide")
async def test_the_documents_are_listed_without_a_search_or_a_citation(services: Services) -> None:
    cases: list[tuple[str, str]] = [
        ("What documents do you have?", "There are 3 documents here:\n- "),
        ("hey, can you tell me what files i've got in here?", "There are 3 documents here:\n- "),
        ("Welche Dokumente hast du?", "Hier sind 3 Dokumente:\n- "),
        ("Quels documents as-tu ?", "Il y a 3 documents ici :\n- "),
        ("¿Qué documentos tienes?", "Aquí hay 3 documentos:\n- "),
    ]
    for question, opening in cases:
        done, events = await ask_in_a_thread(services, question)
        assert steps_of(events) == ["route", "describe"]
        assert done["answer"].startswith(opening)
        assert len(re.findall(r"^- .+$", done["answer"], re.M)) == 3
        assert "Travel guide" in done["answer"]
        assert (done["route"], done["outcome"], done["citations"]) == ("about_library", "conversed", [])


async def test_a_question_for_a_fact_is_no_request_for_a_summary(services: Services) -> None:
    for question in ("What does the warranty not cover?", "What does the warranty cover?"):
        _, events = await ask_in_a_thread(services, question)
        assert "describe" not in steps_of(events)


@pytest.mark.usefixtures("guide")
async def test_a_document_is_summarised_by_cited_quotes_under_its_headings(services: Services) -> None:
    for question in ("summarise the travel guide", "What is the travel guide about?"):
        done, events = await ask_in_a_thread(services, question)
        assert steps_of(events) == ["route", "describe"]
        assert done["outcome"] == "answered"
        for fact in ("**Budget:**", "1,850 dollars", "300 dollars", "80 dollars", "**Booking:**", "Navan"):
            assert fact in done["answer"]
        assert "navan book" not in done["answer"]
        assert len(done["answer"].split()) <= 190
        assert {citation["title"] for citation in done["citations"]} == {"Travel guide"}
        for citation in done["citations"]:
            assert all(part in GUIDE.decode() for part in citation["text"].split("\n…\n"))
            assert f"[{citation['marker']}]" in done["answer"]


@pytest.mark.usefixtures("guide")
async def test_a_topic_is_summarised_from_its_section(services: Services) -> None:
    for question, whole in (("Give me a short overview of the travel budget", False), ("travel", True)):
        done, _ = await ask_in_a_thread(services, question)
        assert (done["outcome"], done["route"]) == ("answered", "about_library")
        assert "1,850 dollars" in done["answer"]
        assert whole or "Navan" not in done["answer"]


@pytest.mark.usefixtures("guide")
async def test_a_word_that_names_nothing_is_looked_for(services: Services) -> None:
    for word in ("navan", "dollars", "x"):
        done, _ = await ask_in_a_thread(services, word)
        assert done["route"] == "needs_retrieval"
        assert done["confidence"] < 0.9
        assert (word in done["answer"].lower()) or done["outcome"] == "abstained"


@pytest.mark.usefixtures("guide")
async def test_what_was_talked_about_last_is_summarised(services: Services) -> None:
    done, _ = await ask_in_a_thread(services, "What does a night in a hotel cost at most?", "Summarise that document")
    assert "“Travel guide”" in done["answer"]
    assert "Navan" in done["answer"]


async def test_nothing_is_made_up_about_an_empty_library(services: Services) -> None:
    done, _ = await ask_in_a_thread(services, "Summarise the travel guide")
    assert (done["outcome"], done["citations"]) == ("abstained", [])
    done, _ = await ask_in_a_thread(services, "What documents do you have?")
    assert done["answer"].startswith("There are no documents yet")


FRANCE = b"# Trains in France\n\nSeats in trains cost 20 euros. A dog pays half of that.\n"
SPAIN = b"# Trains in Spain\n\nSeats in trains cost 12 euros. A dog travels for nothing.\n"


async def test_a_follow_up_is_answered_from_the_document_that_was_cited(services: Services) -> None:
    await services.library.ingestion.add("default", "spain.md", SPAIN)
    await services.library.ingestion.add("default", "france.md", FRANCE)
    for country, fact in (("Spain", "for nothing"), ("France", "half of that")):
        done, _ = await ask_in_a_thread(
            services, f"What do seats in trains cost in {country}?", "And what does a dog pay there?"
        )
        assert fact in done["answer"]
        assert done["citations"][0]["source"] == f"{country.lower()}.md"


async def test_a_word_that_names_several_documents_is_asked_back_and_the_pick_is_understood(services: Services) -> None:
    await services.library.ingestion.add("default", "spain.md", SPAIN)
    await services.library.ingestion.add("default", "france.md", FRANCE)
    done, events = await ask_in_a_thread(services, "trains")
    assert steps_of(events) == ["route", "describe", "ask_back"]
    assert done["answer"] == "Which of these do you mean?\n1. Trains in France\n2. Trains in Spain"
    [reason] = done["outcome_reasons"]
    assert (done["outcome"], done["citations"], reason["code"]) == ("asked_back", [], "ambiguous")
    for pick in ("2", "the second one", "Spain"):
        done, events = await ask_in_a_thread(services, "trains", pick)
        assert steps_of(events) == ["route", "describe"]
        assert "12 euros" in done["answer"]
        assert {citation["source"] for citation in done["citations"]} == {"spain.md"}
    done, _ = await ask_in_a_thread(services, "trains", "What does a dog pay in France?")
    assert "half of that" in done["answer"]


async def test_a_question_about_something_never_named_is_asked_back(services: Services) -> None:
    await services.library.ingestion.add("default", "spain.md", SPAIN)
    await services.library.ingestion.add("default", "france.md", FRANCE)
    done, events = await ask_in_a_thread(services, "What does a seat in a train of this country cost?")
    assert steps_of(events) == ["route", "retrieve", "rerank", "grade", "ask_back"]
    assert done["outcome"] == "asked_back"
    done, _ = await ask_in_a_thread(services, "What does a seat in a train of this country cost?", "France")
    assert "20 euros" in done["answer"]


@pytest.mark.usefixtures("guide")
async def test_a_word_that_no_document_has_gets_no_overview_of_another_subject(services: Services) -> None:
    for question in ("kubernetes", "asdfghjkl?"):
        done, _ = await ask_in_a_thread(services, question)
        assert (done["outcome"], done["citations"]) == ("abstained", [])


async def test_a_word_is_looked_for_in_the_documents_that_have_it(services: Services) -> None:
    about = [
        "Everybody has 30 days of holiday a year, and the manager has to approve it.",
        "Whoever studies may take a long unpaid leave of up to six months, and comes back to the same post.",
        "Teachers often take a year off, to travel, to rest or to write a book.",
        "A leave of absence is asked for in writing, half a year before it begins.",
    ]
    leave = "# Time off\n\n" + "\n\n".join(
        f"## Leave {name}\n\n{text}" for name, text in zip("abcd", about, strict=True)
    )
    terms = "# Terms\n\nNorth is up.\n\n## Pay\n\nDuring a sabbatical nobody is paid.\n"
    for name, text in (
        ("leave.md", leave),
        ("terms.md", terms),
        ("zebra.txt", "They live in Africa and have stripes."),
    ):
        await services.library.ingestion.add("default", name, text.encode())
    for word, source in (("holiday", "leave.md"), ("sabbatical", "terms.md"), ("Zebra", "zebra.txt")):
        done, _ = await ask_in_a_thread(services, word)
        assert done["outcome"] == "answered"
        assert {citation["source"] for citation in done["citations"]} == {source}


async def test_what_a_long_section_says_in_its_second_chunk_is_quoted_where_it_stands(services: Services) -> None:
    filler = "\n\n".join(f"The reason number {word} is told to everybody who asks." for word in "abcdefghijklmnop")
    text = f"# Fee rules\n\n## Fees\n\n{filler}\n\nThe licence fee is 4,800 euros a year."
    report = await services.library.ingestion.add("default", "fees.md", text.encode())
    assert report.chunks > 1
    done, _ = await ask_in_a_thread(services, "Summarise the document Fee rules")
    assert "4,800 euros" in done["answer"]
    [citation] = done["citations"]
    assert text[citation["start"] : citation["end"]].endswith("4,800 euros a year.")
    assert citation["text"].endswith("4,800 euros a year.")


def make_long_guide() -> bytes:
    """More than fits into a prompt, with what matters at the end of each section."""
    talk = "People travel for many reasons, and every one of them is welcome in this company. "
    parts = [
        f"## Part {part}\n\n" + f"{talk * 12}\n\n" * 2 + f"A journey of kind {part} costs at most {part * 111} dollars."
        for part in range(1, 31)
    ]
    return ("# Long guide\n\n" + "\n\n".join(parts)).encode()


@pytest.mark.parametrize(
    ("name", "question"), [("travel.md", "summarise the travel guide"), ("long.md", "What does the long guide say?")]
)
async def test_a_model_writes_the_summary_from_the_outline_and_every_section(
    settings: Settings, name: str, question: str
) -> None:
    async with serve(settings) as (services, server):
        await services.library.ingestion.add("default", name, GUIDE if name == "travel.md" else make_long_guide())
        server.behaviour.model_replies = {LARGE: "It says what journeys cost [2]."}
        done, events = await ask_in_a_thread(services, question)
    assert steps_of(events) == ["route", "describe", "generate"]
    assert (done["outcome"], done["answered_by"], len(done["citations"])) == ("answered", LARGE, 1)
    prompt = server.requests[-1]["messages"][-1]["content"]
    shown, _, rest = prompt.rpartition("</source>")
    if name == "travel.md":
        wanted = ["Budget", "Booking"], ["1,850 dollars", "80 dollars a day", "Navan"]
    else:
        wanted = [f"Part {part}" for part in range(1, 31)], [f" {part * 111} dollars" for part in range(1, 31)]
    headings, facts = wanted
    assert all(heading in rest for heading in headings)
    assert all(fact in shown for fact in facts)
    assert services.models.tokens.count(prompt) < 8_500


async def test_a_summary_is_quoted_where_its_model_fails(settings: Settings) -> None:
    async with serve(settings, model_faults={LARGE: "cut"}) as (services, _):
        await services.library.ingestion.add("default", "guides/travel.md", GUIDE)
        done, events = await ask_in_a_thread(services, "summarise the travel guide")
    assert steps_of(events) == ["route", "describe", "generate", "degrade", "describe"]
    assert (done["outcome"], done["answered_by"]) == ("answered", "local")
    assert "**Budget:**" in done["answer"]
    assert [event["answer"] for event in events if event["type"] == "correction"] == [done["answer"]]
    assert [each["instead"] for each in done["degraded"]] == ["local"]
