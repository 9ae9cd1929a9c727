"""The types of the API's responses. `app/api/schema/descriptions.py` makes most of them."""

from datetime import datetime
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from app.history.steps import HistoryStep
from domain.documents import Citation, DocumentReport, PageBox
from domain.events import Answer
from domain.history.feedback import Complaint, Rating
from domain.history.run_lists import RunSummary
from domain.library.ingestions import IngestionStage, IngestionState
from domain.library.metadata import Metadata
from domain.people.access import Right
from domain.runs import CostKey, RunState, Spending, StepTime, Withdrawal
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


class ComparisonBody(TypedDict):
    """The result of comparing a strict replay with the recorded run."""

    run_id: str
    identical: bool
    differences: list[str]


class AnswerBody(Answer):
    """A finished run as one answer: the data of `done`, and the sources shown."""

    sources: list[Citation]
    comparison: NotRequired[ComparisonBody]


class RunBody(TypedDict):
    """A run's status."""

    run_id: str
    thread_id: str
    workspace: str
    question: str
    mode: str
    state: RunState
    attempt: int
    accepted_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    stop_requested: bool
    forked_from: dict[str, Any] | None
    ended: dict[str, Any] | None
    """The data of the last event, and its name as `event`; null until then."""


class RunListBody(TypedDict):
    """A page of runs, newest first."""

    since: datetime
    runs: list[RunSummary]
    next: str | None
    """The `after` of the next page; null on the last one."""


class ErasureBody(TypedDict):
    """The proof that something was erased."""

    ids: list[str]
    """What was searched for: the ids, and a document's path."""
    sentences: int
    """Number of sentences that were searched for."""
    erased: dict[str, int]
    """Rows that were deleted or changed, by table; keys of the cache server as `cache`."""
    searched: int
    """Number of tables that were searched, the cache server included."""
    found: dict[str, int]
    """Rows that still hold one of them, by table; empty where nothing is left."""


class DocumentBody(TypedDict):
    """A document."""

    id: str
    workspace_id: str
    source: str
    title: str
    media_type: str
    content_hash: str
    pages: int | None
    characters: int
    chunks: int
    created_at: datetime
    updated_at: datetime
    metadata: Metadata
    revision: int
    """Counts the contents that the document has had."""
    revised_at: datetime | None
    """When this content came; null where that is not known."""
    to_embed: int
    """Chunks that are still to be embedded: until then only their words find them."""
    groups: list[str] | None
    """Who may read it; empty: whoever may enter the workspace. Null: not known."""


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


class DocumentWithTextBody(DocumentBody):
    """A document with its extracted text."""

    text: str


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

    documents: list[DocumentBody]


class PassageBody(TypedDict):
    """A passage that a search found."""

    document_id: str
    title: str
    source: str
    heading_path: list[str]
    page: int | None
    start: int
    end: int
    text: str
    score: float
    """Comparable within one search only."""


class PassageListBody(TypedDict):
    """Passages, best first."""

    passages: list[PassageBody]


class ProgressBody(TypedDict):
    """How far an ingestion has come: of `total` pages or chunks, `done`."""

    stage: IngestionStage
    done: int
    total: int | None


class IngestionBody(TypedDict):
    """The state of a file's ingestion."""

    ingestion_id: str
    workspace: str
    source: str
    state: IngestionState
    accepted_at: datetime
    ended_at: datetime | None
    report: DocumentReport | None
    progress: ProgressBody


class IngestionListBody(TypedDict):
    """Files that wait or are being read, and those of the last hour, the latest first."""

    ingestions: list[IngestionBody]


class IngestBody(TypedDict):
    """The reports of added files."""

    documents: list[DocumentReport]
    chunks: int
    """Chunks that were embedded."""
    failed: int
    passed_over: int
    seconds: float


class AcceptedIngestBody(IngestBody):
    """The files that are read later, and reports of those that were refused."""

    ingestions: list[IngestionBody]


class HistoryBody(TypedDict):
    """Saved steps of a thread, oldest first."""

    thread_id: str
    steps: list[HistoryStep]
    next: str | None
    """The `after` of the steps that follow; null at the end."""


class ConversationBody(TypedDict):
    """A conversation."""

    thread_id: str
    title: str
    """The first question, unless somebody has named it."""
    created_at: datetime
    updated_at: datetime
    """When the last question came."""
    turns: int
    running: str | None
    """The run that is being executed, or else the next one."""


class ConversationListBody(TypedDict):
    """Conversations of a workspace, the latest first."""

    threads: list[ConversationBody]
    next: str | None
    """The `after` of the conversations that follow; null at the end."""


class SourceBody(TypedDict):
    """A source that was shown and not cited. `text` is its beginning."""

    marker: int
    document_id: str
    title: str
    source: NotRequired[str]
    revision: NotRequired[int]
    page: int | None
    boxes: NotRequired[list[PageBox]]
    heading_path: list[str]
    start: int
    end: int
    text: str
    score: float


class WorkspaceBody(TypedDict):
    """A workspace, and what the caller may read in it."""

    id: str
    documents: int
    threads: int


class WorkspaceListBody(TypedDict):
    """The workspaces that the caller may enter."""

    workspaces: list[WorkspaceBody]


class FeedbackBody(TypedDict):
    """What a reader says of an answer."""

    rating: Rating
    reason: Complaint | None
    comment: str
    given_at: datetime


class TurnBody(TypedDict):
    """A question of a thread and what its readers saw."""

    run_id: str
    question: str
    mode: str
    document_ids: list[str] | None
    """The documents that the question was limited to; null: all."""
    state: RunState
    accepted_at: datetime
    ended: dict[str, Any] | None
    """The data of the last event, and its name as `event`; null until then."""
    sources: list[SourceBody]
    """Those that the answer does not cite. The others are the citations in `ended`."""
    steps: list[StepTime]
    corrections: list[Withdrawal]
    feedback: FeedbackBody | None


class ThreadBody(TypedDict):
    """A conversation with some of its turns, oldest first."""

    thread_id: str
    title: str
    turns: list[TurnBody]
    next: str | None
    """The `before` of the turns that precede these; null at the beginning."""


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
