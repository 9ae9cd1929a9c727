"""Ingests a set's corpus into a workspace of its own and maps its documents to the library's ids."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import app.adapters.postgres.library.bm25
import app.adapters.rerankers.late_interaction
import app.ingest
import domain.text.terms
from app.evaluation.sets import CorpusDocument, EvaluationSet, Question, SetError
from app.samples import FOLDER
from app.support.cases import work_side_by_side
from app.wiring.services import Services
from domain.documents import Document, ParsedDocument, Section

AT_ONCE = 4
"""Documents ingested concurrently, so that one is written while the next is embedded."""

Progress = Callable[[int, int], None]
"""Called with the number of documents done and their total."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """A workspace that holds a set's documents."""

    workspace_id: str
    libraries: Mapping[str, str] = field(default_factory=dict)
    """The workspace of each library of a practical set, by its name."""
    document_ids: Mapping[str, str] = field(default_factory=dict)
    """The set's name of each document, by the library's id."""
    pages: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The set's name of each page, by the library's document id and page number, if its documents are pages."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The library's id of each document that a question may choose, by the name that questions use."""

    def find_workspace(self, question: Question) -> str:
        """Return the workspace to ask the question of."""
        return self.libraries.get(question.library, self.workspace_id)


@asynccontextmanager
async def open_shelf(
    services: Services, wanted: EvaluationSet, *, keep: bool, progress: Progress
) -> AsyncIterator[Shelf]:
    """Ingest the set's documents into a workspace, and remove it at the end unless `keep` is set. Documents that an
    earlier run kept, or ingested before it was interrupted, are not embedded again.

    Raises `SetError` if a document cannot be ingested, `DatabaseUnavailable` and `EmbedderUnavailable`.
    """
    name = name_workspace(services, wanted)
    # A temporary workspace must not be mixed up with one that is kept.
    workspace_id = name if keep else f"{name}-{uuid4().hex[:8]}"
    libraries = {library: f"{workspace_id}-{library}" for library in wanted.libraries}
    try:
        if wanted.libraries:
            yield await _add_libraries(services, workspace_id, wanted, libraries, progress)
        elif wanted.kind == "routing":
            await _add_samples(services, workspace_id, progress)
            yield Shelf(workspace_id)
        elif wanted.pdfs:
            yield await _add_pdfs(services, workspace_id, wanted, progress)
        else:
            yield await _add_texts(services, workspace_id, wanted.corpus, progress)
    finally:
        if not keep:
            for each in (workspace_id, *libraries.values()):
                await services.library.documents.clear(each)


async def find_shelf(services: Services, workspace_id: str, wanted: EvaluationSet) -> Shelf:
    """Map the documents of an existing workspace. Questions may name them by id, source, file name or title.

    Raises `SetError` if the workspace is empty, if a question names a document that it lacks or by an ambiguous name,
    and if questions name one document in two ways, because a ranking counts each name as a document.
    """
    held = await services.library.documents.list(workspace_id)
    if not held:
        raise SetError(
            f"The workspace {workspace_id!r} holds no document. Bring some in: askgraph ingest --workspace "
            f"{workspace_id} FILES"
        )
    documents: dict[str, set[str]] = {}
    for document in held:
        for name in _names_of(document):
            documents.setdefault(name, set()).add(document.id)
    # The name that a question uses comes before the document's id.
    called: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for question in wanted.questions:
        for name in (*question.grades, *([question.pdf] if question.pdf else [])):
            ids = documents.get(name, set())
            if not ids:
                raise SetError(f"{question.id!r} names a document that the workspace {workspace_id!r} lacks: {name!r}.")
            if len(ids) > 1:
                raise SetError(
                    f"{question.id!r} names {name!r}, as {len(ids)} documents of the workspace {workspace_id!r} are "
                    "called. Take the id or source that `askgraph documents` shows."
                )
            [chosen[name]] = ids
        for name in question.grades:
            if (other := called.setdefault(chosen[name], name)) != name:
                raise SetError(f"{question.id!r} names {name!r}, which is called {other!r} elsewhere. Choose one name.")
    names = {document.id: document.source if wanted.kind == "practical" else document.id for document in held} | called
    return Shelf(workspace_id, document_ids=names, chosen=chosen)


def _names_of(document: Document) -> list[str]:
    path = Path(document.source)
    return [document.title, path.stem, path.name, document.source, document.id]


def name_workspace(services: Services, wanted: EvaluationSet) -> str:
    """Return a name that depends on the corpus, the embedding model and the indexing code, so that a kept workspace is
    found again."""
    digest = hashlib.sha256(f"{wanted.fingerprint}\0{services.library.embedder.name}".encode())
    for file in _find_index_code():
        digest.update(file.read_bytes())
    return f"eval-{digest.hexdigest()[:16]}"


def _find_index_code() -> list[Path]:
    modules = (domain.text.terms, app.adapters.rerankers.late_interaction, app.adapters.postgres.library.bm25)
    files = [Path(str(module.__file__)) for module in modules]
    return [*files, *sorted(Path(app.ingest.__file__).parent.rglob("*.py"))]


async def _add_samples(services: Services, workspace_id: str, progress: Progress) -> None:
    """Ingest the sample library, for requests that are about no particular library."""
    progress(0, 1)
    await services.library.ingestion.add_paths(workspace_id, [FOLDER])
    progress(1, 1)


async def _add_libraries(
    services: Services, workspace_id: str, wanted: EvaluationSet, libraries: Mapping[str, str], progress: Progress
) -> Shelf:
    """Ingest each library into a workspace of its own. Files of unknown types and files that cannot be read stay out,
    as they would for a user."""
    ids: dict[str, str] = {}
    for done, (name, folder) in enumerate(wanted.libraries.items()):
        progress(done, len(libraries))
        report = await services.library.ingestion.add_paths(libraries[name], [folder])
        ids |= {each.document_id: each.source for each in report.documents if each.document_id is not None}
    await services.library.wait_for_indexes()
    progress(len(libraries), len(libraries))
    return Shelf(workspace_id, libraries, ids)


async def _add_pdfs(services: Services, workspace_id: str, wanted: EvaluationSet, progress: Progress) -> Shelf:
    ids: dict[str, str] = {}
    for done, (name, path) in enumerate(wanted.pdfs.items()):
        progress(done, len(wanted.pdfs))
        data = await asyncio.to_thread(path.read_bytes)
        report = await services.library.ingestion.add(workspace_id, name, data)
        if report.document_id is None:
            raise SetError(f"{path} cannot be ingested: {report.error}")
        ids[name] = report.document_id
    await services.library.wait_for_indexes()
    progress(len(wanted.pdfs), len(wanted.pdfs))
    pages = {
        (ids[of.pdf], of.page): document.id
        for document in wanted.corpus
        if (of := document.metadata).pdf is not None and of.page is not None
    }
    return Shelf(workspace_id, pages=pages, chosen={path.stem: ids[name] for name, path in wanted.pdfs.items()})


async def _add_texts(
    services: Services, workspace_id: str, corpus: tuple[CorpusDocument, ...], progress: Progress
) -> Shelf:
    known = {document.source: document for document in await services.library.documents.list(workspace_id)}
    # A document without text cannot be found.
    waiting = [document for document in corpus if document.text.strip()]
    ids: dict[str, str] = {}
    for document in waiting[:]:
        stored = known.get(_source_of(document))
        if stored is not None and stored.content_hash == _digest(document):
            ids[stored.id] = document.id
    waiting = [document for document in waiting if document.id not in set(ids.values())]
    total = len(ids) + len(waiting)
    progress(len(ids), total)
    queue = iter(waiting)

    async def work() -> None:
        for document in queue:
            parsed = _parse(document)
            report = await services.library.ingestion.add_parsed(
                workspace_id, _source_of(document), parsed, _digest(document)
            )
            assert report.document_id is not None  # only reading can fail, and the text is read already
            ids[report.document_id] = document.id
            progress(len(ids), total)

    await work_side_by_side(work, AT_ONCE)
    await services.library.wait_for_indexes()
    return Shelf(workspace_id, document_ids=ids)


def _source_of(document: CorpusDocument) -> str:
    return f"{quote(document.id, safe=' ')}.txt"


def _digest(document: CorpusDocument) -> str:
    return hashlib.sha256(f"{document.id}\0{document.title}\0{document.text}".encode()).hexdigest()


def _parse(document: CorpusDocument) -> ParsedDocument:
    """Return the document as a reader would, with its text unchanged, so that the set's character offsets stay true."""
    # The database takes no zero characters.
    text = document.text.replace("\0", " ")
    sections = (Section(0, len(text), ()),)
    return ParsedDocument(document.title, text, "text/plain", sections)
