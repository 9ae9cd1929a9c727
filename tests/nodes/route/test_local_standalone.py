"""Follow-ups that lean on the conversation, and questions that do not."""

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.outcome import Framing
from domain.text.languages import Language
from nodes.route.local.standalone import LocalRewriter, add_background, make_standalone
from tests.sources import make_turn as turn

WARRANTY = [turn("How long is the warranty of the Lindenhof W2?")]


@pytest.mark.parametrize(
    "question",
    [
        "How long is it valid?",
        "and in 2023?",
        "What about the W3?",
        "price",
        "Does it cover water damage?",
        "Is this true for the other one?",
        "Is there an exception for that?",
    ],
)
def test_a_follow_up_takes_the_topic_along(question: str) -> None:
    made = make_standalone(question, WARRANTY)
    assert made.startswith((f"{question.rstrip('?')}? (", "How long is the warranty"))
    assert "Lindenhof" in made or "W3" in made


@pytest.mark.parametrize("question", ["Why?", "tell me more", "put that in one list", "in one sentence", "list that"])
def test_a_request_for_another_form_asks_the_last_question_again(question: str) -> None:
    assert make_standalone(question, WARRANTY) == WARRANTY[0]["question"]


@pytest.mark.parametrize(
    ("last", "question", "meant"),
    [
        ("How long is the warranty for accessories?", "And for stations?", "How long is the warranty for stations?"),
        ("What is the budget for the first year?", "and after 5 years?", "What is the budget after 5 years?"),
        (
            "What does it return when a request is too large?",
            "and if the response is too large?",
            "What does it return if the response is too large?",
        ),
        ("What follows a tier 1 violation of the policy?", "and tier 4?", None),
        ("Wie lange ist die Frist in der Probezeit?", "und danach?", None),
        ("Wie lange ist die Frist in der Probezeit?", "und bei Teilzeit?", "Wie lange ist die Frist bei Teilzeit?"),
        ("Quel est le délai pour un cadre ?", "et pour un apprenti ?", "Quel est le délai pour un apprenti?"),
        ("¿Cuál es el plazo para un jefe?", "y para un aprendiz?", "¿Cuál es el plazo para un aprendiz?"),
        ("How long is the leave for parents?", "and if both parents work here, does each get it?", None),
    ],
)
def test_a_fragment_takes_the_place_of_its_counterpart(last: str, question: str, meant: str | None) -> None:
    made = make_standalone(question, [turn(last)])
    assert made.startswith(f"{question} (") if meant is None else made == meant


@pytest.mark.parametrize(
    "question",
    [
        "What is the refund period?",
        "Who signed the contract with the supplier in Berlin?",
        "Is there a midway?",
        "Is it possible to return a device?",
        "What does the handbook say about company laptops and their batteries?",
        "Which documents say that the contract ends?",
    ],
)
def test_an_independent_question_is_left_alone(question: str) -> None:
    assert make_standalone(question, WARRANTY) == question


def test_without_a_conversation_nothing_is_added() -> None:
    assert make_standalone("How long is it valid?", []) == "How long is it valid?"
    assert make_standalone("How long is it valid?", [turn("Hello", route="conversational")]) == "How long is it valid?"


def test_words_that_the_question_has_are_not_repeated() -> None:
    assert make_standalone("Does its warranty end?", WARRANTY) == "Does its warranty end? (Lindenhof W2 24 months long)"


def test_a_chain_of_follow_ups_keeps_the_topic() -> None:
    second = make_standalone("Does it cover water damage?", WARRANTY)
    third = make_standalone("And theft?", [*WARRANTY, turn("Does it cover water damage?", standalone=second)])
    assert "Lindenhof" in third


def test_small_talk_in_between_is_passed_over() -> None:
    assert "Lindenhof" in make_standalone("And what about it?", [*WARRANTY, turn("Thanks!", route="conversational")])


def test_context_is_bounded() -> None:
    made = make_standalone(
        "Is it so?", [turn("Compare revenue, profit, margin, assets, debts, cash, equity, tax in Berlin, Rome")]
    )
    assert len(made.split("(")[1].split()) <= 6


def test_a_search_takes_along_what_the_last_two_questions_were_about() -> None:
    turns = [
        turn("Who sells the Falke?"),
        turn("How long is the warranty of the Amsel?", standalone="unlike"),
        WARRANTY[0],
    ]
    assert add_background("Who repairs a funnel?", turns) == "Who repairs a funnel? (long warranty Lindenhof W2 Amsel)"
    assert add_background("Is the warranty of the Amsel long?", turns[1:2]) == "Is the warranty of the Amsel long?"
    assert add_background("Who repairs a funnel?", [*turns[:1], turn("Hello", route="conversational")]).endswith(
        "(sells Falke)"
    )
    assert add_background("Who repairs a funnel?", []) == "Who repairs a funnel?"


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("How is the Lindenhof W2 cleaned?", "How is the Lindenhof W2 cleaned? (long warranty)"),
        ("Is it valid abroad?", "Is it valid abroad? (long warranty Lindenhof W2)"),
        ("Which trains go from Basel to Bern?", "Which trains go from Basel to Bern?"),
    ],
)
async def test_a_change_of_topic_takes_nothing_along(question: str, query: str, embedder: OnnxEmbedder) -> None:
    assert (await LocalRewriter(embedder).rewrite(question, WARRANTY)).query == query


def test_a_search_takes_eight_words_along_at_most() -> None:
    long = turn(" ".join(f"word{number}" for number in range(20)))
    assert add_background("Who?", [long]) == "Who? (word0 word1 word2 word3 word4 word5 word6 word7)"


def test_nothing_is_carried_over_from_what_an_answer_says_of_itself() -> None:
    said = "The documents may answer this only in part. "
    abstained, framed = turn("How long is the warranty?"), turn("How long is the warranty?")
    abstained |= {"answer": "The documents do not answer this.", "outcome": "abstained"}
    framed |= {"answer": f"{said}24 months.", "framing": Framing(opening=len(said), closing=0)}
    rows = turn("Who pays?") | {"answer": "Town | Colour\n--- | ---\nKiel | green\n\n[1]"}
    assert set(make_standalone("Does it end?", [rows]).partition("(")[2].rstrip(")").split()) == {
        "Kiel",
        "green",
        "pays",
    }
    assert make_standalone("Does it end?", [abstained]) == "Does it end? (long warranty)"
    assert make_standalone("Does it end?", [framed]) == "Does it end? (24 months long warranty)"


@pytest.mark.parametrize(
    ("question", "language", "accepts"),
    [
        ("yes", "en", True),
        ("Yes, please.", "en", True),
        ("sure, go on", "en", True),
        ("ok", "de", True),
        ("Ja, gerne!", "de", True),
        ("oui, s'il vous plaît", "fr", True),
        ("Okay, thanks", "en", False),
        ("ok, why", "en", False),
        ("yes, in 2023", "en", False),
        ("no", "en", False),
    ],
)
def test_yes_accepts_what_the_last_answer_offers(
    question: str, language: Language, accepts: bool, embedder: OnnxEmbedder
) -> None:
    offer = "Would you like to know more about carrying leave over?"
    accept = LocalRewriter(embedder).accept
    assert accept(question, [turn(answer=f"It is 28 days [1]. **{offer}**")], language) == (offer if accepts else "")
    assert not accept(question, [turn(answer="Who pays? You do.")], language)
    assert not accept(question, [turn(answer=offer) | {"outcome": "conversed"}], language)


def test_only_the_beginning_of_a_long_answer_is_read() -> None:
    assert (
        make_standalone("Does it end?", [turn("Who pays?", answer="![" * 5_000 + " Kiel")])
        == "Does it end? (Kiel pays)"
    )
    assert make_standalone("Does it end?", [turn("Who pays?", answer="![" * 10_000 + " Kiel")]) == "Does it end? (pays)"
