"""Feedback becomes a practical set that `askgraph eval` reads."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.evaluation.feedback_set import FeedbackSet
from app.evaluation.sets import read_sets
from domain.documents import Document
from domain.errors import InputError
from domain.history.feedback import Feedback, RatedRun
from tests.contracts.conversations import ANSWER

AT = datetime(2026, 11, 23, tzinfo=UTC)
DOCUMENT = Document("4b7c", "hr", "/srv/../Leave: 2026.md", "Leave", "text/markdown", "hash", None, 9, 1, AT, AT)
RATED = RatedRun(
    workspace_id="hr",
    run_id="run-1",
    thread_id="thread-1",
    mode="fast",
    before=["Hello"],
    question="How many days off?",
    answer="You have 30 days off. [1] Ask Ann. [2]",
    outcome="answered",
    citations=ANSWER.citations,
    feedback=Feedback("up", None, "", "ann", AT),
)


async def read(workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
    if content_hash == "hash":
        yield b"30 days "
        yield b"off"


async def read_any(workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
    yield content_hash.encode()


async def test_feedback_becomes_a_practical_set(tmp_path: Path) -> None:
    written = FeedbackSet(tmp_path / "set", read)
    url = replace(DOCUMENT, id="u", source="https://host.example/../a?b=1")
    await written.add_library("hr", [DOCUMENT, replace(DOCUMENT, id="5"), url, replace(DOCUMENT, content_hash="gone")])
    wrong = Feedback("down", "wrong", "It is 24.", "ben", AT)
    written.add_questions(
        [
            RATED,
            replace(RATED, run_id="run-2", feedback=wrong),
            replace(RATED, run_id="run-3", outcome="abstained", answer="Nothing.", citations=[]),
            replace(RATED, run_id="run-4", outcome="conversed"),
            replace(RATED, run_id="run-5", outcome="asked_back"),
        ]
    )
    [library] = [folder.name for folder in (tmp_path / "set" / "files").iterdir()]
    assert library.startswith("hr-")
    files = {str(file.relative_to(tmp_path)) for file in (tmp_path / "set" / "files").rglob("*") if file.is_file()}
    assert files == {
        f"set/files/{library}/{name}" for name in ("srv/Leave_ 2026.md", "5/Leave_ 2026.md", "host.example/a_b_1")
    }
    exported = written.exported
    assert (exported.questions, exported.files, exported.left_out) == (4, 3, 1)
    assert exported.without_file == [DOCUMENT.source]
    [made] = read_sets([str(tmp_path / "set")], workspace=None, limit=None)
    assert made.is_practical
    liked, disliked, unanswered, talked = made.questions
    assert (liked.answerable, liked.source, liked.before) == (True, "srv/Leave_ 2026.md", ("Hello",))
    assert (disliked.answerable, disliked.source, disliked.must_not) == (None, None, ("You have 30 days off.",))
    assert (unanswered.answerable, talked.talk) == (False, True)


async def test_a_set_grows_and_keeps_what_older_questions_are_asked_of(tmp_path: Path) -> None:
    for name, document in (("run-1", DOCUMENT), ("run-2", replace(DOCUMENT, content_hash="new")), ("run-2", DOCUMENT)):
        written = FeedbackSet(tmp_path, read_any)
        await written.add_library("hr", [document])
        written.add_questions([replace(RATED, run_id=name)])
    assert written.exported.known == 1
    [made] = read_sets([str(tmp_path)], workspace=None, limit=None)
    assert [(question.id, question.answerable) for question in made.questions] == [("run-1", True), ("run-2", True)]
    held = {(tmp_path / "files" / each.library / "srv/Leave_ 2026.md").read_text() for each in made.questions}
    assert held == {"hash", "new"}


@pytest.mark.parametrize(("file", "text"), [("notes.md", ""), ("queries.jsonl", "not JSON")])
def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(InputError, match="Name a new folder"):
        FeedbackSet(tmp_path, read)
