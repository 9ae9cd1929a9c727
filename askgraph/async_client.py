"""Sends what `askgraph.calls` describes. Whatever waits is in `askgraph.connection`, so that `askgraph.client` can run
the same methods and block."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import httpx
from typing_extensions import Unpack

from askgraph import calls
from askgraph.calls import AssistantSetup, File, Options, Request
from askgraph.connection import Connection, check, explain, http_options, read_target
from askgraph.embedded import EmbeddedService
from askgraph.errors import read_error
from askgraph.following import Following
from askgraph.frames import Frame
from askgraph.models import (
    Answer,
    Assistant,
    Document,
    Erasure,
    Fact,
    Feedback,
    Ingestion,
    Passage,
    QuestionSet,
    Run,
    RunList,
    SetRun,
    Thread,
    ThreadList,
)

if TYPE_CHECKING:
    from askgraph.events import Event

Result = TypeVar("Result")

POLL_SECONDS = 0.2
"""Interval between two looks at a file that is being read."""


class AsyncClient:
    """Asks a server, or one that it starts for itself.

    ::

        async with AsyncClient("https://ask.example.com", key="…") as client:
            answer = await client.ask("How long is the warranty?")

    Without `url`, it is read from `ASKGRAPH_SERVER`; where that is unset, too, the server that runs in the home folder
    is used, or one is started there, as a process of its own on a free loopback port, which ends with this object.
    Entering it with `async with` waits until the service is ready, a few seconds.

    All methods raise what `askgraph.errors` describes. An object belongs to one event loop.
    """

    _kind = Connection

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        workspace: str | None = None,
        home: str | os.PathLike[str] | None = None,
        http: Mapping[str, Any] | None = None,
    ) -> None:
        """`key` is read from `ASKGRAPH_API_KEY` unless given. `workspace` is that of all calls that name none. `home`
        is the data folder of an embedded service, unless given `ASKGRAPH_HOME` or `~/.askgraph`. `http` are further
        options of `httpx.AsyncClient`, such as `verify` or `timeout`.
        """
        url, key = read_target(url, key, home)
        self.url = ""
        self.workspace = workspace
        self._options = http
        self._opened: Connection | None = None
        self._embedded: EmbeddedService | None = None
        if url is not None:
            self._connect(url, key)
        else:
            self._embedded = EmbeddedService(home)
            self._options = {"trust_env": False, **(http or {})}  # no proxy leads to this machine

    async def __aenter__(self) -> Self:
        """Start the embedded service if there is to be one. Raises `Unavailable` where it cannot start."""
        if self._embedded is not None and self._opened is None:
            self._connect(*await self._kind.work(self._embedded.start))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, and stop the embedded service if there is one."""
        if self._opened is not None:
            await self._opened.close()
        if self._embedded is not None:
            await self._kind.work(self._embedded.stop)

    def _connect(self, url: str, key: str | None) -> None:
        self.url = url.rstrip("/")
        self._opened = self._kind(http_options(self.url, key, self._options))

    @property
    def _connection(self) -> Connection:
        if self._opened is None:
            raise RuntimeError("Without an address, the client has to be entered: async with AsyncClient() as client")
        return self._opened

    async def ask(self, question: str, **options: Unpack[Options]) -> Answer:
        """Ask a question and wait for the answer, however often the connection is cut."""
        from askgraph.events import Done

        return [event async for event in self.stream(question, **options) if isinstance(event, Done)][-1]

    def stream(self, question: str, **options: Unpack[Options]) -> AsyncGenerator["Event"]:
        """Ask a question and yield the events of its run, from `Accepted` to `Done`. After a cut connection it goes on
        where it was."""
        workspace = options.pop("workspace", None) or self.workspace
        return self._read_events(Following(workspace, ask=calls.ask(question, workspace, options)))

    def follow(self, run_id: str, *, after: str = "", workspace: str | None = None) -> AsyncGenerator["Event"]:
        """Yield the events of a run, from the beginning or after the event with the id `after`."""
        return self._read_events(Following(workspace or self.workspace, run_id=run_id, after=after))

    async def cancel(self, run_id: str, *, workspace: str | None = None) -> Run:
        """Stop a run. The text so far stays."""
        return await self._do(Run.model_validate, "POST", "runs", run_id, "cancel", workspace=workspace)

    async def search(
        self,
        question: str,
        *,
        limit: int = 10,
        document_ids: Sequence[str] | None = None,
        where: str | None = None,
        workspace: str | None = None,
    ) -> list[Passage]:
        """Find passages, best first, without an answer. `where` is a filter such as `team=legal and year>=2024`."""
        query = {"question": question, "limit": limit, "document": document_ids, "where": where}
        return await self._do(calls.list_of(Passage, "passages"), "GET", "search", workspace=workspace, **query)

    async def assistants(self, *, workspace: str | None = None) -> list[Assistant]:
        """List the workspace's assistants. `ask` takes the name of one as its `mode`."""
        return await self._do(calls.list_of(Assistant, "assistants"), "GET", "assistants", workspace=workspace)

    async def save_assistant(
        self,
        name: str,
        *,
        assistant_id: str | None = None,
        workspace: str | None = None,
        **setup: Unpack[AssistantSetup],
    ) -> Assistant:
        """Make an assistant; with its id, a new version of one, which answers from then on."""
        body, made = {"name": name, **setup}, Assistant.model_validate
        if not assistant_id:
            return await self._do(made, "POST", "assistants", workspace=workspace, body=body)
        return await self._do(made, "PUT", "assistants", assistant_id, workspace=workspace, body=body)

    async def delete_assistant(self, assistant_id: str, *, workspace: str | None = None) -> None:
        """Delete an assistant with all of its versions. What it has answered stays."""
        await self._do(calls.read_nothing, "DELETE", "assistants", assistant_id, workspace=workspace)

    async def threads(
        self,
        q: str | None = None,
        *,
        mine: bool = False,
        limit: int = 50,
        after: str | None = None,
        workspace: str | None = None,
    ) -> ThreadList:
        """List conversations, the latest first; `q` is looked for in their titles and questions."""
        query = {"q": q, "mine": "true" if mine else None, "limit": limit, "after": after}
        return await self._do(ThreadList.model_validate, "GET", "threads", workspace=workspace, **query)

    async def thread(
        self, thread_id: str, *, limit: int | None = None, before: str | None = None, workspace: str | None = None
    ) -> Thread:
        """Return a conversation with its last turns, oldest first."""
        query = {"limit": limit, "before": before}
        return await self._do(Thread.model_validate, "GET", "threads", thread_id, workspace=workspace, **query)

    async def delete_thread(self, thread_id: str, *, workspace: str | None = None) -> Erasure:
        """Erase a conversation, and return the proof."""
        return await self._do(Erasure.model_validate, "DELETE", "threads", thread_id, workspace=workspace)

    async def upload(
        self,
        *files: File,
        metadata: Mapping[str, Any] | None = None,
        groups: Sequence[str] | None = None,
        workspace: str | None = None,
        sidecar: Mapping[str, Any] | None = None,
        wait: bool = True,
    ) -> list[Ingestion]:
        """Send files and wait until they are read. The result has an entry for each, whose `report` says what became of
        the file; a file that cannot be read does not stop the others. The name identifies the document: the same name
        replaces it, and keeps the metadata and groups that it was given unless others are given. `sidecar` is what
        stands beside the files, which is taken anew each time. Without `wait`, return once the server has the files."""
        workspace = workspace or self.workspace
        sent = []
        for file in files:
            request = await self._kind.work(calls.upload, file, workspace, metadata, groups, sidecar)
            sent.append(calls.read_reply(await self.send(request), calls.read_upload))
        return [await self._wait(each, workspace) for each in sent] if wait else sent

    async def ingestion(self, ingestion_id: str, *, workspace: str | None = None) -> Ingestion:
        """Return how far the reading of a file has come."""
        return await self._do(Ingestion.model_validate, "GET", "ingestions", ingestion_id, workspace=workspace)

    async def cancel_ingestion(self, ingestion_id: str, *, workspace: str | None = None) -> Ingestion:
        """Give up a file that has not been read yet."""
        return await self._do(Ingestion.model_validate, "DELETE", "ingestions", ingestion_id, workspace=workspace)

    async def documents(self, *, where: str | None = None, workspace: str | None = None) -> list[Document]:
        """List the documents, or those whose metadata fits."""
        read = calls.list_of(Document, "documents")
        return await self._do(read, "GET", "documents", workspace=workspace, where=where)

    async def document(
        self, document_id: str, *, revision: int | None = None, workspace: str | None = None
    ) -> Document:
        """Return a document with its text."""
        read = Document.model_validate
        return await self._do(read, "GET", "documents", document_id, workspace=workspace, revision=revision)

    async def delete_document(self, document_id: str, *, workspace: str | None = None) -> None:
        """Delete a document."""
        await self._do(calls.read_nothing, "DELETE", "documents", document_id, workspace=workspace)

    async def runs(
        self,
        *,
        since: str = "7d",
        where: str | None = None,
        limit: int = 50,
        after: str | None = None,
        workspace: str | None = None,
    ) -> RunList:
        """List runs that have ended, newest first; `where` is a filter such as `outcome == abstained`."""
        query = {"since": since, "where": where, "limit": limit, "after": after}
        return await self._do(RunList.model_validate, "GET", "runs", workspace=workspace, **query)

    async def run(self, run_id: str, *, workspace: str | None = None) -> Run:
        """Return a run's status."""
        return await self._do(Run.model_validate, "GET", "runs", run_id, workspace=workspace)

    async def why(self, run_id: str, *, workspace: str | None = None) -> list[Fact]:
        """Say why a run ended as it did."""
        return await self._do(calls.list_of(Fact, "facts"), "GET", "runs", run_id, "why", workspace=workspace)

    async def sets(self, *, workspace: str | None = None) -> list[QuestionSet]:
        """List the sets of questions that the workspace keeps, each with what came of asking it."""
        return await self._do(calls.list_of(QuestionSet, "sets"), "GET", "sets", workspace=workspace)

    async def run_set(self, name: str, *, mode: str = "standard", workspace: str | None = None) -> SetRun:
        """Ask all questions of a set, and wait for how many came out right: seconds a question."""
        path, query = calls.join_path("sets", name, "runs"), {"workspace": workspace or self.workspace}
        content = await self.send(Request("POST", path, query, body={"mode": mode}))
        return calls.read_report(content)

    async def rate(
        self,
        run_id: str,
        rating: Literal["up", "down"],
        *,
        reason: Literal["wrong", "incomplete", "not_found", "bad_source", "other"] | None = None,
        comment: str = "",
        workspace: str | None = None,
    ) -> Feedback:
        """Say whether an answer helped."""
        body = {"rating": rating, "reason": reason, "comment": comment}
        read = Feedback.model_validate
        return await self._do(read, "PUT", "runs", run_id, "feedback", workspace=workspace, body=body)

    async def send(self, request: Request) -> bytes:
        """Send any request of the API, and return the content of its response."""
        try:
            response = await self._connection.request(request)
        except httpx.RequestError as error:
            raise explain(error, self.url) from error
        return check(response, request)

    async def read_frames(self, following: Following) -> AsyncGenerator[Frame]:
        """Yield the events of a run as the server sends them, as often as the connection is cut."""
        while not following.is_ended:
            await self._kind.sleep(following.pause)
            try:
                async with self._connection.stream(following.request) as (response, pieces):
                    if not response.is_success:
                        content = b"".join([piece async for piece in pieces])
                        following.fail(read_error(response.status_code, response.headers, content))
                        continue
                    for frame in following.begin(response.status_code, response.headers):
                        yield frame
                    async for piece in pieces:
                        for frame in following.feed(piece):
                            yield frame
                following.interrupt()
            except httpx.RequestError as error:
                following.fail(explain(error, self.url))

    async def _do(
        self,
        read: Callable[[Any], Result],
        method: str,
        *path: str,
        workspace: str | None,
        body: Any = None,
        **query: Any,
    ) -> Result:
        """Send a request, and read the reply."""
        query["workspace"] = workspace or self.workspace
        return calls.read_reply(await self.send(Request(method, calls.join_path(*path), query, body=body)), read)

    async def _read_events(self, following: Following) -> AsyncGenerator["Event"]:
        from askgraph.events import EventReader

        reader = EventReader()
        async with aclosing(self.read_frames(following)) as frames:
            async for frame in frames:
                if (event := reader.read(frame)) is not None:
                    yield event

    async def _wait(self, ingestion: Ingestion, workspace: str | None) -> Ingestion:
        while not ingestion.is_ended:
            await self._kind.sleep(POLL_SECONDS)
            ingestion = await self.ingestion(str(ingestion.ingestion_id), workspace=workspace)
        return ingestion
