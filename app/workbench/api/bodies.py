"""Types of requests and responses of the debugger's routes."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from app.api.schema.schemas import Body, WorkspaceId
from app.workbench.explain.settable import Settable
from app.workbench.explain.whatif import MOST_SETS
from app.workbench.fleet.fleet import MOST_AT_ONCE
from app.workbench.tapes.tape import TapeUse
from askgraph.models import Fact

NodeName = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}(@[1-9][0-9]?)?$")]


class ReplayRequest(Body):
    """Continue from a saved state, or run a run again from its start."""

    checkpoint_id: str | None = None
    run_id: str | None = None
    """Without a checkpoint: this run, from its start."""
    node: NodeName | None = None
    """Run this step of the run again with its saved input, and then what follows: `rerank`; `rerank@2` is the second
    one."""
    after: NodeName | None = None
    """Continue after this step of the run; its edge decides again what follows."""
    tape: TapeUse = "off"
    """`strict`: answer every call from the run's tape, store nothing, and compare. `fill`: call only what is not on
    it."""
    set: dict[str, Any] = Field(default_factory=dict)
    """State fields to change first; `profile.rerank.keep` reaches into the profile."""
    mode: str | None = None
    workspace: WorkspaceId | None = None
    """Unset: the only one of the caller's key, else `default`."""


class ManyRunsRequest(Body):
    """Replay runs that have ended with one change, in memory."""

    since: str = "7d"
    """A span such as `24h`, `7d` or `2w`, a date, or `yesterday`."""
    until: str | None = None
    """Only runs that began before it."""
    text: str = Field(default="", max_length=1000)
    """Words that all stand in the question or the answer."""
    where: list[str] = Field(default_factory=list, max_length=20)
    """Filters of runs, such as `outcome == abstained`; all have to hold."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Knobs to change: `profile.rerank.keep`."""
    mode: str | None = None
    """In this mode."""
    search_anew: bool = False
    """Instead of another change: search the documents of today."""
    budget: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """US dollars that language models may cost. Unset: they are not asked."""
    limit: int = Field(default=200, ge=1, le=MOST_AT_ONCE)
    """The most runs to look at, the latest first."""


class WhatIfRequest(Body):
    """What to try besides the usual."""

    sets: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_SETS)
    """Changes of the state to try, each like `set` of a replay."""
    models: bool = False
    """Ask language models what the run's tape does not know. Otherwise such variants are reported as not made."""


class WhyBody(TypedDict):
    """Why a run ended as it did."""

    run_id: str
    facts: list[Fact]


class StateBody(TypedDict):
    """The state after a step."""

    run_id: str
    step: str
    checkpoint_id: str
    values: dict[str, Any]
    """The fields of the state and their values."""
    settable: list[Settable]
    """What a replay from this step can set, so that the step or the edge after it notices."""
