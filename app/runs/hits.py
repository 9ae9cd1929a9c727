"""Answers that were given before the graph become part of their threads and of the log."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import orjson

from app.runs.cache import decode_done
from app.runs.execution import write_state
from app.runs.records import adopt, log_turn, make_record
from app.services import Services
from domain.errors import InputError, UnknownThread
from domain.ports.answers import NotedHit
from domain.runs import RunRequest, ServedRun
from domain.scope import ScopeJson
from domain.state import TurnInput

logger = logging.getLogger("askgraph.turns")

BATCH = 500
"""Hits that are recorded in one statement."""

ANSWERED_BEFORE = "it was answered before"


def encode_hit(run_id: str, thread_id: str, turn: tuple[ScopeJson, str, str], at: float) -> bytes:
    """A hit as it is noted; `turn` is its workspace, question, documents and mode, `at` seconds since 1970."""
    return orjson.dumps([run_id, thread_id, *turn, at])


async def record_hits(services: Services) -> None:
    """Record every hit noted so far. Any process may, also several at once: a hit is recorded once.

    Raises `DatabaseUnavailable`; what is not recorded stays noted.
    """
    more = True
    while more:
        hits = await services.answers.read_hits(BATCH)
        more = len(hits) == BATCH
        if hits:
            read = (_try_to_read_hit(services, hit) for hit in hits)
            await _record(services, [served for served in read if served is not None])
            await services.answers.drop_hits(hits)


async def settle_thread(services: Services, workspace_id: str, thread_id: str) -> bool:
    """Make the thread's state where it was begun by an answer that was given before the graph, and nothing has come
    since. Whether it has one now.

    Raises `DatabaseUnavailable`.
    """
    await record_hits(services)
    runs = await services.runs.list_thread(workspace_id, thread_id)
    if len(runs) != 1 or not runs[0].cached:
        return False
    status = await services.queue.get(workspace_id, runs[0].run_id)
    if status is None or status.ended is None or status.ended["type"] != "done":
        return False
    # Others may be about to do the same, or to go on from what they have made.
    async with services.threads.hold(workspace_id, thread_id):
        with services.translating_errors():
            if not (await services.graph.aget_state({"configurable": {"thread_id": thread_id}})).created_at:
                state = adopt(status.request.turn, [], status.ended, ANSWERED_BEFORE)
                await write_state(services, thread_id, state, cached="true")
                await services.flush_states(thread_id)
    return True


async def require_thread(services: Services, workspace_id: str, thread_id: str) -> None:
    """Settle the thread.

    Raises `UnknownThread` where the workspace has none of that id, and `DatabaseUnavailable`.
    """
    await settle_thread(services, workspace_id, thread_id)
    if not await services.threads.exists(workspace_id, thread_id):
        raise UnknownThread(f"There is no thread {thread_id!r} in this workspace.")


def _try_to_read_hit(services: Services, hit: NotedHit) -> ServedRun | None:
    try:
        return _read_hit(services, hit)
    except (ValueError, KeyError, TypeError) as error:
        # Not as it was written; it must not keep the others waiting for ever.
        logger.error("a stored answer that was given cannot be recorded: %s", error)
        return None


def _read_hit(services: Services, hit: NotedHit) -> ServedRun:
    run_id, thread_id, scope, question, mode, at = orjson.loads(hit.hit)
    profile = services.modes[mode].model_dump() if mode in services.modes else {}
    turn = TurnInput(
        run_id=run_id,
        question=question,
        scope=scope,
        mode=mode,
        profile=profile,
    )
    # Two clocks, where the cache runs on another machine.
    total_ms = max(0.0, round((hit.at - at) * 1000, 2))
    started_at = datetime.fromtimestamp(at, UTC)
    ended = decode_done(hit.done, {"run_id": run_id, "thread_id": thread_id, "timings": {"total": total_ms}})
    record = make_record(adopt(turn, [], ended, ANSWERED_BEFORE), thread_id, started_at, total_ms, ended)
    return ServedRun(
        request=RunRequest(run_id, thread_id, scope["workspace_id"], turn, begins_thread=True),
        record=record,
        ended=ended,
        ended_id=hit.last_id,
        ended_at=started_at + timedelta(milliseconds=total_ms),
    )


async def _record(services: Services, served: Sequence[ServedRun]) -> None:
    try:
        await services.runs.record_served(served)
    except InputError as error:
        # One that the database cannot hold must not keep the others waiting for ever.
        if len(served) == 1:
            logger.error("run %s cannot be recorded: %s", served[0].request.run_id, error.message)
            return
        for each in served:
            await _record(services, [each])
    else:
        for each in served:
            log_turn(each.record)
