"""Types of the API's requests. `responses.py` has those of its responses."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from app.answering.requests import Ask
from app.workbench.explain.whatif import MOST_SETS
from app.workbench.fleet.fleet import MOST_AT_ONCE
from domain.documents import MAX_GROUPS
from domain.execution.tapes import TapeUse
from domain.history.feedback import LONGEST_COMMENT, Complaint, Rating
from domain.library.where import MAX_CHOICES, Where
from domain.people.access import Caller
from domain.people.names import GROUP, THREAD_ID, WORKSPACE_ID
from domain.profile import MOST_SOURCES
from domain.runs import WhenBusy
from domain.scope import Scope

WhereQuery = Annotated[
    str | None, Query(description="Only documents whose metadata fits, such as `team=legal and year>=2024`.")
]
WorkspaceId = Annotated[str, StringConstraints(pattern=WORKSPACE_ID)]
ThreadId = Annotated[str, StringConstraints(pattern=THREAD_ID)]


_SCALAR = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean")]}
_ORDERED = {"anyOf": [{"type": kind} for kind in ("string", "number")]}
_FILTER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            *_SCALAR["anyOf"],
            {
                "type": "object",
                "properties": {
                    "eq": _SCALAR,
                    "in": {"type": "array", "items": _SCALAR, "minItems": 1, "maxItems": MAX_CHOICES},
                    **dict.fromkeys(("gt", "gte", "lt", "lte"), _ORDERED),
                    "prefix": {"type": "string"},
                },
                "additionalProperties": False,
                "minProperties": 1,
            },
        ]
    },
    "examples": [
        {"team": "legal", "year": {"gte": 2024}, "region": {"in": ["eu", "us"]}, "path": {"prefix": "hr/"}},
    ],
}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ChatRequest(_Body):
    """A question."""

    question: str
    thread_id: ThreadId | None = None
    """Continue this conversation; unset: start one."""
    document_ids: list[str] | None = Field(None, min_length=1, max_length=500)
    """Answer from these documents only; unset: from all of the workspace."""
    filter: Annotated[dict[str, Any], WithJsonSchema(_FILTER_SCHEMA)] | None = None
    """Answer only from documents whose metadata passes all of these tests; unset: from all."""
    mode: str = "standard"
    workspace: WorkspaceId | None = None
    """Unset: the only one of the caller's key, else `default`."""
    threshold: float | None = Field(None, ge=0, le=1, strict=False)
    """Answer only from passages that are at least this similar to the question; unset: as the mode says."""
    limit: int | None = Field(None, ge=1, le=MOST_SOURCES)
    """Answer from this many sources; unset: as the mode says."""
    when_busy: WhenBusy = "queue"
    """While another question of the thread is being answered: refuse this one, queue it, or stop the other one."""
    on_disconnect: Literal["continue", "cancel"] = "continue"
    """Continue or cancel the run if the client of this request disconnects."""

    def as_ask(self, caller: Caller) -> Ask:
        """Return the caller's question for the run manager. Raises `UnknownWorkspace`, and `FilterError`."""
        return Ask(
            question=self.question,
            scope=Scope.within(
                caller.enter(self.workspace), self.document_ids, Where.from_json(self.filter or {}), caller.groups
            ),
            thread_id=self.thread_id,
            mode=self.mode,
            when_busy=self.when_busy,
            threshold=self.threshold,
            limit=self.limit,
            caller=caller,
        )


class SignInRequest(_Body):
    """A key."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=4_000, pattern=r"^[\x21-\x7e]+$")]
    """An API key."""


GroupName = Annotated[str, StringConstraints(pattern=GROUP)]


class FeedbackRequest(_Body):
    """What a reader says of an answer."""

    rating: Rating
    reason: Complaint | None = None
    comment: Annotated[str, StringConstraints(max_length=LONGEST_COMMENT)] = ""


class TitleRequest(_Body):
    """What to call a conversation."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class GroupsRequest(_Body):
    """Who may read a document."""

    groups: list[GroupName] = Field(max_length=MAX_GROUPS)
    """Callers of one of these groups; none: every caller of the workspace."""


NodeName = Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,40}(@[1-9][0-9]?)?$")]


class ReplayRequest(_Body):
    """Continue from a saved state, or run a run again from its start."""

    checkpoint_id: str | None = None
    run_id: str | None = None
    """Without a checkpoint: this run, from its start."""
    node: NodeName | None = None
    """Run this step of the run again with its saved input, and then what follows: `rerank`; `rerank@2` is the second
    one."""
    after: NodeName | None = None
    """Continue after this step of the run; its edge decides again what follows."""
    until: NodeName | None = None
    """Stop once this node has run. The branch can be continued from there."""
    tape: TapeUse = "off"
    """`strict`: answer every call from the run's tape, store nothing, and compare. `fill`: call only what is not on
    it."""
    set: dict[str, Any] = Field(default_factory=dict)
    """State fields to change first; `profile.rerank.keep` reaches into the profile."""
    mode: str | None = None
    workspace: WorkspaceId | None = None
    """Unset: the only one of the caller's key, else `default`."""


class ManyRunsRequest(_Body):
    """Replay runs that have ended with one change, in memory."""

    since: str = "7d"
    """A span such as `24h`, `7d` or `2w`, or a date."""
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


class WhatIfRequest(_Body):
    """What to try besides the usual."""

    sets: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_SETS)
    """Changes of the state to try, each like `set` of a replay."""
    models: bool = False
    """Ask language models what the run's tape does not know. Otherwise such variants are reported as not made."""
