"""What the API answers with, and the command line with `--json`: the types, and how they are made."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from app.ingest.background import HandedOver
from app.ingest.reindexing import Reindexed
from app.runs.history import HistoryStep
from domain.documents import Citation, Document, DocumentReport, IngestReport, Verification
from domain.events import Done, Event, data_of
from domain.ingestions import IngestionState, IngestionStatus
from domain.metadata import Metadata
from domain.outcome import Framing, Outcome, Reason
from domain.runs import CostKey, RunState, RunStatus, Spending
from domain.state import Degradation, Route, Usage


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
    """How a strict replay compares with the recorded run."""

    run_id: str
    identical: bool
    differences: list[str]


class AnswerBody(TypedDict):
    """A finished run as one answer: the data of `done`, and the sources shown."""

    run_id: str
    thread_id: str
    answer: str
    citations: list[Citation]
    outcome: Outcome | None
    abstained: bool
    outcome_reasons: list[Reason]
    framing: Framing
    route: Route
    mode: str
    standalone_question: str
    confidence: float
    verification: Verification
    cached: bool
    stopped: bool
    usage: list[Usage]
    cost: float | None
    timings: dict[str, float]
    warnings: list[str]
    answered_by: str
    degraded: list[Degradation]
    prompts: dict[str, str]
    trace_url: str | None
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


class DocumentWithTextBody(DocumentBody):
    """A document with its extracted text."""

    text: str


class DocumentListBody(TypedDict):
    """The documents of a workspace."""

    documents: list[DocumentBody]


class IngestionBody(TypedDict):
    """The state of a file's ingestion."""

    ingestion_id: str
    workspace: str
    source: str
    state: IngestionState
    accepted_at: datetime
    ended_at: datetime | None
    report: DocumentReport | None


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
    """The saved steps of a thread, oldest first."""

    thread_id: str
    steps: list[HistoryStep]


class CostsBody(TypedDict):
    """Costs, and their total."""

    since: datetime
    by: CostKey
    costs: list[Spending]
    total: Spending


class CacheCountsBody(TypedDict):
    """How many of a workspace's questions found a cached answer."""

    workspace: str
    hits: int
    misses: int
    shared: int


class HealthBody(TypedDict):
    """The health of the service and of each part."""

    status: Literal["ok", "degraded", "down"]
    database: Literal["up", "down"]
    cache: Literal["up", "down"]
    models: str
    answering: dict[str, str]
    embeddings: str
    rerank: str
    problem: str | None
    parts: dict[str, str]
    modes: list[str]


def describe_document(document: Document) -> dict[str, Any]:
    """Describe a document as a `DocumentBody`."""
    return asdict(document) | {
        "created_at": document.created_at.isoformat(),
        "updated_at": document.updated_at.isoformat(),
    }


def describe_reindexing(report: Reindexed) -> dict[str, Any]:
    """Describe a finished reindexing."""
    return {
        "model": report.model,
        "switched": report.switched,
        "chunks": report.chunks,
        "tokens": report.tokens,
        "cost": report.cost,
    }


def describe_ingest(report: IngestReport) -> dict[str, Any]:
    """Describe the reports of added files as an `IngestBody`."""
    return {
        "documents": [asdict(d) for d in report.documents],
        "chunks": report.chunks,
        "failed": len(report.failed),
        "passed_over": report.passed_over,
        "seconds": report.seconds,
    }


def describe_handed_over(handed: HandedOver) -> dict[str, Any]:
    """Describe files that are read later, and those that were refused."""
    return {
        "documents": [asdict(report) for report in handed.refused],
        "failed": len(handed.refused),
        "passed_over": handed.passed_over,
        "ingestions": [describe_ingestion(status) for status in handed.ingestions],
    }


def describe_ingestion(status: IngestionStatus) -> dict[str, Any]:
    """Describe the state of a file's ingestion as an `IngestionBody`."""
    return {
        "ingestion_id": status.ingestion_id,
        "workspace": status.workspace_id,
        "source": status.source,
        "state": status.state,
        "accepted_at": status.accepted_at.isoformat(),
        "ended_at": status.ended_at and status.ended_at.isoformat(),
        "report": status.report and asdict(status.report),
    }


def describe_run(status: RunStatus) -> dict[str, Any]:
    """Describe a run's status as a `RunBody`."""
    request = status.request
    return {
        "run_id": request.run_id,
        "thread_id": request.thread_id,
        "workspace": request.workspace_id,
        "question": request.turn["question"],
        "mode": request.turn["mode"],
        "state": status.state,
        "attempt": status.attempt,
        "accepted_at": status.accepted_at.isoformat(),
        "started_at": status.started_at and status.started_at.isoformat(),
        "ended_at": status.ended_at and status.ended_at.isoformat(),
        "stop_requested": status.stop_requested,
        "forked_from": request.forked_from,
        "ended": status.ended and {"event": status.ended["type"], **data_of(status.ended)},
    }


def describe_answer(ended: Done, seen: Sequence[Event]) -> AnswerBody:
    """Describe a finished run as one answer."""
    sources = next((event["citations"] for event in reversed(seen) if event["type"] == "sources"), [])
    answer = data_of(ended) | {"sources": sources}
    compared = next((event for event in seen if event["type"] == "comparison"), None)
    return cast(AnswerBody, answer if compared is None else answer | {"comparison": data_of(compared)})
