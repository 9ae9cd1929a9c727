"""Runs a run again from its tape alone, and compares the result with the recorded one."""

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, replace
from difflib import unified_diff
from time import perf_counter
from typing import Any

import orjson

from app.answering.graph_pass import GraphPass, fail, prepare_judgement
from app.answering.records import STOPPED
from app.history.thread_states import ThreadStates
from app.workbench.replay.in_memory import Start, begin_in_memory, flush_nothing, follow_untraced
from app.workbench.replay.saved_run import SavedRun
from app.workbench.tapes.taping import Player, play
from domain.errors import StateError
from domain.events import Compared, Event
from domain.ports.judgement import Judges
from domain.ports.models import TokenCounter
from domain.state import ExecutedStep
from graphs.answer import AnswerGraph

MAX_DIFFERENCES = 200
"""Number of lines of a comparison that are sent."""

_UNREPEATED = frozenset({"timings", "trace_url"})
"""Fields that differ between two passes of the same run: its times, and the address of its trace."""


@dataclass(frozen=True, slots=True)
class StrictReplay:
    """A pass through the graph from a run's tape, over a thread in memory, under the run's own ids."""

    graph_pass: GraphPass
    graph: AnswerGraph
    player: Player
    recorded: Mapping[str, Any]
    """The recorded final state."""
    events: Sequence[Event]
    """All recorded events."""

    async def run(self) -> AsyncGenerator[Event]:
        """Yield the events, with a `comparison` before the end; or, at the end, an `error` that says what the tape
        lacks. They come all at once, because nothing is waited for."""
        await follow_untraced(self.graph_pass)
        *replayed, ended = self.graph_pass.events
        for event in replayed:
            yield event
        if self.player.missed is not None:
            # Reported even where the step went on without the missing call.
            yield fail(self.player.missed, self.recorded["run_id"])
            return
        state = await self.graph.aget_state({"configurable": {"thread_id": self.graph_pass.thread_id}})
        yield self._compare(state.values)
        yield ended

    def _compare(self, state: Mapping[str, Any]) -> Compared:
        # A replay from a checkpoint has only the last of the events. Fields that the recording version of askgraph did
        # not know cannot be compared.
        events = self.graph_pass.events
        ignored = _UNREPEATED | (events[-1].keys() - self.events[-1].keys())
        recorded = _strip({"events": self.events[-len(events) :], "state": self.recorded}, ignored)
        replayed = _strip({"events": events, "state": state}, ignored)
        differences: list[str] = []
        if _encode(recorded) != _encode(replayed):
            differences += unified_diff(_show(recorded), _show(replayed), "recorded", "replayed", n=2, lineterm="")
        return Compared(
            type="comparison",
            run_id=self.recorded["run_id"],
            identical=not differences,
            differences=differences[:MAX_DIFFERENCES],
        )


async def prepare_strict(
    run: SavedRun, start: Start, graph: AnswerGraph, judges: Judges, tokens: TokenCounter
) -> StrictReplay:
    """Prepare the strict replay of a run from one of its states.

    Raises `UnknownTape`, and `StateError` where there is nothing to compare with, or nothing to run.
    """
    record, tape = run.record, run.require_tape()
    if record.error == STOPPED:
        raise StateError("This run was stopped before its end: there is nothing to compare a strict replay with.")
    await prepare_judgement(judges)
    in_memory = await begin_in_memory(graph, record.thread_id, start)
    player = Player(tape, record.run_id, after=start.number)
    known, left = start.values["steps"], run.final["steps"]
    # A run that starts with its question finds the steps of the thread's previous run in the state.
    left = left[len(known) :] if left[: len(known)] == known else left
    context = replace(play(tape, player, tokens, judges), measure=repeat_measures(left))
    graph_pass = GraphPass(
        ThreadStates(in_memory, flush_nothing, nullcontext),
        context,
        start.values,
        record.thread_id,
        perf_counter(),
        trace_url=lambda trace_id: None,
    )
    return StrictReplay(graph_pass, in_memory, player, run.final, tape.events)


def repeat_measures(recorded: Sequence[ExecutedStep]) -> Callable[[ExecutedStep], ExecutedStep]:
    """Return a function that puts the recorded measurements into each step: its time, and the usage of speculative work
    that was dropped, because a replay does none."""
    left = deque(recorded)

    def measure(step: ExecutedStep) -> ExecutedStep:
        if not left or left[0]["node"] != step["node"]:
            return step
        then = left.popleft()
        wasted = [used for used in then["usage"] if used["node"] != step["node"]]
        return {**step, "ms": then["ms"], "usage": [*step["usage"], *wasted]}

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
