"""Tells LangSmith what readers say of answers."""

import asyncio
import logging
from contextlib import suppress
from uuid import NAMESPACE_URL, UUID, uuid5

import langsmith
from langsmith.utils import LangSmithError, LangSmithNotFoundError, get_tracer_project

from app.support.cancelling import end_tasks
from domain.history.feedback import Feedback

logger = logging.getLogger("askgraph.tracing")

MOST_WAITING = 200
"""Number of ratings that wait while LangSmith does not answer. More are dropped."""
KEY = "user_score"
"""The name of the score in LangSmith: 1 for a thumb up, 0 for one down."""
CLOSE_SECONDS = 2.0


class LangSmithFeedback:
    """Implements `FeedbackSink`. Belongs to one event loop; close it with `close`."""

    def __init__(self, client: langsmith.Client) -> None:
        self._client = client
        self._project: UUID | None = None
        self._waiting: asyncio.Queue[tuple[str, Feedback | None]] = asyncio.Queue(MOST_WAITING)
        self._sending: asyncio.Task[None] | None = None

    def send(self, trace_id: str, feedback: Feedback | None) -> None:
        """Implements the port."""
        try:
            self._waiting.put_nowait((trace_id, feedback))
        except asyncio.QueueFull:
            logger.warning("LangSmith does not hear of feedback on the trace %s: too much waits.", trace_id)
            return
        if self._sending is None:
            self._sending = asyncio.create_task(self._keep_sending())

    async def close(self) -> None:
        """Send what waits for at most `CLOSE_SECONDS`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._waiting.join()
        if self._sending is not None:
            await end_tasks(self._sending)

    async def _keep_sending(self) -> None:
        while True:
            trace_id, feedback = await self._waiting.get()
            try:
                await asyncio.to_thread(self._tell, trace_id, feedback)
            except (LangSmithError, OSError, ValueError) as error:
                logger.warning("LangSmith did not take feedback on the trace %s: %s", trace_id, error)
            finally:
                self._waiting.task_done()

    def _tell(self, trace_id: str, feedback: Feedback | None) -> None:
        # The same for each rating of a trace, so that the last one replaces the others.
        feedback_id = uuid5(NAMESPACE_URL, f"askgraph/feedback/{trace_id}")
        with suppress(LangSmithNotFoundError):
            self._client.delete_feedback(feedback_id)
        if feedback is None:
            return
        if self._project is None:
            self._project = self._client.read_project(project_name=get_tracer_project()).id
        self._client.create_feedback(
            trace_id,
            KEY,
            feedback_id=feedback_id,
            stop_after_attempt=2,
            score=feedback.rating == "up",
            value=feedback.reason,
            comment=feedback.comment or None,
            session_id=self._project,
        )
