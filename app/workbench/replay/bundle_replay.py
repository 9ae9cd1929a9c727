"""Replays a file strictly, without a database: what it does not hold is not there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.history.states import require_current
from app.workbench.replay.bundle import Bundle
from app.workbench.replay.in_memory import Start
from app.workbench.replay.saved_run import find_taped, require_steps
from app.workbench.replay.strict_replay import prepare_strict
from domain.errors import AskgraphError
from domain.ports.judgement import Judges
from domain.ports.models import TokenCounter
from domain.profile import Profile
from graphs.answer import FINAL_NODE, AnswerGraph


@dataclass(frozen=True, slots=True)
class Parts:
    """What repeating a run needs besides its tape: all of it is code."""

    graph: AnswerGraph
    judges: Judges
    tokens: TokenCounter
    modes: Mapping[str, Profile]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a strict replay."""

    run_id: str
    identical: bool
    differences: Sequence[str] = ()
    problem: str | None = None
    """Why it could not be repeated to its end."""


async def replay_strictly(bundle: Bundle, parts: Parts) -> Result:
    """Replay the run of a file, and compare every event and the final state with the recording."""
    run_id = bundle.run.record.run_id
    try:
        replay = await prepare_strict(bundle.run, _find_start(bundle), parts.graph, parts.judges, parts.tokens)
    except AskgraphError as error:
        return Result(run_id, identical=False, problem=error.message)
    problem = None
    async for event in replay.run():
        if event["type"] == "comparison":
            return Result(run_id, event["identical"], event["differences"])
        if event["type"] == "error":
            problem = event["message"]
    return Result(run_id, identical=False, problem=problem)


def _find_start(bundle: Bundle) -> Start:
    steps = bundle.run.steps
    require_steps(steps)
    step = steps[find_taped(steps)]
    require_current(step.values)
    after = step.forked_as or FINAL_NODE if step.node == "fork" else step.node
    return Start(bundle.run.record.thread_id, step.checkpoint_id, step.number, dict(step.values), after, step.forked_to)
