"""What each method of the client sends, and how the reply is read: once, for the client and its async twin."""

import json
import mimetypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeAlias, TypedDict, TypeVar
from urllib.parse import quote

from askgraph.errors import read_failure, unknown_form
from askgraph.models import (
    Assistant,
    Document,
    DocumentReport,
    Erasure,
    Fact,
    Feedback,
    Ingestion,
    Passage,
    Run,
    RunList,
    Thread,
    ThreadList,
)

Result = TypeVar("Result")

File: TypeAlias = str | os.PathLike[str] | tuple[str, bytes]
"""A file: its path, or its name and content."""


class Options(TypedDict, total=False):
    """How to answer a question."""

    thread_id: str | None
    """Continue this conversation; unset: start one."""
    document_ids: Sequence[str] | None
    """Answer from these documents only."""
    filter: Mapping[str, Any] | None
    """Answer only from documents whose metadata fits: `{"team": "legal", "year": {"gte": 2024}}`."""
    mode: str
    """`fast`, `standard` (the default), `thorough`, one of your own, or an assistant."""
    threshold: float | None
    """Answer only from passages that are at least this similar to the question, 0 to 1."""
    limit: int | None
    """Answer from this many sources, 1 to 50."""
    when_busy: Literal["queue", "interrupt", "reject"]
    """What to do while the conversation's previous question is still being answered."""
    on_disconnect: Literal["continue", "cancel"]
    """What becomes of the run where this client leaves."""
    workspace: str | None
    """Unset: that of the client."""


class AssistantSetup(TypedDict, total=False):
    """What an assistant is made of. Unset: as its mode says."""

    description: str
    mode: str
    """The mode that it changes: `standard` (the default) or another of the deployment's."""
    instructions: str | None
    """For the language model that writes: what to stress and how to word it."""
    document_ids: Sequence[str] | None
    """It answers from these documents only."""
    filter: Mapping[str, Any] | None
    """It answers only from documents whose metadata fits."""
    length: Literal["brief", "detailed"] | None
    language: Literal["auto", "en", "de", "fr", "es"] | None
    models: Mapping[Literal["small", "large", "judge"], str] | None
    metadata: Mapping[str, Any]
    """Notes of yours."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request, as httpx takes it."""

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    """Sent as JSON."""
    form: Mapping[str, Any] | None = None
    files: Mapping[str, Any] | None = None
    accepts: tuple[int, ...] = ()
    """Statuses that are no failure, although they look like one."""

    def as_arguments(self) -> dict[str, Any]:
        """Return the arguments of `build_request`. Values that are None are left out of the query."""
        sent = {
            "method": self.method,
            "url": self.path,
            "params": {name: value for name, value in self.query.items() if value is not None},
            "headers": dict(self.headers),
            "json": self.body,
            "data": self.form,
            "files": self.files,
        }
        return {name: value for name, value in sent.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """A request, and how its reply, which is JSON, is read."""

    request: Request
    read: Callable[[Any], Result]

    def read_reply(self, content: bytes) -> Result:
        """Read the content of the response. Raises `AskgraphError` where it is not as this client knows it."""
        try:
            return self.read(json.loads(content) if content else None)
        except ValueError as error:
            raise unknown_form(error) from error


def join_path(*parts: str) -> str:
    """Return the address below `/api/` that these parts make."""
    return "/api/" + "/".join(quote(part, safe="") for part in parts)


def ask(question: str, workspace: str | None, options: Options) -> Request:
    """Ask a question; the response is the run's stream."""
    given = {"question": question, "workspace": workspace, **options}
    body = {name: value for name, value in given.items() if value is not None}
    return Request("POST", join_path("chat"), query={"stream": "true"}, body=body)


def follow(run_id: str, workspace: str | None, after: str) -> Request:
    """Follow a run's events from the beginning, or after the event with this id."""
    headers = {"Last-Event-ID": after} if after else {}
    return Request("GET", join_path("runs", run_id, "events"), query={"workspace": workspace}, headers=headers)


def cancel(run_id: str, workspace: str | None) -> Call[Run]:
    """Stop a run."""
    request = Request("POST", join_path("runs", run_id, "cancel"), query={"workspace": workspace})
    return Call(request, Run.model_validate)


def search(
    question: str, workspace: str | None, limit: int, document_ids: Sequence[str] | None, where: str | None
) -> Call[list[Passage]]:
    """Search without answering."""
    query = {"question": question, "limit": limit, "document": document_ids, "where": where, "workspace": workspace}
    return Call(
        Request("GET", join_path("search"), query=query),
        lambda reply: [Passage.model_validate(each) for each in reply["passages"]],
    )


def list_assistants(workspace: str | None) -> Call[list[Assistant]]:
    """List assistants."""
    return Call(
        Request("GET", join_path("assistants"), query={"workspace": workspace}),
        lambda reply: [Assistant.model_validate(each) for each in reply["assistants"]],
    )


def save_assistant(
    name: str, assistant_id: str | None, workspace: str | None, setup: AssistantSetup
) -> Call[Assistant]:
    """Make an assistant, or a new version of one."""
    path = join_path("assistants", *([assistant_id] if assistant_id else []))
    request = Request(
        "PUT" if assistant_id else "POST", path, query={"workspace": workspace}, body={"name": name, **setup}
    )
    return Call(request, Assistant.model_validate)


def delete_assistant(assistant_id: str, workspace: str | None) -> Call[None]:
    """Delete an assistant."""
    return Call(
        Request("DELETE", join_path("assistants", assistant_id), query={"workspace": workspace}), lambda _: None
    )


def list_threads(workspace: str | None, q: str | None, mine: bool, limit: int, after: str | None) -> Call[ThreadList]:
    """List conversations."""
    query = {"workspace": workspace, "q": q, "mine": "true" if mine else None, "limit": limit, "after": after}
    return Call(Request("GET", join_path("threads"), query=query), ThreadList.model_validate)


def read_thread(thread_id: str, workspace: str | None, limit: int | None, before: str | None) -> Call[Thread]:
    """Read a conversation."""
    query = {"workspace": workspace, "limit": limit, "before": before}
    return Call(Request("GET", join_path("threads", thread_id), query=query), Thread.model_validate)


def delete_thread(thread_id: str, workspace: str | None) -> Call[Erasure]:
    """Erase a conversation."""
    request = Request("DELETE", join_path("threads", thread_id), query={"workspace": workspace})
    return Call(request, Erasure.model_validate)


def list_documents(workspace: str | None, where: str | None) -> Call[list[Document]]:
    """List documents."""
    return Call(
        Request("GET", join_path("documents"), query={"workspace": workspace, "where": where}),
        lambda reply: [Document.model_validate(each) for each in reply["documents"]],
    )


def read_document(document_id: str, workspace: str | None, revision: int | None) -> Call[Document]:
    """Read a document with its text."""
    query = {"workspace": workspace, "revision": revision}
    return Call(Request("GET", join_path("documents", document_id), query=query), Document.model_validate)


def delete_document(document_id: str, workspace: str | None) -> Call[None]:
    """Delete a document."""
    request = Request("DELETE", join_path("documents", document_id), query={"workspace": workspace})
    return Call(request, lambda reply: None)


def upload(
    file: File, workspace: str | None, metadata: Mapping[str, Any] | None, groups: Sequence[str] | None
) -> Call[Ingestion]:
    """Send a file, to be read by the server in its own time. Reads the file. Raises `OSError`."""
    name, content = file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes())
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    form: dict[str, Any] = {"metadata": None if metadata is None else json.dumps(metadata)}
    form["groups"] = None if groups is None else list(groups)
    request = Request(
        "POST",
        join_path("documents"),
        query={"wait": "false", "workspace": workspace},
        form={key: value for key, value in form.items() if value is not None},
        files={"files": (name, content, kind)},
        accepts=(422,),
    )
    return Call(request, _read_upload)


def read_ingestion(ingestion_id: str, workspace: str | None) -> Call[Ingestion]:
    """Read how far the reading of a file has come."""
    request = Request("GET", join_path("ingestions", ingestion_id), query={"workspace": workspace})
    return Call(request, Ingestion.model_validate)


def cancel_ingestion(ingestion_id: str, workspace: str | None) -> Call[Ingestion]:
    """Give up a file that has not been read yet."""
    request = Request("DELETE", join_path("ingestions", ingestion_id), query={"workspace": workspace})
    return Call(request, Ingestion.model_validate)


def list_runs(workspace: str | None, since: str, where: str | None, limit: int, after: str | None) -> Call[RunList]:
    """List runs that have ended."""
    query = {"workspace": workspace, "since": since, "where": where, "limit": limit, "after": after}
    return Call(Request("GET", join_path("runs"), query=query), RunList.model_validate)


def read_run(run_id: str, workspace: str | None) -> Call[Run]:
    """Read a run's status."""
    return Call(Request("GET", join_path("runs", run_id), query={"workspace": workspace}), Run.model_validate)


def explain_run(run_id: str, workspace: str | None) -> Call[list[Fact]]:
    """Read why a run ended as it did."""
    return Call(
        Request("GET", join_path("runs", run_id, "why"), query={"workspace": workspace}),
        lambda reply: [Fact.model_validate(each) for each in reply["facts"]],
    )


def rate(
    run_id: str, workspace: str | None, rating: Literal["up", "down"], reason: str | None, comment: str
) -> Call[Feedback]:
    """Say whether an answer helped."""
    body = {"rating": rating, "reason": reason, "comment": comment}
    request = Request("PUT", join_path("runs", run_id, "feedback"), query={"workspace": workspace}, body=body)
    return Call(request, Feedback.model_validate)


def _read_upload(reply: Mapping[str, Any]) -> Ingestion:
    if "error" in reply:
        raise read_failure(reply["error"])
    if reply.get("ingestions"):
        return Ingestion.model_validate(reply["ingestions"][0])
    report = DocumentReport.model_validate(reply["documents"][0])
    return Ingestion(ingestion_id=None, source=report.source, state=report.status, report=report)
