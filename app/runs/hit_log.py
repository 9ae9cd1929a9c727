"""Records cached answers that were given without a run, so that they appear in the log like any other run."""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

import orjson

from app.runs.cache import decode_done
from app.runs.records import adopt, log_turn, make_record
from domain.errors import InputError
from domain.ports.answers import AnswerCache, NotedHit
from domain.ports.runs import RunLog
from domain.profile import Profile
from domain.runs import RunRequest, ServedRun
from domain.state import TurnInput

logger = logging.getLogger("askgraph.runs")

BATCH = 500
"""Hits recorded in one statement."""

ANSWERED_BEFORE = "it was answered before"


def encode_hit(run_id: str, thread_id: str, turn: tuple[str, str, tuple[str, ...] | None, str], at: float) -> bytes:
    """Encode a hit for `AnswerCache.recall`.

    `turn` is its workspace, question, documents and mode; `at` is in seconds since 1970.
    """
    return orjson.dumps([run_id, thread_id, *turn, at])


class HitLog:
    """Moves noted hits from the answer cache into the log of runs."""

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
        run_id, thread_id, workspace_id, question, document_ids, mode, at = orjson.loads(hit.hit)
        turn = TurnInput(
            run_id=run_id,
            question=question,
            workspace_id=workspace_id,
            document_ids=document_ids,
            mode=mode,
            profile=self._modes[mode].model_dump() if mode in self._modes else {},
        )
        # Negative where the cache's machine has another clock.
        total_ms = max(0.0, round((hit.at - at) * 1000, 2))
        started_at = datetime.fromtimestamp(at, UTC)
        ended = decode_done(hit.done, {"run_id": run_id, "thread_id": thread_id, "timings": {"total": total_ms}})
        record = make_record(adopt(turn, [], ended, ANSWERED_BEFORE), thread_id, started_at, total_ms, ended)
        return ServedRun(
            request=RunRequest(run_id, thread_id, workspace_id, turn, begins_thread=True),
            record=record,
            ended=ended,
            ended_id=hit.last_id,
            ended_at=started_at + timedelta(milliseconds=total_ms),
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
                log_turn(each.record)
