"""Answers runs from the cache."""

from datetime import UTC, datetime, timedelta
from time import perf_counter

from app.answering.cache.key import CacheKey
from app.answering.cache.stored_answers import decode_answer
from app.answering.graph_pass import milliseconds_since
from app.answering.parts import RunParts
from app.answering.records import adopt, make_record, make_shown, publish_record
from app.answering.run_config import describe_run
from domain.execution.streams import StreamedEvent
from domain.history.lineage import find_lineage
from domain.people.access import Caller
from domain.runs import RunRequest, ServedRun
from domain.scope import Scope
from domain.state import STATE_VERSION

ANSWERED_BEFORE = "it was answered before"


async def serve_cached(parts: RunParts, request: RunRequest, caller: Caller) -> list[StreamedEvent] | None:
    """Answer a run that begins a conversation from the cache. Stores it, and returns its events; None where no answer
    is cached.

    Raises `TooManyRuns`, `BudgetSpent`, `UnknownDocument`, `DatabaseUnavailable`, and `InputError` where the database
    cannot hold the question.
    """
    started_at, started = datetime.now(UTC), perf_counter()
    turn, thread_id = request.turn, request.thread_id
    key = CacheKey.of(turn, [], parts.fingerprint)
    answer = await parts.answers.recall(
        Scope.from_json(turn["scope"]), key.digest(), parts.documents.corpus_fingerprint
    )
    if answer is None:
        return None
    # Only now: a run that is not cached is checked when it is accepted.
    await parts.limits.check_run(caller)
    total_ms = milliseconds_since(started)
    events, done = decode_answer(answer, request, total_ms)
    state = adopt(turn, [], done, ANSWERED_BEFORE)
    record = make_record(state, thread_id, started_at, total_ms, done)
    streamed = [StreamedEvent.of(event, f"1-{number}") for number, event in enumerate([*events, done], start=1)]
    await parts.served.keep(
        ServedRun(
            request=request,
            record=record,
            ended=done,
            ended_id=streamed[-1].id,
            ended_at=started_at + timedelta(milliseconds=total_ms),
            shown=make_shown(events, [], done),
            documents=list(find_lineage(state, events).documents),
            state=state,
            metadata={**describe_run(turn, cached="true"), "state_version": STATE_VERSION},
        )
    )
    publish_record(record)
    return streamed
