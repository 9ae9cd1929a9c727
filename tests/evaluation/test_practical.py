"""Practical sets: real files, and the facts that a useful answer holds."""

import json
from pathlib import Path

import pytest

from app.evaluation.asking import Cited, Outcome
from app.evaluation.evaluation import Options, evaluate
from app.evaluation.facts import find_facts, fold
from app.evaluation.practical import list_flaws
from app.evaluation.report import write_report
from app.evaluation.sets import Question, SetError, read_sets
from app.wiring.services import Services
from domain.profile import MODES
from tests.evaluation.test_evaluation import count

BICYCLES = """# Bicycles

Staff may borrow one of the 12 company bicycles for a weekend. The deposit is 40 euros.

## Repairs

Report a flat tyre to the porter. The porter mends it within two working days.
"""
PARKING = """# Parking

A parking permit for a car costs 35 euros a month. The garage closes at 22:30.
"""

QUESTIONS = [
    {
        "id": "deposit",
        "library": "staff",
        "question": "How high is the deposit for a bicycle?",
        "type": "numeric",
        "answerable": True,
        "must": [["40 euros", "€40"]],
        "source": "bicycles.md",
    },
    {
        "id": "permit",
        "library": "site",
        "before": ["When does the garage close?"],
        "question": "What does a parking permit cost?",
        "type": "followup",
        "answerable": True,
        "must": [["35 euros"], ["month"]],
        "source": "parking.md",
    },
    {
        "id": "chess",
        "library": "site",
        "question": "Who won the chess olympiad of 1958?",
        "type": "unanswerable",
        "answerable": False,
    },
    {"id": "hello", "library": "staff", "question": "hello there", "type": "talk", "answerable": True, "talk": True},
]


def write_set(folder: Path, rows: list[dict[str, object]]) -> Path:
    for library, name, text in (("staff", "bicycles.md", BICYCLES), ("site", "parking.md", PARKING)):
        (folder / "files" / library).mkdir(parents=True, exist_ok=True)
        (folder / "files" / library / name).write_text(text, "utf-8")
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return folder


async def test_each_library_is_asked_in_a_workspace_of_its_own(services: Services, tmp_path: Path) -> None:
    [each] = read_sets([str(write_set(tmp_path / "firm", QUESTIONS))], workspace=None, limit=None)
    assert each.is_practical
    modes = [MODES["standard"]]
    [evaluated] = await evaluate(services, [each], modes, Options(), lambda *_: None)
    [result] = evaluated.results
    assert [cited.doc.rsplit("/", 1)[1] for cited in result.outcomes["permit"].citations] == ["parking.md"]
    assert result.outcomes["deposit"].facts_shown
    assert not result.outcomes["chess"].citations
    assert result.metrics["useful"] == result.metrics["facts_shown"] == 1
    page = write_report([evaluated], tmp_path / "out", "machine").read_text("utf-8")
    assert "35 euros" in page
    assert evaluated.kept is None
    for table in ("documents", "term_frequencies", "vocabulary"):
        assert await count(services, table) == 0


async def test_what_is_kept_is_not_embedded_again(services: Services, tmp_path: Path) -> None:
    [each] = read_sets([str(write_set(tmp_path / "firm", QUESTIONS[:1]))], workspace=None, limit=None)
    [evaluated] = await evaluate(services, [each], [], Options(keep=True), lambda *_: None)
    assert evaluated.kept
    [document] = await services.library.documents.list(f"{evaluated.kept}-staff")
    await evaluate(services, [each], [], Options(keep=True), lambda *_: None)
    assert await services.library.documents.list(f"{evaluated.kept}-staff") == [document]


async def test_a_question_after_another_is_answered_as_a_follow_up(services: Services, tmp_path: Path) -> None:
    """Steps may take 200 words; a follow-up asks for one thing more and gets 80."""
    rows: list[dict[str, object]] = [
        {**QUESTIONS[1], "id": "alone", "question": "How do I open the garage by telephone?", "before": []},
        {**QUESTIONS[1], "id": "after", "question": "And how do I open it by telephone?"},
    ]
    folder = write_set(tmp_path / "firm", rows)
    calls = "\n".join(
        f"Call the {n}th number of the list and tell the porter your name and your car." for n in range(4, 14)
    )
    opening = f"\n## Opening\n\nTo open the garage by telephone, call the porter at night.\n{calls}\n"
    (folder / "files" / "site" / "parking.md").write_text(PARKING + opening, "utf-8")
    [each] = read_sets([str(folder)], workspace=None, limit=None)
    [evaluated] = await evaluate(services, [each], [MODES["standard"]], Options(), lambda *_: None)
    words = {name: len(outcome.answer.split()) for name, outcome in evaluated.results[0].outcomes.items()}
    assert words["after"] <= 80 < words["alone"]


@pytest.mark.parametrize(
    ("changed", "flaws"),
    [
        ({}, []),
        ({"answer": "The deposit is **€40**. [1]"}, []),
        ({"answer": "There is a deposit. [1]"}, ["facts missing"]),
        ({"answer": "The deposit is 40 euros, or 50 euros. [1]"}, ["something wrong"]),
        ({"answer": "The deposit is 40 euros. [1]" + " More." * 80}, ["too long"]),
        ({"citations": [Cited(doc="cars.md", start=0, end=1, text="")]}, ["another file cited"]),
        ({"citations": []}, ["not answered"]),
        ({"abstained": True}, ["not answered"]),
    ],
)
def test_a_useful_answer_is_right_and_short_and_cites_the_file(changed: dict[str, object], flaws: list[str]) -> None:
    question = Question.model_validate({**QUESTIONS[0], "must_not": ["50 euros"]})
    outcome = Outcome(
        id="deposit",
        answer="The deposit is 40 euros. [1]",
        citations=[Cited(doc="/srv/staff/bicycles.md", start=0, end=1, text="")],
    )
    assert list_flaws(question, outcome.model_copy(update=changed)) == flaws


def test_facts_are_compared_without_marks_and_line_breaks() -> None:
    question = Question(id="1", question="Who?", must=(("human resources",), ("9-5",)))
    assert find_facts(question, "Ask **Human\nResources** from 9–5.") == [True, True]
    assert fold("See [the page](https://example.com/a_b)") == "see the page"


def test_a_question_must_name_a_library_and_files_that_exist(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "firm", [{**QUESTIONS[0], "library": "garage"}])
    with pytest.raises(SetError, match="'deposit' names no library that files/ holds: 'garage'"):
        read_sets([str(folder)], workspace=None, limit=None)
    write_set(folder, [{**QUESTIONS[0], "source": "cars.md"}])
    with pytest.raises(SetError, match="names a file that the library lacks: 'cars"):
        read_sets([str(folder)], workspace=None, limit=None)
