"""What the client and its async twin send, and how replies are read."""

import json
import mimetypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar
from urllib.parse import quote

from askgraph.errors import Unavailable, read_failure, unknown_form
from askgraph.frames import read_frames
from askgraph.models import DocumentReport, Ingestion, Model, SetRun

Result = TypeVar("Result")
Kind = TypeVar("Kind", bound=Model)

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
    groups: Sequence[str]
    """Only callers of one of these groups read, use and change it. Unset: as before; of a new one, your key's."""


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


def upload(
    file: File,
    workspace: str | None,
    metadata: Mapping[str, Any] | None,
    groups: Sequence[str] | None,
    sidecar: Mapping[str, Any] | None,
) -> Request:
    """Send a file, to be read by the server in its own time. Reads the file. Raises `OSError`."""
    name, content = file if isinstance(file, tuple) else (Path(file).name, Path(file).read_bytes())
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    texts = {"metadata": metadata, "sidecar": sidecar}
    form: dict[str, Any] = {field: None if given is None else json.dumps(given) for field, given in texts.items()}
    form["groups"] = None if groups is None else list(groups)
    return Request(
        "POST",
        join_path("documents"),
        query={"wait": "false", "workspace": workspace},
        form={key: value for key, value in form.items() if value is not None},
        files={"files": (name, content, kind)},
        accepts=(422,),
    )


def read_reply(content: bytes, read: Callable[[Any], Result]) -> Result:
    """Read the content of a response, which is JSON. Raises `AskgraphError` where it is not as this client knows it."""
    try:
        return read(json.loads(content) if content else None)
    except ValueError as error:
        raise unknown_form(error) from error


def read_report(content: bytes) -> SetRun:
    """Read the last event of a set's run. Raises its error, and `Unavailable` where the connection was cut."""
    for frame in read_frames([content]):
        if frame.is_end:
            raise read_failure(frame.event)
        if frame.type == "report":
            return read_reply(frame.data, SetRun.model_validate)
    raise Unavailable("The connection was cut before the set's end.", code="unavailable", retryable=True)


def read_nothing(reply: object) -> None:
    """Read a reply that says nothing."""


def list_of(kind: type[Kind], name: str) -> Callable[[Any], list[Kind]]:
    """Return what reads the list that stands under this name in a reply."""
    return lambda reply: [kind.model_validate(each) for each in reply[name]]


def read_upload(reply: Mapping[str, Any]) -> Ingestion:
    """Read what became of an upload. Raises the error of one that was refused as a whole."""
    if "error" in reply:
        raise read_failure(reply["error"])
    if reply.get("ingestions"):
        return Ingestion.model_validate(reply["ingestions"][0])
    report = DocumentReport.model_validate(reply["documents"][0])
    return Ingestion(ingestion_id=None, source=report.source, state=report.status, report=report)
