"""Conversations as the protocol's messages, and the state that they are part of."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from json import dumps, loads
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from app.answering.records import LONGEST_RESULT
from app.api.protocols.translating import read_finish
from domain.runs import RunStatus, ToolUse
from domain.state import Turn, WorkRound

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
    return HumanMessage(text, id=message_id).model_dump()


def make_ai(text: str, run_id: str, about: Mapping[str, Any] | None = None) -> Message:
    """Make an answer's message. `about` are fields of the state; its citations and its outcome go with the message."""
    about = about or {}
    told = {name: about[name] for name in ("outcome", "citations") if name in about}
    if "degraded" in about:
        told["finish_reason"] = read_finish(about["degraded"], about.get("answered_by", ""))
    return AIMessage(text, id=run_id, response_metadata=told).model_dump()


def make_chunk(text: str, run_id: str) -> Message:
    """Make a piece of an answer's message."""
    return AIMessageChunk(content=text, id=run_id).model_dump()


def list_work_messages(run_id: str, uses: Iterable[ToolUse]) -> list[Message]:
    """Make the messages of what the research agent did: one with the calls of each round, and one for each result."""
    messages: list[Message] = []
    for number, calls in groupby(uses, lambda use: use["round"]):
        asked = {**make_ai("", f"{run_id}-work-{number}"), "tool_calls": []}
        results = []
        for use in calls:
            named = {"name": use["name"], "args": use["arguments"], "id": use["call_id"], "type": "tool_call"}
            asked["tool_calls"].append(named)
            if use["sources"] is not None:
                text = "\n".join(filter(None, (use["text"], f"{use['sources']} sources" if use["sources"] else "")))
                result = ToolMessage(
                    text,
                    id=f"{asked['id']}-{len(asked['tool_calls'])}",
                    name=use["name"],
                    tool_call_id=use["call_id"],
                )
                results.append(result.model_dump())
        messages += [asked, *results]
    return messages


def list_uses(work: Iterable[WorkRound]) -> list[ToolUse]:
    """Return the calls of tools that a state holds."""
    return [
        ToolUse(
            round=number,
            call_id=call["id"],
            name=call["name"],
            arguments=call["arguments"],
            text=call["result"][:LONGEST_RESULT],
            sources=len(call["sources"]) if call["result"] or call["sources"] else None,
        )
        for number, each in enumerate(work, 1)
        for call in each["calls"]
    ]


def make_call_chunk(message: Message) -> Message:
    """Make the piece of a message with calls that adds the last of them."""
    *before, call = message["tool_calls"]
    piece = tool_call_chunk(name=call["name"], args=dumps(call["args"]), id=call["id"], index=len(before))
    return AIMessageChunk(content="", id=message["id"], tool_call_chunks=[piece]).model_dump()


def name_question(run_id: str) -> str:
    """Return the id of a question's message where the client has given none. That of the answer is the run's."""
    return f"question-{run_id}"


def name_questions(runs: Iterable[RunStatus]) -> dict[str, str]:
    """Return the ids of the questions' messages by their runs: those of the client, each once."""
    names: dict[str, str] = {}
    taken = set[str]()
    for run in runs:
        given, usual = run.request.noted.get("message_id"), name_question(run.request.run_id)
        names[run.request.run_id] = name = given if given and given not in taken else usual
        taken.add(name)
    return names


def list_turn_messages(turns: Iterable[Turn], names: Mapping[str, str]) -> list[Message]:
    """Make the messages of turns; `names` are the ids of questions by their runs, as far as they have others."""
    return [
        message
        for turn in turns
        for message in (
            make_human(turn["question"], names.get(turn["run_id"]) or name_question(turn["run_id"])),
            make_ai(turn["answer"], turn["run_id"]),
        )
    ]


def list_run_messages(runs: Sequence[RunStatus]) -> list[Message]:
    """Make the messages of runs in order; those of a run without an end, or with an error, are its question alone."""
    messages, names = [], name_questions(runs)
    for run in runs:
        run_id, ended = run.request.run_id, run.ended
        messages.append(make_human(run.request.turn["question"], names[run_id]))
        messages += list_work_messages(run_id, run.shown.get("tools", []) if run.shown else [])
        if ended is not None and ended["type"] == "done":
            messages.append(make_ai(ended["answer"], run_id, ended))
    return messages


class SetMessages(TypedDict):
    """The messages of a state, as a client has set them."""

    origin: list[str] | None
    """The thread or branch, and the checkpoint, whose messages are named; None where none is."""
    messages: list[str | Message]
    """Messages of the client, and ids of those that it has left as they were."""


def read_set_messages(snapshot: StateSnapshot) -> SetMessages | None:
    """Return the messages that a client has set in a state; None for other states."""
    said = (snapshot.metadata or {}).get("messages")
    return None if said is None else cast(SetMessages, loads(str(said)))


def pick_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a state that the protocol shows, as far as they are there."""
    return {name: values[name] for name in FIELDS if name in values}
