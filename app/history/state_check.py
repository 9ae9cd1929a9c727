"""Checks whether this version can read the states that other versions have saved."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from app.history.states import complete_state, find_problem, read_version
from domain.history.retention import SavedState
from domain.ports.retention import SavedStates
from domain.scope import Scope
from domain.state import STATE_VERSION, AnswerState, TurnInput

MAX_NAMED = 200
"""Number of failures that a report lists; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A saved state that no run can continue from."""

    thread_id: str
    checkpoint_id: str
    version: int
    field: str
    why: str
    readable: bool
    """True where it can be shown; False where the stored data is damaged."""


@dataclass(slots=True)
class StateCheck:
    """The result of loading every saved state."""

    states: int = 0
    versions: Counter[int] = field(default_factory=Counter)
    """Number of saved states by state version."""
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    """The first `MAX_NAMED` of them."""


async def check_states(
    states: SavedStates, workspace_id: str | None, progress: Callable[[str, int, int], None] | None = None
) -> StateCheck:
    """Load every saved state of a workspace, or of all workspaces, one at a time.

    Raises `DatabaseUnavailable`.
    """
    total = await states.count(workspace_id)
    found = StateCheck()
    async for saved in states.read(workspace_id):
        found.states += 1
        found.versions[read_version(saved.metadata)] += 1
        if failure := _check_state(saved):
            found.failed += 1
            if len(found.failures) < MAX_NAMED:
                found.failures.append(failure)
        if progress is not None:
            # More states may be saved meanwhile.
            progress("saved states", found.states, max(total, found.states))
    return found


def describe_state_check(found: StateCheck) -> dict[str, Any]:
    """Describe the result as JSON."""
    return {
        "states": found.states,
        "versions": {str(version): states for version, states in sorted(found.versions.items())},
        "current": STATE_VERSION,
        "failed": found.failed,
        "failures": [asdict(failure) for failure in found.failures],
    }


def _check_state(saved: SavedState) -> Failure | None:
    version = read_version(saved.metadata)
    if saved.unreadable:
        return Failure(saved.thread_id, saved.checkpoint_id, version, "checkpoint", saved.unreadable, readable=False)
    values = {key: value for key, value in saved.values.items() if key in AnswerState.__annotations__}
    if values.keys().isdisjoint(TurnInput.__annotations__):
        # Nothing has been asked yet: LangGraph saves the question first, and a branch begins with the conversation.
        values |= TurnInput(run_id="", question="", scope=Scope("").to_json(), mode="", profile={"name": "standard"})
    problem = find_problem(complete_state(values), version)
    return problem and Failure(saved.thread_id, saved.checkpoint_id, version, *problem, readable=True)
