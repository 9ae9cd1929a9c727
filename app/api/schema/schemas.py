"""Types of the API's requests. `responses.py` has those of its responses."""

from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, WithJsonSchema

from app.answering.requests import Ask
from domain.assistants import MOST_VERSIONS, Draft
from domain.documents import MAX_GROUPS
from domain.history.feedback import LONGEST_COMMENT, Complaint, Rating
from domain.library.where import MAX_CHOICES, Where
from domain.people.access import ApiKey, Caller, Right
from domain.people.limits import Limits
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


class Body(BaseModel):
    """A body in which nothing is unknown."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ChatRequest(Body):
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


class SignInRequest(Body):
    """A key."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=4_000, pattern=r"^[\x21-\x7e]+$")]
    """An API key."""


GroupName = Annotated[str, StringConstraints(pattern=GROUP)]


class FeedbackRequest(Body):
    """What a reader says of an answer."""

    rating: Rating
    """Whether the answer helps."""
    reason: Complaint | None = None
    """What is wrong with it."""
    comment: Annotated[str, StringConstraints(max_length=LONGEST_COMMENT)] = ""
    """The reader's own words."""


class TitleRequest(Body):
    """What to call a conversation."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ModelRequest(Body):
    """A language model to try."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    """Such as `ollama:qwen3:8b`, `gpt-5-mini` or `anthropic:NAME`."""
    address: Annotated[str, StringConstraints(pattern=r"^https?://", max_length=2_000)] | None = None
    """Of a server that speaks OpenAI's protocol; null: that of the named kind or provider."""
    key: Annotated[str, StringConstraints(min_length=1, max_length=2_000)] | None = None
    """The provider's API key; null: what the environment has, for the provider's own address."""
    keep: bool = False
    """If true, a model that writes is used from the next start on."""


KeptDays = Annotated[float, Field(gt=0, le=100_000, strict=False)] | None
"""Null: for ever."""


class RetentionRequest(Body):
    """How long conversations are to be kept after their last question, in days."""

    days: KeptDays
    """In workspaces without a span of their own."""
    by_workspace: dict[WorkspaceId, KeptDays] = Field(default={}, max_length=1_000)
    """In these workspaces."""
    steps_days: KeptDays
    """For how long the steps of a question are kept."""
    dry_run: bool = False
    """If true, nothing is changed; the response says what would be deleted."""


class KeyRequest(Body):
    """A key that is to be, or what becomes of one."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
    """Who or what uses it."""
    rights: Annotated[list[Right], Field(min_length=1)] = ["ask"]
    """What it may do."""
    workspaces: Annotated[list[WorkspaceId], Field(min_length=1, max_length=1_000)] | None = None
    """Null: all."""
    groups: list[GroupName] | None = Field(None, max_length=MAX_GROUPS)
    """The groups whose documents it may read; null: all."""
    requests_per_minute: int | None = Field(None, ge=1, le=1_000_000)
    """Null, here and in the next three: as the settings say."""
    runs: int | None = Field(None, ge=1, le=1_000_000)
    """Questions that it may have answered at once."""
    tokens_per_day: int | None = Field(None, ge=0, le=10**12)
    """Tokens of language models, read and written."""
    dollars_per_day: float | None = Field(None, ge=0, le=10**9, strict=False)
    """US dollars that language models may cost."""
    max_documents: int | None = Field(None, ge=1, le=10**9)
    """Documents that it may store in all workspaces; null, here and below: no limit."""
    max_stored_mb: int | None = Field(None, ge=1, le=10**9)
    """Megabytes of files that it may store."""

    def as_key(self, key_id: str = "", expires_at: datetime | None = None) -> ApiKey:
        """Return the key with this id."""
        return ApiKey(
            key_id=key_id,
            name=self.name,
            rights=frozenset(self.rights),
            workspaces=None if self.workspaces is None else frozenset(self.workspaces),
            groups=None if self.groups is None else frozenset(self.groups),
            limits=Limits(**{each.name: getattr(self, each.name) for each in fields(Limits)}),
            expires_at=expires_at,
        )


class NewKeyRequest(KeyRequest):
    """A key that is to be."""

    expires: Annotated[str, StringConstraints(max_length=20)] | None = None
    """The span after which it ends, such as `90d`; null: never."""


class AssistantRequest(Draft):
    """A version of an assistant that is to be."""

    filter: Annotated[dict[str, Any], WithJsonSchema(_FILTER_SCHEMA)] | None = None
    """It answers only from documents whose metadata passes all of these tests; unset: from all."""


class VersionRequest(Body):
    """A version of an assistant."""

    version: int = Field(ge=1, le=MOST_VERSIONS)
    """The version that is to answer."""


class GroupsRequest(Body):
    """Who may read a document."""

    groups: list[GroupName] = Field(max_length=MAX_GROUPS)
    """Callers of one of these groups; none: every caller of the workspace."""
