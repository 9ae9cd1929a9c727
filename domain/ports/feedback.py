"""What readers say of answers: kept, and told to a service that traces runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.history.feedback import Complaint, Feedback, RatedRun, Rating
from domain.people.access import Caller


class FeedbackStore(Protocol):
    """Keeps feedback as long as its run. Raises `DatabaseUnavailable`."""

    async def put(
        self, workspace_id: str, run_id: str, rating: Rating, reason: Complaint | None, comment: str, caller: Caller
    ) -> Feedback:
        """Keep feedback on a run, in the place of an earlier one. Raises `UnknownRun`, and `Forbidden` where that is
        somebody else's and the caller has not the right `admin`."""

    async def delete(self, workspace_id: str, run_id: str, caller: Caller) -> None:
        """Drop the feedback on a run, if there is any. Raises `Forbidden` as `put` does."""

    async def read(self, workspace_id: str, run_ids: Sequence[str]) -> dict[str, Feedback]:
        """Return the feedback on those of the runs that have any."""

    async def list(self, workspace_id: str | None, since: datetime, limit: int) -> Sequence[RatedRun]:
        """Return rated runs, of one workspace or of all, the latest feedback first."""
