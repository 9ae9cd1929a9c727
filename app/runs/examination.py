"""Whether this version can read what other versions have saved."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from app.runs.states import complete, find_problem, read_version
from app.services import Services
from domain.retention import SavedState
from domain.scope import Scope
from domain.state import STATE_VERSION, AnswerState, TurnInput

MAX_NAMED = 200
"""Failures that a report names; the others are counted."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A saved state that cannot be run on from."""

    thread_id: str
    checkpoint_id: str
    version: int
    field: str
    why: str
    readable: bool
    """Whether it can be shown; if not, what is stored is damaged."""


@dataclass(slots=True)
class Examination:
    """What came of loading every saved state."""

    states: int = 0
    versions: Counter[int] = field(default_factory=Counter)
    """How many states were saved under each version of their types."""
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    """The first of them."""


async def examine_states(
    services: Services, workspace_id: str | None, progress: Callable[[str, int, int], None] | None = None
) -> Examination:
    """Load every saved state of a workspace, or of all, under the types of today, one at a time.

    Raises `DatabaseUnavailable`.
    """
    total = await services.states.count(workspace_id)
    found = Examination()
    async for saved in services.states.read(workspace_id):
        found.states += 1
        found.versions[read_version(saved.metadata)] += 1
        if failure := _examine(saved):
            found.failed += 1
            if len(found.failures) < MAX_NAMED:
                found.failures.append(failure)
        if progress is not None:
            # Others are saved meanwhile.
            progress("saved states", found.states, max(total, found.states))
    return found


def describe_examination(found: Examination) -> dict[str, Any]:
    """The examination as JSON."""
    return {
        "states": found.states,
        "versions": {str(version): states for version, states in sorted(found.versions.items())},
        "current": STATE_VERSION,
        "failed": found.failed,
        "failures": [asdict(failure) for failure in found.failures],
    }


def _examine(saved: SavedState) -> Failure | None:
    version = read_version(saved.metadata)
    if saved.unreadable:
        where, why = next(iter(saved.unreadable.items()))
        return Failure(saved.thread_id, saved.checkpoint_id, version, where, why, readable=False)
    values = {key: value for key, value in saved.values.items() if key in AnswerState.__annotations__}
    if values.keys().isdisjoint(TurnInput.__annotations__):
        # Nothing has been asked yet: LangGraph files the question first, and a branch begins with the conversation.
        values |= TurnInput(run_id="", question="", scope=Scope("").to_json(), mode="", profile={"name": "standard"})
    problem = find_problem(complete(values, version), version)
    return problem and Failure(saved.thread_id, saved.checkpoint_id, version, *problem, readable=True)
