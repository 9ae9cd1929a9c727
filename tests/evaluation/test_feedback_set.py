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
from domain.feedback import Feedback, RatedRun
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
    files = {str(file.relative_to(tmp_path)) for file in (tmp_path / "set" / "files").rglob("*") if file.is_file()}
    assert files == {
        f"set/files/hr/{name}" for name in ("srv/Leave_ 2026.md", "5/Leave_ 2026.md", "host.example/a_b_1")
    }
    exported = written.exported
    assert (exported.questions, exported.files, exported.left_out) == (4, 3, 1)
    assert exported.without_file == [DOCUMENT.source]
    [made] = read_sets([str(tmp_path / "set")], tmp_path, workspace=None, limit=None)
    assert made.kind == "practical"
    liked, disliked, unanswered, talked = made.questions
    assert (liked.answerable, liked.source, liked.before) == (True, "srv/Leave_ 2026.md", ("Hello",))
    assert (disliked.answerable, disliked.source, disliked.must_not) == (None, None, ("You have 30 days off.",))
    assert (unanswered.answerable, talked.talk) == (False, True)
    with pytest.raises(InputError, match="is not empty"):
        FeedbackSet(tmp_path / "set", read)
