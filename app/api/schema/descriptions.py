"""Describes documents, ingestions and runs as JSON, for the API and for `--json` on the command line.

The types are in `askgraph/models.py`, and in `app/api/schema/responses.py` what the client does not read. This
module imports little, because commands that only read do.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from domain.documents import Citation, Document, IngestReport, Revision
from domain.events import Done, Event, data_of
from domain.history.erasure import Erasure
from domain.history.feedback import Feedback
from domain.library.ingestions import IngestionStatus
from domain.runs import Conversation, RunStatus


def describe(value: Document | Revision | Conversation | Feedback) -> dict[str, Any]:
    """Return the fields, with times in ISO 8601."""
    return {name: each.isoformat() if isinstance(each, datetime) else each for name, each in asdict(value).items()}


def describe_erasure(erasure: Erasure) -> dict[str, Any]:
    """Describe an erasure as an `Erasure`. The sentences that were searched for are only counted."""
    return {
        "ids": [*erasure.needles.ids, *erasure.needles.sources],
        "sentences": len(erasure.needles.sentences),
        "erased": {table: rows for table, rows in sorted(erasure.rows.items()) if rows},
        "searched": erasure.searched,
        "found": dict(sorted(erasure.found.items())),
        "remarks": list(erasure.remarks),
    }


def describe_ingest(report: IngestReport) -> dict[str, Any]:
    """Describe the reports of added files as an `IngestBody`."""
    return {
        "documents": [asdict(d) for d in report.documents],
        "chunks": report.chunks,
        "failed": len(report.failed),
        "passed_over": len(report.passed_over),
        "seconds": report.seconds,
    }


def describe_ingestion(status: IngestionStatus) -> dict[str, Any]:
    """Describe the state of a file's ingestion as an `Ingestion`."""
    return {
        "ingestion_id": status.ingestion_id,
        "workspace": status.workspace_id,
        "source": status.source,
        "state": status.state,
        "accepted_at": status.accepted_at.isoformat(),
        "ended_at": status.ended_at and status.ended_at.isoformat(),
        "report": status.report and asdict(status.report),
        "progress": asdict(status.progress),
    }


def describe_run(status: RunStatus) -> dict[str, Any]:
    """Describe a run's status as a `Run`."""
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


LONGEST_SOURCE = 120
"""Characters of a source that the answer does not cite. The document has the rest."""

_UNSENT = ("chunk_id", "chunk_index", "updated_at", "content_hash")


def describe_feedback(feedback: Feedback) -> dict[str, Any]:
    """Describe what a reader says of an answer as a `Feedback`, without the reader."""
    return {name: value for name, value in describe(feedback).items() if name != "given_by"}


def describe_turn(status: RunStatus, feedback: Feedback | None) -> dict[str, Any]:
    """Describe a run as a `Turn`, with what its readers saw and say."""
    run, shown = describe_run(status), status.shown
    return {
        **{name: run[name] for name in ("run_id", "question", "mode", "state", "accepted_at", "ended")},
        "document_ids": status.request.turn["scope"].get("document_ids"),
        "filter": status.request.turn["scope"].get("where"),
        "sources": [_shorten(source) for source in shown["sources"]] if shown else [],
        "steps": shown["steps"] if shown else [],
        "corrections": shown["corrections"] if shown else [],
        "tools": shown.get("tools", []) if shown else [],
        "feedback": feedback and describe_feedback(feedback),
    }


def _shorten(source: Citation) -> dict[str, Any]:
    text = source["text"]
    kept = {name: value for name, value in source.items() if name not in _UNSENT}
    return kept | {"text": text if len(text) <= LONGEST_SOURCE else text[: LONGEST_SOURCE - 1] + "…"}


def describe_answer(ended: Done, seen: Sequence[Event]) -> dict[str, Any]:
    """Describe a finished run as an `Answer`."""
    sources: list[Citation] = next((event["citations"] for event in reversed(seen) if event["type"] == "sources"), [])
    answer = data_of(ended) | {"sources": sources}
    compared = next((event for event in seen if event["type"] == "comparison"), None)
    return answer if compared is None else answer | {"comparison": data_of(compared)}
