"""Records cached answers that were given without a run, so that they appear in the log like any other run."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

import orjson

from app.answering.cache.stored_answers import decode_done
from app.answering.records import adopt, make_record, make_shown, publish_record
from domain.errors import AskgraphError, InputError
from domain.ports.answers import AnswerCache, NotedHit
from domain.ports.runs import RunLog
from domain.profile import Profile
from domain.runs import RunRequest, ServedRun
from domain.state import TurnInput

logger = logging.getLogger("askgraph.runs")

BATCH = 500
"""Hits recorded in one statement."""

ANSWERED_BEFORE = "it was answered before"


PAUSE_SECONDS = 0.25
"""Seconds during which hits are collected before they are recorded together."""

AGAIN_SECONDS = 1.0
"""Seconds to wait after the database failed to record them."""


def encode_hit(thread_id: str, turn: TurnInput, at: float, caller: str) -> bytes:
    """Encode a hit for `AnswerCache.recall`; `at` is the time of the question in seconds since 1970."""
    # Without the profile, which is large and is that of the mode.
    # The caller within the scope, because a process of an older version, which may record the hit, reads six values.
    scope = {**turn["scope"], "caller": caller}
    return orjson.dumps([turn["run_id"], thread_id, scope, turn["question"], turn["mode"], at])


class HitLog:
    """Moves hits that the answer cache has noted into the log of runs.

    A hit is noted in the same step in which the answer is found, and dropped once it is recorded. So it is lost only
    with the cache server's data; and one that is recorded twice, after a crash between the two, is stored once, because
    its run id is its key.
    """

    def __init__(self, answers: AnswerCache, log: RunLog, modes: Mapping[str, Profile]) -> None:
        self._answers = answers
        self._log = log
        self._modes = modes

    async def record_all(self) -> None:
        """Record every hit noted so far. Any number of processes may call this at once: each hit is recorded once.

        Raises `DatabaseUnavailable`; hits that are not recorded stay noted.
        """
        more = True
        while more:
            hits = await self._answers.read_hits(BATCH)
            more = len(hits) == BATCH
            if hits:
                read = (self._try_to_read(hit) for hit in hits)
                await self._record([served for served in read if served is not None])
                await self._answers.drop_hits(hits)

    def _try_to_read(self, hit: NotedHit) -> ServedRun | None:
        try:
            return self._read(hit)
        except (ValueError, KeyError, TypeError) as error:
            # Damaged; it must not block the others forever.
            logger.error("a cached answer that was given cannot be recorded: %s", error)
            return None

    def _read(self, hit: NotedHit) -> ServedRun:
        run_id, thread_id, scope, question, mode, at = orjson.loads(hit.hit)
        caller = scope.pop("caller", "")
        turn = TurnInput(
            run_id=run_id,
            question=question,
            scope=scope,
            mode=mode,
            profile=self._modes[mode].model_dump() if mode in self._modes else {},
        )
        # Negative where the cache's machine has another clock.
        total_ms = max(0.0, round((hit.at - at) * 1000, 2))
        started_at = datetime.fromtimestamp(at, UTC)
        ended = decode_done(hit.done, {"run_id": run_id, "thread_id": thread_id, "timings": {"total": total_ms}})
        record = make_record(adopt(turn, [], ended, ANSWERED_BEFORE), thread_id, started_at, total_ms, ended)
        return ServedRun(
            request=RunRequest(run_id, thread_id, scope["workspace_id"], turn, begins_thread=True, caller=caller),
            record=record,
            ended=ended,
            ended_id=hit.last_id,
            ended_at=started_at + timedelta(milliseconds=total_ms),
            shown=make_shown(orjson.loads(hit.events), [], ended),
        )

    async def _record(self, served: Sequence[ServedRun]) -> None:
        try:
            await self._log.record_served(served)
        except InputError as error:
            # A single hit that the database cannot hold must not block the others forever.
            if len(served) == 1:
                logger.error("run %s cannot be recorded: %s", served[0].request.run_id, error.message)
                return
            for each in served:
                await self._record([each])
        else:
            for each in served:
                publish_record(each.record)


class HitRecorder:
    """Records hits in the background, many at a time. Use it as a context manager: leaving it records the rest."""

    def __init__(self, hit_log: HitLog) -> None:
        self._hit_log = hit_log
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
        # Not cancelled: a client of the cache server may take that for its own time limit, and continue.
        self._closing = True
        self._noted.set()
        await self._recording

    def wake(self) -> None:
        """Record the hits noted so far, soon."""
        self._noted.set()

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
            logger.warning("cached answers that were given are not recorded yet: %s", error.message)
            return False
        return True
