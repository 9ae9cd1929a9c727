"""Sets of questions that a workspace keeps to measure its answers by."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

MOST_SETS = 50
MOST_QUESTIONS = 200
"""Questions of a set, which one request asks."""
MOST_RUNS = 50
"""What came of a set is kept so many times, the latest."""


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question of a set."""

    id: str
    """The run that it was made of."""
    question: str
    answers: Sequence[str]
    """A right answer holds one of these."""
    answerable: bool
    """False where the right behaviour is to abstain."""


@dataclass(frozen=True, slots=True)
class SetRun:
    """What came of asking a set."""

    ran_at: datetime
    mode: str
    version: str
    """Of askgraph, with the first digits of what identifies its code and models."""
    asked: int
    right: int
    wrong: dict[str, str]
    """What went wrong with each of the others, by the question's id."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A set."""

    name: str
    questions: Sequence[SetQuestion]
    """As they were added."""
    runs: Sequence[SetRun]
    """The latest first."""


class QuestionSets(Protocol):
    """Keeps the sets of each workspace. Raises `DatabaseUnavailable`."""

    async def list(self, workspace_id: str, name: str | None = None) -> Sequence[QuestionSet]:
        """Return the sets by name, or the one of this name."""

    async def put(self, workspace_id: str, name: str, question: SetQuestion) -> None:
        """Add a question, in place of the one of its id. Raises `InputError` where there are too many."""

    async def delete(self, workspace_id: str, name: str, question_id: str | None = None) -> bool:
        """Delete a question, or all of the set. What came of it goes with its last question. Returns False where there
        was nothing."""

    async def record(self, workspace_id: str, name: str, run: SetRun) -> None:
        """Keep what came of asking the set."""
