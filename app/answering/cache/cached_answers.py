"""Answers from the cache, given without a run of their own being executed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from app.answering.cache.key import CacheKey
from app.answering.cache.stored_answers import decode_answer
from app.answering.graph_pass import milliseconds_since
from app.answering.hit_log import encode_hit
from app.answering.requests import Ask
from domain.events import Event
from domain.ports.answers import AnswerCache
from domain.ports.documents import DocumentStore
from domain.profile import Profile, find_mode


@dataclass(frozen=True, slots=True)
class Hit:
    """A cached answer as the answer of a run. The run appears in the log a moment later."""

    run_id: str
    thread_id: str
    workspace_id: str
    events: Sequence[Event]
    """All events of the run; the last is `done`."""


class CachedAnswers:
    """Finds cached answers of questions that begin a conversation, without asking Postgres while the state of the
    documents is known. Follow-ups need their conversation, and are looked up by the run that answers them."""

    def __init__(
        self,
        answers: AnswerCache,
        documents: DocumentStore,
        modes: Mapping[str, Profile],
        fingerprint: str,
        on_hit: Callable[[], None],
    ) -> None:
        """`fingerprint` identifies this installation. `on_hit` is called after each hit, which is noted to be recorded
        by then."""
        self._answers = answers
        self._documents = documents
        self._modes = modes
        self._profiles = {name: mode.model_dump() for name, mode in modes.items()}
        self._fingerprint = fingerprint
        self._on_hit = on_hit

    async def find(self, ask: Ask) -> Hit | None:
        """Return the cached answer. None where there is none, or the question continues a conversation.

        Raises `QuestionError`, `UnknownMode`, `UnknownDocument` and `DatabaseUnavailable`.
        """
        if ask.thread_id is not None or ask.history:
            return None
        started, at = time.perf_counter(), time.time()
        run_id, thread_id = str(uuid4()), str(uuid4())
        find_mode(self._modes, ask.mode)
        turn = ask.as_turn(run_id, self._profiles[ask.mode])
        answer = await self._answers.recall(
            ask.scope,
            CacheKey.of(turn, [], self._fingerprint).digest(),
            encode_hit(thread_id, turn, at, ask.caller.name),
            self._documents.corpus_fingerprint,
        )
        if answer is None:
            return None
        self._on_hit()
        timings = {"total": round(milliseconds_since(started), 2)}
        events = decode_answer(answer, {"run_id": run_id, "thread_id": thread_id, "timings": timings})
        return Hit(run_id, thread_id, ask.scope.workspace_id, events)
