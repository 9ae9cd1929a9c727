"""The types of those responses of the API that its client does not read; `askgraph.models` has the others.
`app/api/schema/descriptions.py` makes most of them."""

from datetime import datetime
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from app.history.steps import HistoryStep
from askgraph import models
from domain.people.access import Right
from domain.runs import CostKey, Spending
from domain.text.blocks import Kind


class FieldProblem(TypedDict):
    """A field of the request that is not valid."""

    field: str
    problem: str


class ErrorDetail(TypedDict):
    """An error."""

    code: str
    message: str
    retryable: bool
    """True where asking again may help; `Retry-After` says when."""
    details: NotRequired[list[FieldProblem]]


class ErrorBody(TypedDict):
    """The body of every error response."""

    error: ErrorDetail


class RevisionBody(TypedDict):
    """A content that a document has or had."""

    revision: int
    content_hash: str
    title: str
    characters: int
    created_at: datetime
    superseded_at: datetime | None
    """Null for the current one."""


class RevisionListBody(TypedDict):
    """The revisions of a document."""

    revisions: list[RevisionBody]


class BlockBody(TypedDict):
    """A block of a document's text."""

    kind: Kind
    start: int
    end: int
    heading_path: list[str]
    page: int | None
    text: str


class BlocksBody(TypedDict):
    """A document's text in blocks."""

    document_id: str
    title: str
    characters: int
    blocks: list[BlockBody]


class DocumentListBody(TypedDict):
    """The documents of a workspace."""

    documents: list[models.Document]


class FolderBody(TypedDict):
    """A folder of the documents' sources."""

    path: str
    documents: int


class ChoiceBody(TypedDict):
    """A value of a metadata key, and how many of the documents have it."""

    key: str
    value: str | int | float | bool
    documents: int


class LibraryBody(TypedDict):
    """A page of the library, and what narrows it down."""

    all: int
    """Documents that the caller may read."""
    total: int
    """Those that are in the folder and below it, and fit the words and the filter."""
    folder: str
    """The folder that is shown: where a folder holds nothing but one other, that one."""
    folders: list[FolderBody]
    """Empty where words or a filter look for documents: those below the folder are listed then too."""
    choices: list[ChoiceBody]
    documents: list[models.Document]
    next: int | None
    """The `offset` of the documents that follow; null at the end."""


class PassageListBody(TypedDict):
    """Passages, best first."""

    passages: list[models.Passage]


class IngestionListBody(TypedDict):
    """Files that wait or are being read, and those of the last hour, the latest first."""

    ingestions: list[models.Ingestion]


class IngestBody(TypedDict):
    """The reports of added files."""

    documents: list[models.DocumentReport]
    chunks: int
    """Chunks that were embedded."""
    failed: int
    passed_over: int
    seconds: float


class AcceptedIngestBody(IngestBody):
    """The files that are read later, and reports of those that were refused."""

    ingestions: list[models.Ingestion]


class HistoryBody(TypedDict):
    """Saved steps of a thread, oldest first."""

    thread_id: str
    steps: list[HistoryStep]
    next: str | None
    """The `after` of the steps that follow; null at the end."""


class WorkspaceBody(TypedDict):
    """A workspace, and what the caller may read in it."""

    id: str
    documents: int
    threads: int


class WorkspaceListBody(TypedDict):
    """The workspaces that the caller may enter."""

    workspaces: list[WorkspaceBody]


class ModeBody(TypedDict):
    """A mode."""

    name: str
    verifies: bool
    """True where every statement of an answer is checked."""
    dollars: float | None
    """The average cost of a question that was not answered from the cache; null where it is not known."""
    most_dollars: float | None
    """The budget of one question; null where it has none, or no language model is asked."""


class ModeListBody(TypedDict):
    """The modes."""

    modes: list[ModeBody]


class CostsBody(TypedDict):
    """Costs, and their total."""

    since: datetime
    by: CostKey
    costs: list[Spending]
    total: Spending


class CallerBody(TypedDict):
    """The sender of a request."""

    name: str
    workspaces: list[str] | None
    """Null: all."""
    groups: list[str] | None
    """The groups whose documents the caller may read; null: all."""
    rights: list[Right]


class LimitsBody(TypedDict):
    """What a key may use; null: as the settings say."""

    requests_per_minute: int | None
    runs: int | None
    tokens_per_day: int | None
    dollars_per_day: float | None


class KeyBody(TypedDict):
    """A key, without its secret."""

    key_id: str
    name: str
    rights: list[Right]
    workspaces: list[str] | None
    """Null: all."""
    groups: list[str] | None
    """Null: all."""
    limits: LimitsBody
    created_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """Within a minute."""


class KeyListBody(TypedDict):
    """The keys."""

    keys: list[KeyBody]


class NewKeyBody(TypedDict):
    """A key that was just made."""

    key_id: str
    key: str
    """The secret, which is shown this once."""


class RetentionBody(TypedDict):
    """How long conversations are kept after their last question, in days; null: for ever."""

    days: float | None
    by_workspace: dict[str, float | None]
    steps_of: int
    """Questions of a conversation that keep every step."""
    steps_days: float | None


class CacheCountsBody(TypedDict):
    """Counts of a workspace's questions that found a cached answer and that did not."""

    workspace: str
    hits: int
    misses: int
    shared: int


class LiveBody(TypedDict):
    """The process is alive."""

    status: Literal["ok"]


class BusyBody(TypedDict):
    """How many runs this process has."""

    running: int
    waiting: int
    most: int
    saturated: bool


class HealthBody(TypedDict):
    """The health of the service and of each part."""

    status: Literal["ok", "degraded", "down"]
    database: Literal["up", "down"]
    cache: Literal["up", "down"]
    models: str
    answering: dict[str, str]
    embeddings: str
    rerank: str
    originals: str
    problem: str | None
    ms: dict[str, float]
    runs: BusyBody
    parts: dict[str, str]
    """Empty without the right `debug`."""
    modes: list[str]
    sign_in: bool
    """True where people can sign in at an identity provider."""
