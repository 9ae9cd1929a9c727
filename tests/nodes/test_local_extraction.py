"""Finding the sentences that answer, and quoting them exactly."""

from collections.abc import Sequence

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Source
from domain.ports.embedding import Vector
from domain.ports.judgement import Quote
from domain.ports.models import UsageSink
from domain.state import Turn
from domain.text.sentences import JUDGED
from nodes.local.extraction.finder import extract
from tests.sources import make_source


def source(
    number: int, text: str, *, document: str = "", start: int = 0, title: str = "Handbook", score: float = 0.8
) -> Source:
    return make_source(text, number=number, document_id=document or f"d{number}", title=title, start=start, score=score)


HANDBOOK = source(
    1,
    "# Lindenhof W2\nThe Lindenhof W2 is a coffee machine for offices. It was designed by Maria Keller in Basel. "
    "The warranty lasts 24 months from the date of purchase. Water damage is not covered. "
    "Descale the machine every three months because limestone blocks the valves.",
    start=1000,
)
CANTEEN = source(
    2, "The canteen opens at 11:30 and closes at 14:00. Vegetarian dishes are served every day.", title="Canteen"
)


async def quotes_of(question: str, sources: list[Source], embedder: OnnxEmbedder, limit: int = 4) -> list[Quote]:
    quotes = await extract(question, sources, embedder, max_sentences=limit)
    for quote in quotes:
        origin = next(s for s in sources if s["number"] == quote.number)
        assert origin["text"][quote.start - origin["start"] : quote.end - origin["start"]] == quote.text
    assert len(quotes) <= limit
    for number in {quote.number for quote in quotes}:
        places = [position for position, quote in enumerate(quotes) if quote.number == number]
        assert places == list(range(places[0], places[-1] + 1))
        assert [quotes[i].start for i in places] == sorted(quotes[i].start for i in places)
    if quotes:
        best = max(quotes, key=lambda quote: quote.score)
        assert quotes[0].number == best.number
    return quotes


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("How long is the warranty of the Lindenhof W2?", "24 months"),
        ("Who designed the coffee machine?", "Maria Keller"),
        ("When does the canteen open?", "11:30"),
        ("Why must the machine be descaled?", "limestone"),
        ("Is water damage covered?", "not covered"),
    ],
)
async def test_the_best_sentence_answers(question: str, answer: str, embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of(question, [HANDBOOK, CANTEEN], embedder, 1)
    assert answer in quotes[0].text


class Counted:
    """The embedder, and the characters of each text that it was given."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self.name, self.dimension = embedder.name, embedder.dimension
        self.lengths: list[int] = []
        self._embedder = embedder

    async def embed_query(self, text: str, sink: UsageSink | None = None) -> Vector:
        return await self._embedder.embed_query(text)

    async def embed_passages(self, texts: Sequence[str], sink: UsageSink | None = None) -> Vector:
        self.lengths += map(len, texts)
        return await self._embedder.embed_passages(texts)


async def test_few_sentences_are_embedded_and_of_a_long_one_the_beginning(embedder: OnnxEmbedder) -> None:
    others = " ".join(f"Room {number} of the canteen was painted in the year {1900 + number}." for number in range(40))
    endless = "The canteen opens at 11:30 " + "and it has tables and chairs " * 40 + "and closes at 14:00."
    counted = Counted(embedder)
    quotes = await extract("When does the canteen open?", [source(1, f"{others} {endless}")], counted, max_sentences=4)
    assert "11:30" in quotes[0].text
    assert len(counted.lengths) < 10
    assert max(counted.lengths) <= JUDGED < len(endless)
    counted.lengths.clear()
    await extract("When does the canteen open?", [source(1, others)], counted, max_sentences=12)
    assert len(counted.lengths) == 12


async def test_one_sentence_is_enough_where_it_clearly_answers(embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of("When does the canteen open?", [HANDBOOK, CANTEEN], embedder)
    assert [quote.text for quote in quotes] == ["The canteen opens at 11:30 and closes at 14:00."]


async def test_a_sentence_that_starts_with_a_pronoun_brings_the_one_before(embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of("Who designed the coffee machine?", [HANDBOOK, CANTEEN], embedder)
    assert [quote.text for quote in quotes][:2] == [
        "The Lindenhof W2 is a coffee machine for offices.",
        "It was designed by Maria Keller in Basel.",
    ]


async def test_overlapping_chunks_are_quoted_once(embedder: OnnxEmbedder) -> None:
    shared = "The warranty lasts 24 months from the date of purchase."
    first = source(1, f"Some words about coffee. {shared}", document="d", start=0)
    second = source(2, f"{shared} Keep the receipt.", document="d", start=25)
    copy = source(3, f"{shared}", document="other")
    quotes = await quotes_of("How long does the warranty last?", [first, second, copy], embedder)
    assert [quote.text for quote in quotes].count(shared) == 1


async def test_a_list_that_answers_comes_whole(embedder: OnnxEmbedder) -> None:
    text = "Travel is booked by the office.\n\nExpense claims need these documents:\n- the receipt\n- the approval\n- the tax form\n\nAsk early."
    quotes = await quotes_of("Which documents are needed for an expense claim?", [source(1, text), CANTEEN], embedder)
    joined = " ".join(quote.text for quote in quotes)
    assert all(item in joined for item in ("the receipt", "the approval", "the tax form"))


async def test_a_table_row_comes_with_its_header(embedder: OnnxEmbedder) -> None:
    text = "| Model | Weight | Price |\n|---|---|---|\n| W2 | 9 kg | 850 CHF |\n| W3 | 12 kg | 1,200 CHF |"
    quotes = await quotes_of("What is the price of the W3?", [source(1, text), CANTEEN], embedder)
    assert [quote.text for quote in quotes] == ["| Model | Weight | Price |", "| W3 | 12 kg | 1,200 CHF |"]


async def test_of_two_like_sentences_the_document_that_is_asked_about_is_quoted(embedder: OnnxEmbedder) -> None:
    one = source(1, "The warranty lasts 12 months.", title="Amsel rain gauge")
    two = source(2, "The warranty lasts 36 months.", title="Falke weather station")
    quotes = await quotes_of("How long is the warranty of the Falke?", [one, two], embedder, 1)
    assert quotes[0].number == 2


async def test_headings_are_no_answers_and_no_sources_no_quotes(embedder: OnnxEmbedder) -> None:
    assert await quotes_of("What is the warranty?", [], embedder) == []
    assert await quotes_of("What is the warranty?", [source(1, "# Warranty")], embedder) == []
    assert await quotes_of("?", [CANTEEN], embedder)


SOIL = "| Soil | Interval | Amount |\n|---|---|---|\n| sand | every 2 days | 10 l |\n| clay | every 5 days | 15 l |"


async def test_a_row_that_matches_less_is_left_out(embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of("How often should I water sand?", [source(1, SOIL)], embedder)
    assert [quote.text for quote in quotes] == ["| Soil | Interval | Amount |", "| sand | every 2 days | 10 l |"]


async def test_rows_that_match_equally_come_together(embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of("How often should I water sand and clay?", [source(1, SOIL)], embedder)
    assert [quote.text.split()[1] for quote in quotes] == ["Soil", "sand", "clay"]


async def test_the_first_row_of_a_table_cut_in_two_may_answer(embedder: OnnxEmbedder) -> None:
    rows = "Adult single | 18.50 | 23.00\nAdult return | 31.00 | 39.50"
    quotes = await quotes_of("What does an adult single cost?", [source(1, rows)], embedder)
    assert [quote.text for quote in quotes] == ["Adult single | 18.50 | 23.00"]


@pytest.mark.parametrize(
    "text",
    [
        "Net revenue\n\nThe weather was fine.",
        "Net revenue | 2024 | 2025\n\nThe weather was fine.",
        "| Item | 2024 |\n|---|---|\n| Net revenue | |\n\nThe weather was fine.",
        "The weather was fine.\n\nPepsi, net revenue report, page 2",
        "2.1 Net revenue\nThe weather was fine.",
        "NET REVENUE REPORT FOR THE YEAR 2024\n\nThe weather was fine.",
    ],
)
async def test_labels_headers_and_running_titles_are_no_answers(text: str, embedder: OnnxEmbedder) -> None:
    quotes = await quotes_of("What was the net revenue?", [source(1, text)], embedder)
    assert "revenue" not in " ".join(quote.text for quote in quotes)


async def test_a_list_without_bullets_may_be_quoted(embedder: OnnxEmbedder) -> None:
    text = "Travel papers\nPassport\nTrain ticket\nVaccination card"
    quotes = await quotes_of("Which train papers?", [source(1, text)], embedder)
    assert "Train ticket" in [quote.text for quote in quotes]
    assert "Travel papers" not in [quote.text for quote in quotes]


async def test_the_sentence_that_completes_the_best_one_comes_along(embedder: OnnxEmbedder) -> None:
    text = "Geese graze young tidewheat in April. Shooting is not permitted. The marsh is open to walkers."
    quotes = await quotes_of("When may I shoot geese?", [source(1, text)], embedder)
    assert [quote.text for quote in quotes] == ["Geese graze young tidewheat in April.", "Shooting is not permitted."]


async def test_the_source_that_answers_best_is_quoted_first(embedder: OnnxEmbedder) -> None:
    half = source(1, "Clean the funnel of the pump.")
    best = source(2, "Clean the filter of the pump with a cloth.")
    quotes = await quotes_of("How do I clean the filter of the pump and the funnel?", [half, best], embedder)
    assert [quote.number for quote in quotes] == [2, 1]


LIMITS = (
    "| Amount | Approved by |\n|---|---|\n| up to 500 euros | nobody |\n"
    "| from 500 to 2,500 euros | your team lead |\n| from 2,500 to 10,000 euros | finance |"
)


@pytest.mark.parametrize(("amount", "answer"), [("400", "nobody"), ("1,000", "team lead"), ("3000", "finance")])
async def test_the_row_whose_range_encloses_the_amount_is_quoted(
    amount: str, answer: str, embedder: OnnxEmbedder
) -> None:
    quotes = await quotes_of(f"Who approves a purchase of {amount} euros?", [source(1, LIMITS)], embedder)
    assert quotes[0].text == "| Amount | Approved by |"
    assert [answer in quote.text for quote in quotes[1:]] == [True]


async def test_a_follow_up_does_not_repeat_the_last_answer(embedder: OnnxEmbedder) -> None:
    text = "Every employee has 30 days of holiday a year. Up to five unused days may be carried over."
    said = "Every employee has 30 days of holiday a year. [1]"
    turn = make_turn("", said)
    typed = "And how many may be carried over?"
    quotes = await extract(
        f"{typed} (days holiday employee)", [source(1, text)], embedder, max_sentences=2, typed=typed, last=turn
    )
    assert [quote.text for quote in quotes] == ["Up to five unused days may be carried over."]


def make_turn(question: str, answer: str, title: str = "Handbook") -> Turn:
    return Turn(
        run_id="",
        question=question,
        standalone_question=question,
        route="needs_retrieval",
        answer=answer,
        documents=[title],
        outcome="answered",
    )


@pytest.mark.parametrize(
    ("typed", "answer"), [("And its backup?", "weekly"), ("And the Kestrel?", "64 GB"), ("Who owns it?", "Research")]
)
async def test_a_follow_up_about_a_row_gets_the_row_that_is_meant(
    typed: str, answer: str, embedder: OnnxEmbedder
) -> None:
    text = (
        "| Server | Memory | Owner | Backup |\n|---|---|---|---|\n| Kestrel | 64 GB | Finance | daily |\n"
        "| Merlin | 128 GB | Research | weekly |\n| Osprey | 256 GB | Sales | hourly |"
    )
    last = make_turn("How much memory does Merlin have?", "| Merlin | 128 GB | Research | weekly | [1]")
    quotes = await extract(
        f"{typed} (memory Merlin)", [source(1, text)], embedder, max_sentences=3, typed=typed, last=last
    )
    assert [answer in quote.text for quote in quotes[1:]] == [True]


async def test_in_which_month_is_answered_by_a_month_of_the_same_document(embedder: OnnxEmbedder) -> None:
    shower = source(1, "The emergency shower was last tested on 4 March 2026. It is flushed first.", title="Lab rules")
    servers = source(2, "Servers are patched on the first Tuesday of the month.", title="Servers")
    last = make_turn("When was the emergency shower tested?", shower["text"].split(". ")[0] + ". [1]", "Lab rules")
    typed = "In which month?"
    quotes = await extract(
        f"{typed} (emergency shower tested)", [servers, shower], embedder, max_sentences=1, typed=typed, last=last
    )
    assert "March" in quotes[0].text


async def test_a_sentence_that_names_the_subject_does_not_go_before_the_one_that_answers(
    embedder: OnnxEmbedder,
) -> None:
    title = "Prices and warranty of the W200 and the W400"
    delivery = source(
        1, "The W200 is delivered within one week, the W400 within four weeks.", document="d", title=title
    )
    warranty = source(2, "The warranty lasts 36 months for machines and 24 for parts.", document="d", title=title)
    quotes = await quotes_of("How long is the warranty of the W400?", [delivery, warranty], embedder, 1)
    assert "36 months" in quotes[0].text


async def test_what_a_colon_announces_comes_with_it(embedder: OnnxEmbedder) -> None:
    text = (
        "For travel we pay an allowance:\n\n| Absence | Allowance |\n|---|---|\n| 8 hours | 14 euros |\n\nMeals vary."
    )
    quotes = await quotes_of("What allowance is paid for travel of 8 hours?", [source(1, text)], embedder)
    assert quotes[0].text == "For travel we pay an allowance:\n\n| Absence | Allowance |"
    assert quotes[1].text == "| 8 hours | 14 euros |"
