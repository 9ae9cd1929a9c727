"""Estimating whether sources hold the answer."""

import numpy as np
import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.rerankers.late_interaction import LateInteractionReranker
from domain.documents import Match, Passage, Source
from domain.ports.unit_scoring import UnitScorer
from domain.profile import RetrievalKnobs
from domain.scope import Scope
from domain.state import level_of
from nodes.context import Ledger
from nodes.grade.local import Features, LocalGrader, estimate_confidence, find_missing, read_features
from nodes.reading.fitting import judge_fit
from nodes.reading.labels import find_labelled
from nodes.reading.scoring import score_units
from nodes.reading.units import split_units
from nodes.sources.fusion import blend, fuse
from tests.sources import make_source
from tests.unit_scorers import DownUnitScorer, NoTokens, make_unit_scorer

SCOPE = Scope("default")

HANDBOOK = [
    "Employees get 28 days of paid leave a year. Unused days lapse on 31 March of the following year.",
    "Travel is booked through the portal. Train is preferred to plane for journeys under five hours.",
    "The office in Lyon is open from 7:30 to 19:00 and closed on public holidays.",
    "Laptops are replaced every four years. Lost devices are reported to security within one hour.",
    "New colleagues meet their mentor, Ada Brandt, on the first day.",
    "Expenses up to 50 euros need no approval; larger ones are approved by the team lead.",
]


def source(text: str, score: float = 0.5, dense: float | None = 0.5, number: int = 1) -> Source:
    return make_source(text, number=number, score=score, dense=dense)


async def read(question: str, sources: list[Source], scorer: UnitScorer) -> Features:
    return read_features(question, sources, await score_units(question, sources, scorer, SCOPE))


async def find_sources(question: str, embedder: OnnxEmbedder) -> list[Source]:
    passages = [Passage(str(i), 0, "d", "Handbook", text, 0, len(text)) for i, text in enumerate(HANDBOOK)]
    similarity = await embedder.embed_passages(HANDBOOK) @ await embedder.embed_query(question)
    order = sorted(range(len(HANDBOOK)), key=lambda i: -similarity[i])
    candidates = fuse([Match(str(i), "d", float(similarity[i])) for i in order], [], RetrievalKnobs())
    rerank = await LateInteractionReranker(embedder, NoTokens()).score(
        Scope("default"), question, [passages[i] for i in order], Ledger()
    )
    best = sorted(zip(blend(candidates, rerank), order, strict=True), reverse=True)[:5]
    return [source(HANDBOOK[i], score, float(similarity[i]), n) for n, (score, i) in enumerate(best, 1)]


@pytest.mark.parametrize(
    "question",
    [
        "How many days of paid leave do employees get?",
        "When is the office in Lyon open?",
        "Who approves expenses above 50 euros?",
        "How often are laptops replaced?",
        "When are we open?",
        "How many days of leave?",
    ],
)
async def test_answerable_questions_pass(question: str, embedder: OnnxEmbedder) -> None:
    graded = await LocalGrader(make_unit_scorer(embedder)).grade(
        question, await find_sources(question, embedder), scope=SCOPE
    )
    assert graded.confidence >= 0.6


@pytest.mark.parametrize(
    "question",
    [
        "What is the capital of France?",
        "how do i bake sourdough bread",
        "Who won the world cup in 1998?",
        "tell me a joke",
        "Who runs the office in Tokyo?",
    ],
)
async def test_questions_about_other_things_do_not_pass(question: str, embedder: OnnxEmbedder) -> None:
    graded = await LocalGrader(make_unit_scorer(embedder)).grade(
        question, await find_sources(question, embedder), scope=SCOPE
    )
    assert graded.confidence < 0.4


async def test_a_long_question_is_not_punished_for_its_words_nor_an_endless_one_believed() -> None:
    """One unit holds fewer of the words of a long question, whether it answers or not."""
    short, long, endless = [
        (await read(question, [source(HANDBOOK[5])], DownUnitScorer())).words
        for question in ("Lunch?", "When can I have lunch if I come late?", "lunch " * 300)
    ]
    assert (short, long, endless) == (1, 9, 20)
    assert estimate_confidence(Features(6, 0.5, 0.4, words=long)) > estimate_confidence(
        Features(6, 0.5, 0.4, words=short)
    )


async def test_confidence_follows_relevance_and_similarity(embedder: OnnxEmbedder) -> None:
    question = "How many days of leave?"
    weak, relevant, similar = [
        (
            await LocalGrader(make_unit_scorer(embedder)).grade(
                question, [source(HANDBOOK[0], score, dense)], scope=SCOPE
            )
        ).confidence
        for score, dense in ((0.3, 0.4), (0.8, 0.4), (0.3, 0.8))
    ]
    assert weak < relevant
    assert weak < similar


async def test_similarity_of_a_source_found_by_words_alone_is_computed(embedder: OnnxEmbedder) -> None:
    question = "When is the office in Lyon open?"
    close = await LocalGrader(make_unit_scorer(embedder)).grade(
        question, [source(HANDBOOK[2], dense=None)], scope=SCOPE
    )
    far = await LocalGrader(make_unit_scorer(embedder)).grade(question, [source(HANDBOOK[5], dense=None)], scope=SCOPE)
    assert close.confidence > far.confidence + 0.2


async def test_a_dead_embedder_leaves_a_grade() -> None:
    question = "When is the office in Lyon open?"
    high = await LocalGrader(DownUnitScorer()).grade(
        question, [source(HANDBOOK[2], score=0.9, dense=None)], scope=SCOPE
    )
    low = await LocalGrader(DownUnitScorer()).grade(question, [source(HANDBOOK[2], score=0.1, dense=None)], scope=SCOPE)
    assert 0 < low.confidence < 0.4 < high.confidence < 1


async def test_sources_about_the_subject_that_do_not_answer_get_less(embedder: OnnxEmbedder) -> None:
    question = "How many days of paid leave do employees get?"
    answers = [source(HANDBOOK[0], 0.5, 0.6)]
    merely_about = [source("Paid leave is planned with the team lead and entered into the calendar.", 0.5, 0.6)]
    one, other = [
        (await LocalGrader(make_unit_scorer(embedder)).grade(question, each, scope=SCOPE)).confidence
        for each in (answers, merely_about)
    ]
    assert one > other + 0.1


async def test_a_part_that_nothing_answers_is_named(embedder: OnnxEmbedder) -> None:
    question = "How many days of paid leave do employees get, and how heavy is the tallest elephant in Nairobi?"
    sources = await find_sources(question, embedder)
    grade = await LocalGrader(make_unit_scorer(embedder)).grade(question, sources, scope=Scope("default"))
    assert grade.confidence >= 0.5
    assert grade.missing[-1] == "how heavy is the tallest elephant in Nairobi?"


async def test_an_answer_is_as_sure_as_its_least_sure_part(embedder: OnnxEmbedder) -> None:
    sure, unsure = "How many days of paid leave do employees get", "who approves expenses above 50 euros?"
    sources = await find_sources(f"{sure}, and {unsure}", embedder)
    grader = LocalGrader(make_unit_scorer(embedder))
    alone = await grader.grade(f"{sure}?", sources, scope=SCOPE)
    both = await grader.grade(f"{sure}, and {unsure}", sources, scope=SCOPE)
    assert level_of(alone.confidence) == "high"
    assert (level_of(both.confidence), both.missing) == ("medium", [])


async def test_a_question_that_turns_the_nearest_sentence_round_gets_less(embedder: OnnxEmbedder) -> None:
    grader = LocalGrader(make_unit_scorer(embedder))
    plain = await grader.grade("Which journeys under five hours are made by train?", [source(HANDBOOK[1])], scope=SCOPE)
    turned = await grader.grade("Which journeys over five hours are made by train?", [source(HANDBOOK[1])], scope=SCOPE)
    assert turned.confidence < plain.confidence - 0.2


def test_missing_are_the_words_that_no_source_holds() -> None:
    sources = [source(HANDBOOK[3]), source(HANDBOOK[4])]
    question = "Does Ada Brandt replace a lost iPhone-15 within 30 minutes?"
    assert find_missing(question, sources) == ["iphone15", "30", "minutes"]
    assert find_missing("Is the Handbook replacing laptops?", sources) == []


async def test_words_of_a_german_question_are_found_in_other_forms(embedder: OnnxEmbedder) -> None:
    german = source("Während der Arbeitszeiten sind Pausen von 30 Minuten einzuhalten.")
    question = "Was gilt für die Pause bei einer Arbeitszeit?"
    assert find_missing(f"{question} Und Stunden?", [german]) == ["stunden"]
    assert find_missing("Welche Zeiten sind einzuhalten?", [german]) == []
    assert find_missing("Which Rust?", [source("The trustees met.")]) == ["rust"]
    assert (await read(question, [german], make_unit_scorer(embedder))).covered == pytest.approx(1)


async def test_a_probable_answer_is_no_part_where_no_word_is_missing(embedder: OnnxEmbedder) -> None:
    grader = LocalGrader(make_unit_scorer(embedder))
    whole = source("Laptops are replaced. They are old after four years.", score=0.3, dense=0.68)
    features = await read("When are laptops too old?", [whole], grader.unit_scorer)
    assert 0.5 < estimate_confidence(features) < 0.6
    graded = await grader.grade("When are laptops too old?", [whole], scope=SCOPE)
    assert (graded.missing, graded.confidence) == ([], 0.6)
    surer = source("Laptops are replaced. They are old after four years.", score=0.5, dense=0.85)
    features = await read("When are red laptops too old?", [surer], grader.unit_scorer)
    graded = await grader.grade("When are red laptops too old?", [surer], scope=SCOPE)
    assert (graded.missing, graded.confidence) == (["red"], estimate_confidence(features))
    assert 0.5 < graded.confidence < 0.6


@pytest.mark.parametrize(
    ("question", "other", "answer"),
    [
        ("default of query_cache_size", "The default of cache_size is 4.", "The default of query_cache_size is 4."),
        ("What does --keep do?", "--keep-daily says what to keep.", "With `--keep` it stays."),
        ("What came with 3.4?", "3.4.1 came with a fix.", "With 3.4 came a fix."),
        ("What came with 3.4.1?", "3.4 came with a fix.", "With v3.4.1 came a fix."),
        ("What is E1234?", "E1233 is a fault of the fan.", "E1234 is a fault of the fan."),
        ("What came on 2023-05-01?", "A fix came on 1 May 2021.", "A fix came on 1 May 2023."),
        ("How long is the warranty of the W-40?", "The W-40 has a warranty.", "W-40: a warranty of 2 years."),
        ("How many doors has it?", "It has doors.", "It has two doors."),
        ("How many copies does it keep?", "It keeps hourly copies.", "It keeps ten hourly copies."),
        ("How often does it copy?", "It copies some days apart.", "It makes hourly copies."),
        ("What date is 1.0.8 from?", "Bolt, v1.0.8.", "Bolt 1.0.8 of 13 July 2019."),
        ("How many doors has it?", "It has:\n\n- doors", "It has two doors:\n\n- the red"),
        ("Wie viele Türen hat es?", "Es hat Türen.", "Es hat zwei Türen."),
        ("What does Article 4 say?", "Article 4", "Article 4: no saws."),
    ],
)
def test_what_lacks_a_name_or_the_figure_that_is_asked_for_is_no_answer(question: str, other: str, answer: str) -> None:
    [no], [yes] = split_units(source(other)), split_units(source(answer))
    assert judge_fit(question, [no], np.ones(1, np.float32)) == "none"
    assert judge_fit(question, [yes], np.ones(1, np.float32)) != "none"


@pytest.mark.parametrize(
    ("question", "other", "answer"),
    [
        ("Who drew the map?", "The map was drawn in haste.", "The map was drawn by Ada Brandt."),
        ("Who is in the Falke team?", "Members of the Falke Core keep it secret.", "In it are Ada Brandt and Ben Ode."),
        ("Wer zeichnete die Karte?", "Ada Brandt zeichnete die Karte.", ""),
        ("When was the map drawn?", "The map was drawn in 3 colours.", "The map was drawn in 1911."),
        ("How often is the map drawn?", "The map is drawn by 3 people.", "The map is drawn every year."),
        ("How much is the map?", "The map covers 25 towns.", "The map is 12.50 € at the gate."),
        ("What are tolls for?", "Tolls and taxes", "Tolls and taxes are for roads."),
        ("How many locks has the map?", "The map of 1732 shows a coast.", "The map shows 12 locks."),
        ("How many weeks took the map?", "The map was drawn by 3 people.", "The map took 9 months."),
        ("Wie viel kostet die Karte?", "Die Karte zeigt 25 Orte.", "Die Karte kostet 12 Euro."),
        ("If it rains, does the gate open?", "If it rains, the gate opens.", ""),
        ("Which map did we draw?", "The map of the coast was drawn.", "We drew the map of the coast."),
        ("Does the board overrule a member?", "A member may overrule the board.", ""),
        ("What is the default number of doors?", "It has 2 doors:\n\n- red", "The number of doors is 2."),
        ("What are all keys of the gate?", "The gate has a red key.", ""),
        ("Which keys has Gate 3?", "3. The gate has a red key.", "Gate 3.1 has a red key."),
        (
            "What of tolls and taxes?",
            "# Tolls and taxes\n\n## Times\n\nTolls are due.\n\n## Taxes\n\nDue.",
            "# Tolls and taxes\n\nTolls and taxes are due.",
        ),
    ],
)
def test_only_what_is_seen_to_be_of_the_kind_asked_for_is_sure(question: str, other: str, answer: str) -> None:
    for text, is_sure in ((other, False), (answer, True)):
        if units := split_units(make_source(text, title="Tolls and taxes")):
            assert (judge_fit(question, units[:1], np.ones(1, np.float32), units) in ("open", "figure")) == is_sure


@pytest.mark.parametrize(
    ("question", "fits"),
    [
        ("How many seals are in Kiel?", False), ("How many boats has Kiel?", True), ("How many cranes has Kiel?", False),
        ("What are the cranes of the town Kiel?", False), ("What are the boats and cranes of Kiel?", True),
    ],
)  # fmt: skip
def test_a_row_answers_only_in_a_column_that_is_asked_for_and_filled(question: str, fits: bool) -> None:
    [row] = split_units(source("Town | Boats | Cranes | Year\n--- | --- | --- | ---\nKiel | 12 | | 2024"))
    assert (judge_fit(question, [row], np.ones(1, np.float32)) != "none") == fits
    if question.startswith("What"):
        return
    # Two rows are not how many there are.
    assert judge_fit(question, [row, row], np.ones(2, np.float32)) != "figure"


@pytest.mark.parametrize(
    "question", ["What is the email address of Ada Brandt?", "Wie lautet die E-Mail-Adresse von Ada Brandt?"]
)
def test_a_mail_address_is_seen_to_be_what_is_asked_for(question: str) -> None:
    for text, fit in (("Contact: Ada Brandt, ada@falke.example", "figure"), ("Contact: Ada Brandt, room 4", "open")):
        assert judge_fit(question, split_units(source(text)), np.ones(1, np.float32)) == fit
        assert ({"mail", "email"}.isdisjoint(find_missing(question, [source(text)]))) == (fit == "figure")


async def test_what_cannot_be_an_answer_is_shown_as_a_passage(embedder: OnnxEmbedder) -> None:
    grader = LocalGrader(make_unit_scorer(embedder))
    for text, fits in (("Laptops are replaced often.", False), ("Laptops are replaced every four years.", True)):
        graded = await grader.grade("How often are laptops replaced?", [source(text, 0.9, 0.9)], scope=SCOPE)
        assert (graded.confidence >= 0.5) == fits


@pytest.mark.parametrize(
    ("question", "label"),
    [
        ("What does Article 35 say?", "Article 35"), ("Was steht in § 7?", "§ 7"), ("What is step 1?", "1."),
        ("What is the second step of the import?", "2."), ("Was ist der zweite Schritt?", "2."),
        ("What is the spare code?", "Spare code"), ("What is the code?", ""), ("What does Article 3 say?", ""),
        ("What does Article 35 say of boats?", ""), ("What does clause 2.3 say?", "2.3. Fees"),
    ],
)  # fmt: skip
async def test_what_has_the_label_that_is_asked_for_is_sure(question: str, label: str, embedder: OnnxEmbedder) -> None:
    text = "Article 35 Leave is rare. It is granted.\n\n§ 7 Es ruht.\n\nSpare code: owl\n\n1. Run it.\n2. Check it."
    text += "\n\n3.2. Clause 2.3 survives.\n\n2.3. Fees are due."
    sources = [make_source(text, title="Import", score=0.3, dense=0.1)]
    grade = await LocalGrader(make_unit_scorer(embedder)).grade(question, sources, scope=SCOPE)
    assert (level_of(grade.confidence) == "high") == bool(label)
    scored = await score_units(question, sources, DownUnitScorer(), SCOPE)
    assert all(scored.units[place].block == scored.units[scored.labelled[0]].block for place in scored.labelled)
    assert not label or label in scored.units[scored.labelled[0]].whole


def test_a_label_is_of_the_part_that_is_asked_about() -> None:
    text = "## High policy\n\nDrawback: it is static.\n\n## Low policy\n\nDrawback: it is slow."
    units = split_units(make_source(text, title="Policies") | {"heading_path": ["High policy"]})
    assert [units[i].text for i in find_labelled("drawback of the high policy", units, "en")] == [
        "Drawback: it is static."
    ]


async def test_what_is_asked_of_a_name_may_stand_below_a_heading_of_its_own(embedder: OnnxEmbedder) -> None:
    text = "# Boats and warranty\n\n## Delivery\n\nThe W-40 comes in 4 weeks.\n\n## Warranty\n\nThe warranty lasts 36 months."
    sources = [make_source(text, title="Boats and warranty")]
    question, scorer = "How long is the warranty of the W-40?", make_unit_scorer(embedder)
    scored = await score_units(question, sources, scorer, SCOPE)
    assert scored.units[int(scored.shares.argmax())].section == "Warranty"
    assert level_of((await LocalGrader(scorer).grade(question, sources, scope=SCOPE)).confidence) == "low"


async def test_a_row_without_a_name_says_not_surely_who(embedder: OnnxEmbedder) -> None:
    grader = LocalGrader(make_unit_scorer(embedder))
    rows = ("Radium:\n- Symbol: Ra\n- discovered: 1898", "Radium:\n- Symbol: Ra\n- discovered by: Marie Curie")
    looked_up = [{**source("Radium | Ra", 0.9), "computed": row} for row in rows]
    grades = [await grader.grade("Who discovered radium?", [each], scope=SCOPE) for each in looked_up]  # type: ignore[list-item]
    assert [level_of(grade.confidence) for grade in grades] == ["medium", "high"]
