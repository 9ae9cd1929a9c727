"""Conversations as the protocol's messages, and the state that they are part of."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from domain.runs import RunStatus
from domain.state import Turn

Message = dict[str, Any]

FIELDS = (
    "question",
    "mode",
    "route",
    "standalone_question",
    "outcome",
    "outcome_reasons",
    "confidence",
    "citations",
    "verification",
)
"""The fields of a state besides its messages, all of them about the last question."""


def make_human(text: Any, message_id: str) -> Message:
    """Make a question's message."""
    return _make("human", text, message_id)


def make_ai(text: str, run_id: str, about: Mapping[str, Any] | None = None) -> Message:
    """Make an answer's message. `about` are fields of the state; its citations and its outcome go with the message."""
    told = {name: about[name] for name in ("outcome", "citations") if about and name in about}
    return {
        **_make("ai", text, run_id),
        "response_metadata": told,
        "tool_calls": [],
        "invalid_tool_calls": [],
        "usage_metadata": None,
    }


def make_chunk(text: str, run_id: str) -> Message:
    """Make a piece of an answer's message."""
    return {**make_ai(text, run_id), "type": "AIMessageChunk", "tool_call_chunks": [], "chunk_position": None}


def _make(kind: str, text: Any, message_id: str) -> Message:
    return {
        "content": text,
        "additional_kwargs": {},
        "response_metadata": {},
        "type": kind,
        "name": None,
        "id": message_id,
    }


def name_question(run_id: str) -> str:
    """Return the id of a question's message. That of the answer is the run's."""
    return f"question-{run_id}"


def list_turn_messages(turns: Iterable[Turn]) -> list[Message]:
    """Make the messages of turns."""
    return [
        message
        for turn in turns
        for message in (
            make_human(turn["question"], name_question(turn["run_id"])),
            make_ai(turn["answer"], turn["run_id"]),
        )
    ]


def list_run_messages(runs: Sequence[RunStatus]) -> list[Message]:
    """Make the messages of runs in order; those of a run without an end, or with an error, are its question alone."""
    messages = []
    for run in runs:
        run_id, ended = run.request.run_id, run.ended
        messages.append(make_human(run.request.turn["question"], name_question(run_id)))
        if ended is not None and ended["type"] == "done":
            messages.append(make_ai(ended["answer"], run_id, ended))
    return messages


def pick_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a state that the protocol shows, as far as they are there."""
    return {name: values[name] for name in FIELDS if name in values}
