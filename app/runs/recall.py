"""Stored answers, given before a run begins (docs/decisions/04-answer-cache.md)."""

import asyncio
import logging
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from uuid import uuid4

from app.runs.cache import NO_CONVERSATION, CacheKey, digest, sort_documents
from app.runs.graph_pass import milliseconds_since
from app.runs.hit_log import HitLog, encode_hit
from app.runs.parts import RunParts
from app.runs.requests import Ask
from domain.errors import AskgraphError
from domain.ports.answers import EncodedAnswer
from domain.profile import find_mode
from domain.question import clean_question
from domain.scope import Scope

logger = logging.getLogger("askgraph.runs")

PAUSE_SECONDS = 0.25
"""How long hits gather before they are recorded together."""
AGAIN_SECONDS = 1.0
"""How long a database that could not record them is left alone."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A stored answer as a run's own. The run is on record a moment later."""

    run_id: str
    thread_id: str
    workspace_id: str
    answer: EncodedAnswer
    total_ms: float

    def as_events(self) -> bytes:
        """As server-sent events."""
        return b"%b%b%b\n\n" % (self.answer.opening, self._own(), self.answer.done[1:])

    def as_json(self) -> bytes:
        """As `app.api.descriptions.describe_answer` has it."""
        return b'%b%b,"sources":%b}' % (self._own(), self.answer.done[1:-1], self.answer.sources)

    def _own(self) -> bytes:
        own = '{"run_id":"%s","thread_id":"%s","cached":true,"usage":[],"cost":0.0,"timings":{"total":%.2f},'
        return (own % (self.run_id, self.thread_id, self.total_ms)).encode() + b'"trace_url":null,'


class Recall:
    """Gives stored answers to questions that begin a conversation, without a query to the database where the state of
    the documents is known. Use it as a context manager: leaving records the hits."""

    def __init__(self, parts: RunParts, hit_log: HitLog) -> None:
        self._parts = parts
        self._hit_log = hit_log
        self._profiles = {name: digest(mode.model_dump()) for name, mode in parts.modes.items()}
        self._noted = asyncio.Event()
        # A process that died may have left some.
        self._noted.set()
        self._closing = False
        self._recording: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._recording = asyncio.create_task(self._keep_recording())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._recording is not None
        # Not cancelled: a client of the cache may take that for its own time limit, and go on.
        self._closing = True
        self._noted.set()
        await self._recording

    async def serve(self, ask: Ask) -> Recalled | None:
        """The stored answer; None where there is none, or the question goes on with a conversation.

        Raises `QuestionError`, `UnknownMode`, `UnknownDocument` and `DatabaseUnavailable`.
        """
        if ask.thread_id is not None:
            return None
        started, at = time.perf_counter(), time.time()
        question = clean_question(ask.question)
        find_mode(self._parts.modes, ask.mode)
        documents = sort_documents(ask.document_ids)
        key = CacheKey(
            workspace_id=ask.workspace_id,
            question=question,
            conversation=NO_CONVERSATION,
            documents=documents,
            corpus="",
            mode=ask.mode,
            profile=self._profiles[ask.mode],
            machine=self._parts.fingerprint,
        )
        run_id, thread_id = str(uuid4()), str(uuid4())
        answer = await self._parts.answers.recall(
            Scope(ask.workspace_id, documents),
            key.address().digest,
            encode_hit(run_id, thread_id, (ask.workspace_id, question, ask.document_ids, ask.mode), at),
            self._parts.documents.corpus_fingerprint,
        )
        if answer is None:
            return None
        self._noted.set()
        return Recalled(run_id, thread_id, ask.workspace_id, answer, milliseconds_since(started))

    async def _keep_recording(self) -> None:
        while True:
            await self._noted.wait()
            if not self._closing:
                await asyncio.sleep(PAUSE_SECONDS)
            self._noted.clear()
            recorded = await self._try_to_record()
            if self._closing:
                return
            if not recorded:
                self._noted.set()
                await asyncio.sleep(AGAIN_SECONDS)

    async def _try_to_record(self) -> bool:
        try:
            await self._hit_log.record_all()
        except AskgraphError as error:
            logger.warning("stored answers that were given are not on record yet: %s", error.message)
            return False
        return True
