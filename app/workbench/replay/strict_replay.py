"""Runs a run again from its tape alone, and compares the result with the recorded one."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import Any

import orjson

from app.answering.graph_pass import fail, prepare_judgement
from app.answering.records import STOPPED
from app.workbench.replay.again import Start, begin_in_memory, run_in_memory, start_at
from app.workbench.replay.saved_run import SavedRun, find_taped
from app.workbench.tapes.taping import Player, play
from domain.errors import AskgraphError, StateError
from domain.events import Compared, Event
from domain.state import ExecutedStep
from graphs.answer import AnswerGraph
from nodes.context import Context

MAX_DIFFERENCES = 200
"""Number of lines of a comparison that are sent."""

_UNREPEATED = frozenset({"timings", "trace_url"})
"""Fields that differ between two passes of the same run: its times, and the address of its trace."""


@dataclass(frozen=True, slots=True)
class StrictReplay:
    """A run that runs again from its tape, over a thread in memory, under its own ids."""

    saved: SavedRun
    start: Start
    in_memory: AnswerGraph
    context: Context
    player: Player

    async def run(self) -> AsyncGenerator[Event]:
        """Yield the events, with a `comparison` before the end; or, at the end, an `error` that says what the tape
        lacks. They come all at once, because nothing is waited for."""
        graph_pass = await run_in_memory(self.in_memory, self.saved.record.thread_id, self.start, self.context)
        *replayed, ended = graph_pass.events
        for event in replayed:
            yield event
        if self.player.missed is not None:
            # Reported even where the step went on without the missing call.
            yield fail(self.player.missed, self.saved.record.run_id)
            return
        yield self._compare(graph_pass.events, graph_pass.state)
        yield ended

    def _compare(self, events: Sequence[Event], state: Mapping[str, Any]) -> Compared:
        # A replay from a checkpoint has only the last of the events. Fields that the recording version of askgraph did
        # not know cannot be compared.
        taped = self.saved.require_tape().events
        ignored = _UNREPEATED | (events[-1].keys() - taped[-1].keys())
        recorded = _strip({"events": taped[-len(events) :], "state": self.saved.final}, ignored)
        now = _strip({"events": events, "state": state}, ignored)
        differences: list[str] = []
        if _encode(recorded) != _encode(now):
            differences += unified_diff(_show(recorded), _show(now), "recorded", "replayed", n=2, lineterm="")
        return Compared(
            type="comparison",
            run_id=self.saved.record.run_id,
            identical=not differences,
            differences=differences[:MAX_DIFFERENCES],
        )


async def prepare_strict(run: SavedRun, graph: AnswerGraph, ports: Context, start: Start | None = None) -> StrictReplay:
    """Prepare the strict replay of a run from one of its states; None: the one that its tape begins at. Of the ports
    only those are used that no tape answers for: they are code.

    Raises `UnknownTape`, `UnknownCheckpoint`, and `StateError` where there is nothing to compare with, nothing to run,
    or no state that this version can run.
    """
    record, tape = run.record, run.require_tape()
    if record.error == STOPPED:
        raise StateError("This run was stopped before its end: there is nothing to compare a strict replay with.")
    if start is None:
        # With the rights that the run had: it reads nothing but its tape.
        start = start_at(run.steps[find_taped(run.steps)], None)
    await prepare_judgement(ports.judges)
    in_memory = await begin_in_memory(graph, record.thread_id, start)
    player = Player(tape, record.run_id, after=start.step.number)
    known, left = start.values["steps"], run.final["steps"]
    # A run that starts with its question finds the steps of the thread's previous run in the state.
    left = left[len(known) :] if left[: len(known)] == known else left
    context = replace(play(tape, player, ports.tokens, ports.judges), measure=repeat_measures(left))
    return StrictReplay(run, start, in_memory, context, player)


async def list_differences(run: SavedRun, graph: AnswerGraph, ports: Context) -> Sequence[str]:
    """Replay a run strictly, and return how every event and the final state differ from the recording, or why it could
    not be repeated to its end; empty where all is as it was."""
    try:
        async for event in (await prepare_strict(run, graph, ports)).run():
            if event["type"] == "comparison":
                return event["differences"]
            if event["type"] == "error":
                return [event["message"]]
    except AskgraphError as error:
        return [error.message]
    return []


def repeat_measures(recorded: Sequence[ExecutedStep]) -> Callable[[ExecutedStep], ExecutedStep]:
    """Return a function that puts the recorded measurements into each step: its time, and what it
    read, because a replay reads nothing but its tape."""
    left = deque(recorded)

    def measure(step: ExecutedStep) -> ExecutedStep:
        if not left or left[0]["node"] != step["node"]:
            return step
        then = left.popleft()
        read: Any = {"read": then["read"]} if "read" in then else {}
        return {**step, "ms": then["ms"], **read}

    return measure


def _encode(value: Any) -> bytes:
    """Encode the value as JSON, equal values as equal bytes: thirty times as fast as the lines that people read."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def _show(value: Any) -> list[str]:
    """Format the value as lines of JSON."""
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).splitlines()


def _strip(value: Any, ignored: Set[str]) -> Any:
    """Return the value without the ignored fields."""
    match value:
        case dict():
            return {key: _strip(part, ignored) for key, part in value.items() if key not in ignored}
        case list():
            return [_strip(part, ignored) for part in value]
    return value
