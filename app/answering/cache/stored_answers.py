"""Finished answers as the cache stores them."""

from collections.abc import Sequence
from typing import cast

import orjson

from domain.events import Done, Event, data_of
from domain.outcome import ANSWERS
from domain.ports.answers import EncodedAnswer
from domain.runs import RunRequest

OF_ONE_ASKING = ("run_id", "thread_id", "cached", "usage", "cost", "timings", "trace_url")
"""Fields of `done` that are different each time the question is asked."""


def is_storable(done: Done) -> bool:
    """Return True for an answer that is finished, grounded, and not degraded.

    Abstentions are not stored, because a document with the answer may be added; nor are answers with a warning,
    because the part that failed may be back.
    """
    return (
        done["outcome"] in ANSWERS
        and bool(done["citations"])
        and done["verification"]["status"] != "unsupported"
        and not done["warnings"]
        and not done["stopped"]
    )


def encode_answer(events: Sequence[Event]) -> EncodedAnswer:
    """Encode the events of a finished run, without `thinking`: a cached answer takes no steps."""
    *shown, done = [event for event in events if event["type"] != "thinking"]
    return EncodedAnswer(
        events=orjson.dumps(shown),
        done=orjson.dumps({name: value for name, value in data_of(done).items() if name not in OF_ONE_ASKING}),
    )


def decode_answer(answer: EncodedAnswer, request: RunRequest, total_ms: float) -> tuple[list[Event], Done]:
    """Decode the answer as that of another run, which took so long: its events, and the last of them."""
    done = cast(Done, {"type": "done", **orjson.loads(answer.done)})
    return orjson.loads(answer.events), make_own(done, request, total_ms)


def make_own(done: Done, request: RunRequest, total_ms: float) -> Done:
    """Return the end of another run as that of this one."""
    own = {
        "run_id": request.run_id,
        "thread_id": request.thread_id,
        "cached": True,
        "usage": [],
        "cost": 0.0,
        "timings": {"total": round(total_ms, 2)},
        "trace_url": None,
    }
    return cast(Done, {**done, **own})
