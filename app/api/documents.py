"""Giving documents, looking at them, taking them away."""

from dataclasses import asdict
from pathlib import PurePath
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, UploadFile
from fastapi.responses import JSONResponse

from app.api.dependencies import ServicesDep, Workspace
from app.api.schemas import WorkspaceId
from domain.documents import Document, DocumentReport, IngestReport
from domain.errors import InputError, OversizedDocument, UnknownDocument

router = APIRouter(prefix="/api/documents", tags=["documents"])


@router.post("")
async def add_documents(
    services: ServicesDep,
    files: Annotated[list[UploadFile], File(description="Markdown, text, HTML, PDF or DOCX")],
    workspace: Annotated[WorkspaceId, Form()] = "default",
) -> JSONResponse:
    """Add files, or replace those of the same name. Each gets its own report; one that fails does not stop the
    others. 200 where at least one was taken, 422 where none was."""
    started = perf_counter()
    limit = services.settings.max_document_mb * 1_000_000
    reports: list[DocumentReport] = []
    for file in files:
        name = PurePath((file.filename or "").replace("\\", "/")).name
        if not name:
            raise InputError("A file came without a name. The name identifies the document; give one.")
        if file.size is not None and file.size > limit:
            error = OversizedDocument(f"{name} is larger than {services.settings.max_document_mb} MB.")
            reports.append(DocumentReport(source=name, status="failed", error=error.message, code=error.code))
            continue
        reports.append(await services.ingestion.add(workspace, name, await file.read(), media_type=file.content_type))
    report = IngestReport(documents=reports, seconds=round(perf_counter() - started, 3))
    return JSONResponse(describe_ingest(report), 422 if len(report.failed) == len(reports) else 200)


@router.get("")
async def list_documents(services: ServicesDep, workspace: Workspace = "default") -> dict[str, Any]:
    """The workspace's documents."""
    return {"documents": [describe_document(d) for d in await services.documents.list(workspace)]}


@router.get("/{document_id}")
async def get_document(document_id: str, services: ServicesDep, workspace: Workspace = "default") -> dict[str, Any]:
    """One document, with its extracted text: the offsets of citations count in it."""
    document = await services.documents.get(workspace, document_id)
    if document is None:
        raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")
    return describe_document(document) | {"text": await services.documents.get_text(workspace, document_id)}


@router.delete("/{document_id}", status_code=204)
async def delete_document(document_id: str, services: ServicesDep, workspace: Workspace = "default") -> None:
    """Remove a document, its chunks, and the answers cached from it."""
    if not await services.ingestion.delete(workspace, document_id):
        raise UnknownDocument(f"There is no document {document_id!r} in this workspace.")


def describe_document(document: Document) -> dict[str, Any]:
    """A document as JSON."""
    return asdict(document) | {
        "created_at": document.created_at.isoformat(),
        "updated_at": document.updated_at.isoformat(),
    }


def describe_ingest(report: IngestReport) -> dict[str, Any]:
    """An ingestion's report as JSON."""
    return {
        "documents": [asdict(d) for d in report.documents],
        "chunks": report.chunks,
        "failed": len(report.failed),
        "passed_over": report.passed_over,
        "seconds": report.seconds,
    }
