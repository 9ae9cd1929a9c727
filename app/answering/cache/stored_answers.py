"""Finished answers as the cache stores them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson

from domain.events import Done, Event, data_of
from domain.outcome import ANSWERS
from domain.ports.answers import EncodedAnswer

OF_ONE_ASKING = ("run_id", "thread_id", "cached", "usage", "cost", "timings", "trace_url")
"""Fields of `done` that are different each time the question is asked."""

UNPAID: Mapping[str, Any] = {"cached": True, "usage": [], "cost": 0.0, "trace_url": None}
"""Fields of `done` of an answer that another run has written."""


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
        last_id=f"1-{len(shown) + 1}",
        done=orjson.dumps({name: value for name, value in data_of(done).items() if name not in OF_ONE_ASKING}),
    )


def decode_answer(answer: EncodedAnswer, own: Mapping[str, Any]) -> list[Event]:
    """Decode the events. `own` holds the `run_id`, `thread_id` and `timings` of this asking, for `done`."""
    return [*cast("list[Event]", orjson.loads(answer.events)), decode_done(answer.done, own)]


def decode_done(done: bytes, own: Mapping[str, Any]) -> Done:
    """Decode the last event alone."""
    return cast(Done, {"type": "done", **orjson.loads(done), **UNPAID, **own})
