"""What readers say of answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from domain.documents import Citation
from domain.outcome import Outcome

Rating = Literal["up", "down"]
Complaint = Literal["wrong", "incomplete", "not_found", "bad_source", "other"]
"""What is wrong with an answer. `not_found`: the documents do answer. `bad_source`: a source does not say it."""

LONGEST_COMMENT = 2_000
"""Characters of a comment."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a reader says of an answer. A run has one at most: the last one."""

    rating: Rating
    reason: Complaint | None
    comment: str
    given_by: str
    """The name of the caller."""
    given_at: datetime


@dataclass(frozen=True, slots=True)
class RatedRun:
    """What was asked in a run, how it ended, and what was said of it."""

    workspace_id: str
    run_id: str
    thread_id: str
    mode: str
    before: Sequence[str]
    """The questions of the thread before this one."""
    question: str
    answer: str
    outcome: Outcome | None
    citations: Sequence[Citation]
    feedback: Feedback
