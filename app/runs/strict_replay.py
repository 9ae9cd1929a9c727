"""Runs a run again from its tape alone, and compares the result with the recorded one."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from app.adapters.tracing.langsmith import untraced
from app.runs.graph_pass import GraphPass, fail
from app.runs.taping import Player
from domain.events import Compared, Event
from domain.state import Step
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
        # In a task with a context of its own, in which nothing is traced: the run's own trace stays as it is.
        await asyncio.create_task(self._follow())
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

    async def _follow(self) -> None:
        with untraced():
            async for _ in self.graph_pass.follow(None, ahead=False):
                pass

    def _compare(self, state: Mapping[str, Any]) -> Compared:
        # A replay from a checkpoint has only the last of the events. Fields that the recording version of askgraph did
        # not know cannot be compared.
        events = self.graph_pass.events
        ignored = _UNREPEATED | (events[-1].keys() - self.events[-1].keys())
        recorded = _show({"events": self.events[-len(events) :], "state": self.recorded}, ignored)
        replayed = _show({"events": events, "state": state}, ignored)
        differences = list(unified_diff(recorded, replayed, "recorded", "replayed", n=2, lineterm=""))
        return Compared(
            type="comparison",
            run_id=self.recorded["run_id"],
            identical=not differences,
            differences=differences[:MAX_DIFFERENCES],
        )


def repeat_measures(recorded: Sequence[Step]) -> Callable[[Step], Step]:
    """Return a function that puts the recorded measurements into each step: its time, and the usage of speculative work
    that was dropped, because a replay does none."""
    left = deque(recorded)

    def measure(step: Step) -> Step:
        if not left or left[0]["node"] != step["node"]:
            return step
        then = left.popleft()
        wasted = [used for used in then["usage"] if used["node"] != step["node"]]
        return {**step, "ms": then["ms"], "usage": [*step["usage"], *wasted]}

    return measure


def _show(value: Any, ignored: Set[str]) -> list[str]:
    """Format the value as lines of JSON, without the ignored fields."""
    return json.dumps(_strip(value, ignored), ensure_ascii=False, indent=1, sort_keys=True).splitlines()


def _strip(value: Any, ignored: Set[str]) -> Any:
    match value:
        case dict():
            return {key: _strip(part, ignored) for key, part in value.items() if key not in ignored}
        case list():
            return [_strip(part, ignored) for part in value]
    return value
