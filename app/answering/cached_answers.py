"""Answers from the cache: their keys, what is stored, and runs that are answered from it.

The key holds everything that the answer depends on, so nothing is ever invalidated: a changed document changes the key.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import orjson

from domain.events import Done, Event, data_of
from domain.history.lineage import Lineage, UsedDocument
from domain.outcome import ANSWERS
from domain.ports.answers import AnswerKey, EncodedAnswer
from domain.runs import RunRequest
from domain.state import AnswerState, Turn, TurnInput
from graphs.prompt_versions import ALL_VERSIONS
from nodes.context import profile_of


def make_key(turn: TurnInput, turns: Sequence[Turn], machine: str, corpus: str) -> AnswerKey:
    """Make the key of a question. All keys are made here.

    `turns` are the conversation before it, `machine` is the fingerprint of this installation's code and models, and
    `corpus` the state of the documents in scope.
    """
    said = [[t["question"], t["answer"]] for t in turns]
    asked = [turn["scope"], turn["question"], said, turn["mode"], turn["profile"], ALL_VERSIONS, machine]
    return AnswerKey(turn["scope"]["workspace_id"], digest(asked), corpus)


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


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


def may_call_outside(state: AnswerState) -> bool:
    """Return True for a run whose agent was offered functions from outside: no key tells when these would say
    something else, whether or not it called them."""
    return bool(state["work"] and profile_of(state).functions.names)


_OF_STEPS = ("thinking", "tool_call", "tool_result")


def encode_answer(events: Sequence[Event], lineage: Lineage) -> EncodedAnswer:
    """Encode the events of a finished run, without `thinking`, as a cached answer takes no steps, and what it was made
    from."""
    *shown, done = [event for event in events if event["type"] not in _OF_STEPS]
    said = {name: value for name, value in data_of(done).items() if name not in OF_ONE_ASKING}
    return EncodedAnswer(events=orjson.dumps(shown), done=orjson.dumps({**said, "lineage": lineage}))


def decode_answer(answer: EncodedAnswer, request: RunRequest, total_ms: float) -> tuple[list[Event], Done, Lineage]:
    """Decode the answer as that of another run, which took so long: its events, the last of them, and the documents
    that it was made from. The turns are those of another thread."""
    said = orjson.loads(answer.done)
    made_from = said.pop("lineage")
    documents = tuple(UsedDocument(**each) for each in made_from["documents"])
    own = {
        "run_id": request.run_id,
        "thread_id": request.thread_id,
        "cached": True,
        "usage": [],
        "cost": 0.0,
        "timings": {"total": round(total_ms, 2)},
        "trace_url": None,
    }
    done = cast(Done, {"type": "done", **said, **own})
    return orjson.loads(answer.events), done, Lineage(documents, drew_on_turns=made_from["drew_on_turns"])
