"""A run, run again on its tape alone and compared with what was recorded of it."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from app.adapters.tracing.langsmith import untraced
from app.runs.execution import Execution, fail
from app.runs.taping import Player
from domain.events import Compared, Event
from domain.state import Step
from graphs.answer import AnswerGraph

MAX_DIFFERENCES = 200
"""Lines of a comparison that are sent."""

_UNREPEATED = {"timings", "trace_url"}
"""What an event says of the time that a run took and of where its trace is."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The execution of a run over a thread in memory, under the run's own ids. Nothing is stored."""

    execution: Execution
    graph: AnswerGraph
    player: Player
    recorded: Mapping[str, Any]
    """The final state."""
    events: Sequence[Event]
    """All that were recorded."""

    async def run(self) -> AsyncGenerator[Event]:
        """The events, with a `comparison` before the end; or an `error` at the end that says what is not on the tape.
        They come when all is over: nothing is waited for."""
        # In a task, whose context is its own: there nothing is traced, and the run's trace stays as it is.
        await asyncio.create_task(self._follow())
        *replayed, ended = self.execution.events
        for event in replayed:
            yield event
        if self.player.missed is not None:
            # Said even where a step did without what it could not have.
            yield fail(self.player.missed, self.recorded["run_id"])
            return
        state = await self.graph.aget_state({"configurable": {"thread_id": self.execution.thread_id}})
        yield self._compare(state.values)
        yield ended

    async def _follow(self) -> None:
        with untraced():
            async for _ in self.execution.follow(None, ahead=False):
                pass

    def _compare(self, state: Mapping[str, Any]) -> Compared:
        # From a checkpoint on, there are only the last of the events.
        recorded = _show({"events": self.events[-len(self.execution.events) :], "state": self.recorded})
        replayed = _show({"events": self.execution.events, "state": state})
        differences = list(unified_diff(recorded, replayed, "recorded", "replayed", n=2, lineterm=""))
        return Compared(
            type="comparison",
            run_id=self.recorded["run_id"],
            identical=not differences,
            differences=differences[:MAX_DIFFERENCES],
        )


def repeat_measures(recorded: Sequence[Step]) -> Callable[[Step], Step]:
    """Puts into each step what was measured of it when it was recorded: its time, and what was spent meanwhile on work
    ahead that nobody needed, because a replay does none."""
    left = deque(recorded)

    def measure(step: Step) -> Step:
        if not left or left[0]["node"] != step["node"]:
            return step
        then = left.popleft()
        wasted = [used for used in then["usage"] if used["node"] != step["node"]]
        return {**step, "ms": then["ms"], "usage": [*step["usage"], *wasted]}

    return measure


def _show(value: Any) -> list[str]:
    """The value as lines of JSON."""
    return json.dumps(_strip(value), ensure_ascii=False, indent=1, sort_keys=True).splitlines()


def _strip(value: Any) -> Any:
    match value:
        case dict():
            return {key: _strip(part) for key, part in value.items() if key not in _UNREPEATED}
        case list():
            return [_strip(part) for part in value]
    return value
