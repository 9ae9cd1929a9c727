"""What a language model of somebody else can do here: ask, search, and read. Each method is a tool."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from typing_extensions import TypedDict

from app.answering.manager import RunManager
from app.answering.requests import Ask, read_events
from app.api.library.documents import find_document, read_revision
from app.api.library.search import find_passages
from app.api.schema.descriptions import describe, describe_answer
from app.api.schema.schemas import ThreadId, WorkspaceId
from app.support.cancelling import finish
from askgraph import models
from domain.documents import Document, name_cited, name_place
from domain.events import Event, Failed
from domain.library.where import Where
from domain.people.access import Caller
from domain.ports.documents import DocumentStore
from domain.profile import MOST_SOURCES, Profile
from domain.scope import Scope
from nodes.context import Context

MOST_LISTED = 200
MOST_CHARACTERS = 100_000

Report = Callable[[str], Awaitable[None]]
"""Says which step begins."""


class Arguments(BaseModel):
    """Arguments of a tool."""

    model_config = ConfigDict(extra="forbid")

    workspace: WorkspaceId | None = Field(None, description="The workspace. Leave it out unless the user names one.")

    @model_validator(mode="before")
    @classmethod
    def pass_over_blanks(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Models fill in what they do not need."""
        return {name: value for name, value in given.items() if value not in (None, "", [])}


class Question(Arguments):
    """A question, and where to look for its answer."""

    question: str = Field(description="The question, as the user would ask it.")
    document_ids: list[str] | None = Field(
        None, min_length=1, max_length=500, description="Only these documents, by their ids."
    )
    where: str | None = Field(None, description="Only documents whose metadata fits, such as team=legal and year>=2024")


class AskArguments(Question):
    """Arguments of `ask`."""

    mode: str = Field("standard", description="fast, standard, thorough, or one of the team's own.")
    thread_id: ThreadId | None = Field(None, description="Go on in the conversation that an earlier answer named.")


class SearchArguments(Question):
    """Arguments of `search`."""

    limit: int = Field(10, ge=1, le=MOST_SOURCES, description="Passages to return.")


class OpenArguments(Arguments):
    """Arguments of `open_document`."""

    document_id: str
    revision: int | None = Field(None, ge=1, description="An earlier revision, which a citation names.")
    start: int = Field(0, ge=0, description="Begin at this character; citations say where their passages stand.")
    characters: int = Field(20_000, ge=1, le=MOST_CHARACTERS)


class WhyArguments(Arguments):
    """Arguments of `why`."""

    run_id: str = Field(description="The run_id of an answer.")


class ListArguments(Arguments):
    """Arguments of `list_documents`."""

    where: str | None = Field(None, description="Only documents whose metadata fits, such as team=legal and year>=2024")
    start: int = Field(0, ge=0, description="Begin with this one; the answer says where the next ones are.")
    limit: int = Field(50, ge=1, le=MOST_LISTED)


class OpenedDocument(models.Document):
    """A document, and a portion of its text."""

    start: int
    next: int | None
    """The character at which the text goes on."""


class ListedDocuments(TypedDict):
    """Documents, and where the list goes on."""

    documents: list[models.Document]
    total: int
    next: int | None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool says: in words, and as data."""

    text: str
    data: dict[str, Any]


class RunFailed(Exception):
    """A run ended with an error."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed["message"])


@dataclass(frozen=True, slots=True)
class Tools:
    """What one caller can do. Every method raises what the API's endpoint of the same purpose raises."""

    caller: Caller
    modes: Mapping[str, Profile]
    documents: DocumentStore
    explain: Callable[[Scope, str], Awaitable[dict[str, Any]]]
    """Says why a run ended as it did."""
    manager: RunManager
    make_context: Callable[[], Context]

    async def ask(self, given: AskArguments, report: Report) -> ToolResult:
        """Answer a question from the documents, with citations. Where they do not say it, the answer says so."""
        ask = Ask(
            question=given.question,
            scope=self._scope(given, given.document_ids, given.where),
            thread_id=given.thread_id,
            mode=given.mode,
            caller=self.caller,
        )
        run = await self.manager.start(ask)
        seen: list[Event] = []
        try:
            async with aclosing(read_events(self.manager.follow(run))) as events:
                async for event in events:
                    seen.append(event)
                    if event["type"] == "thinking":
                        await report(event["step"])
        finally:
            if not seen or seen[-1]["type"] not in ("done", "error"):
                await finish(partial(self.manager.stop, run.workspace_id, run.run_id))
        ended = seen[-1]
        if ended["type"] != "done":
            raise RunFailed(cast(Failed, ended))
        lines = [ended["answer"], *(["\nSources:"] if ended["citations"] else [])]
        for citation in ended["citations"]:
            place = name_cited(citation)
            page = f", page {citation['page']}" if citation["page"] else ""
            revision = f", revision {citation['revision']}" if "revision" in citation else ""
            document = "" if "outside" in citation else f" (document {citation['document_id']}{revision})"
            lines.append(f"[{citation['marker']}] {place}{page}{document}")
        return ToolResult("\n".join(lines), describe_answer(ended, seen))

    async def search(self, given: SearchArguments, report: Report) -> ToolResult:
        """Find passages of the documents by meaning and by words, best first, without answering; what stands in double
        quotes letter by letter."""
        scope = self._scope(given, given.document_ids, given.where)
        found = await find_passages(given.question, scope, given.limit, self.modes, self.make_context())
        lines = [
            f"{number}. {name_place(passage['title'], passage['heading_path'])} (document {passage['document_id']}, "
            f"characters {passage['start']}-{passage['end']})\n{passage['text']}"
            for number, passage in enumerate(found, 1)
        ]
        return ToolResult("\n\n".join(lines) or "Nothing was found.", {"passages": found})

    async def open_document(self, given: OpenArguments, report: Report) -> ToolResult:
        """Read the text of a document."""
        document, text = await self.read(given.workspace, given.document_id, given.revision)
        end = given.start + given.characters
        more = end if end < len(text) else None
        rest = f"\n\n(The text goes on at character {more} of {len(text)}.)" if more else ""
        described = describe(document) | {"text": text[given.start : end], "start": given.start, "next": more}
        return ToolResult(text[given.start : end] + rest, described)

    async def why(self, given: WhyArguments, report: Report) -> ToolResult:
        """Say why an answer is as it is: what was searched, what decided, and what each claim rests on."""
        scope = self._scope(given)
        explained = await self.explain(scope, given.run_id)
        return ToolResult("\n".join(f"{fact['about']}: {fact['text']}" for fact in explained["facts"]), explained)

    async def list_documents(self, given: ListArguments, report: Report) -> ToolResult:
        """List the documents that can be asked about."""
        found = await self.find_documents(given.workspace, given.where)
        shown = found[given.start : given.start + given.limit]
        more = given.start + given.limit if given.start + given.limit < len(found) else None
        lines = [f"{document.id}: {document.title} ({document.source})" for document in shown]
        if more:
            lines.append(f"({len(found)} documents in all; the list goes on at {more}.)")
        described = [describe(document) for document in shown]
        return ToolResult(
            "\n".join(lines) or "There are no documents.", {"documents": described, "total": len(found), "next": more}
        )

    async def find_documents(self, workspace: str | None, where: str | None = None) -> list[Document]:
        """Return the documents that the caller may read."""
        scope = Scope(self.caller.enter(workspace), groups=self.caller.groups)
        found = await self.documents.list(scope.workspace_id, Where.parse_option(where))
        return [document for document in found if scope.admits(document.groups)]

    async def read(self, workspace: str | None, document_id: str, revision: int | None = None) -> tuple[Document, str]:
        """Return a document and its text."""
        scope = Scope(self.caller.enter(workspace), groups=self.caller.groups)
        document = await find_document(self.documents, scope, document_id)
        return document, await read_revision(self.documents, scope, document, revision)

    def _scope(self, given: Arguments, document_ids: list[str] | None = None, where: str | None = None) -> Scope:
        workspace_id = self.caller.enter(given.workspace)
        return Scope.within(workspace_id, document_ids, Where.parse_option(where), self.caller.groups)
