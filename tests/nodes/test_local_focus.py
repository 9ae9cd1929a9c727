"""Questions about a known subject: is the property that they ask for in the documents?"""

import pytest

from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.documents import Source
from domain.state import Turn
from nodes.local.grading.grader import LocalGrader, read_signs
from nodes.local.reading.focus import find_documents, find_focus
from tests.sources import make_source

PRESS = make_source(
    "The Amsel K3 presses 40 litres of juice an hour. It is delivered within two weeks, and was designed by Ada Brandt.",
    number=1,
    document_id="press",
    title="Amsel K3 juice press",
    dense=0.6,
)
MILL = make_source(
    "The Drossel M5 grinds 12 kg of grain an hour. The guarantee of the Drossel M5 runs for 36 months. It costs 490 euros.",
    number=2,
    document_id="mill",
    title="Drossel M5 mill",
    dense=0.5,
)
SERVERS = make_source(
    "| Server | Location | Memory |\n|---|---|---|\n| Kestrel | Rack A3 | 64 GB |\n| Merlin | Rack B1 | 128 GB |",
    title="Servers",
    dense=0.5,
)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long is the warranty of the Amsel K3?", "is the warranty of the"),
        ("How long is the Amsel K3?", "How long is the"),
        ("Who designed the Amsel juice press?", "Who designed the"),
        ("What is Ada Brandt's extension?", "What is extension?"),
        ("In which month? (founded Drossel)", "In which month?"),
    ],
)
def test_the_focus_is_the_question_without_its_subject(question: str, text: str) -> None:
    focus = find_focus(question, PRESS["title"])
    assert focus is not None
    assert focus.text == text


@pytest.mark.parametrize(
    "question",
    [
        "How long is the warranty?",
        "What is the Amsel K3?",
        "Tell me about the warranty of the Amsel K3.",
        "Is the Amsel K3 still under warranty?",
        "How long does the fruit press of a family with an orchard of the Amsel kind keep its colour?",
        "Who brought the Amsel K3 from Lyon to Basel?",
    ],
)
def test_a_question_without_a_subject_or_about_much_has_no_focus(question: str) -> None:
    assert find_focus(question, PRESS["title"]) is None


@pytest.mark.parametrize(
    ("question", "sources"),
    [
        ("How much juice does the Amsel K3 make?", [PRESS, MILL]),
        ("Who is the designer of the Amsel K3?", [PRESS, MILL]),
        ("How long is the warranty of the Drossel M5?", [MILL, PRESS]),
        ("What is the price of the Drossel M5?", [MILL, PRESS]),
        ("How much memory does Merlin have?", [SERVERS]),
    ],
)
async def test_what_a_document_says_of_the_subject_is_not_missing(
    question: str, sources: list[Source], embedder: OnnxEmbedder
) -> None:
    assert (await read_signs(question, sources, embedder)).absence < 0.3


@pytest.mark.parametrize(
    ("question", "sources"),
    [
        ("What colour is the Amsel K3?", [PRESS, MILL]),
        ("What is the price of the Amsel K3?", [PRESS, MILL]),
        ("How loud is the Amsel K3?", [PRESS, MILL]),
        ("Who designed the Drossel M5?", [MILL, PRESS]),
        ("What is Ada Brandt's salary?", [PRESS, MILL]),
        ("What is the colour of Merlin?", [SERVERS]),
    ],
)
async def test_what_is_only_said_of_another_subject_or_of_none_is_missing(
    question: str, sources: list[Source], embedder: OnnxEmbedder
) -> None:
    assert (await read_signs(question, sources, embedder)).absence > 0.5


async def test_what_is_missing_costs_confidence(embedder: OnnxEmbedder) -> None:
    said = await LocalGrader(embedder).grade("Who designed the Amsel K3?", [PRESS, MILL])
    missing = await LocalGrader(embedder).grade("Who owns the Amsel K3?", [PRESS, MILL])
    assert missing.confidence < said.confidence - 0.05


async def test_the_last_question_asked_again_of_another_subject_keeps_its_focus(embedder: OnnxEmbedder) -> None:
    asked = "How long is the warranty of the Drossel M5?"
    last = Turn(
        run_id="",
        question=asked,
        standalone_question=asked,
        route="needs_retrieval",
        answer="36 months.",
        documents=[],
        outcome="answered",
    )
    typed = "And the Amsel K3?"
    signs = await read_signs(f"{typed} (warranty Drossel M5)", [PRESS, MILL], embedder, typed=typed, last=last)
    assert signs.absence > 0.3
    assert (await read_signs(typed, [PRESS, MILL], embedder)).absence == 0


def test_a_document_names_the_subject_wherever_it_does() -> None:
    focus = find_focus("What is the price of the Drossel M5?", "")
    assert focus is not None
    assert find_documents(focus, [PRESS, MILL]) == {"mill"}
    assert find_documents(focus, [PRESS, SERVERS]) == set()
