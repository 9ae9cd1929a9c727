"""Finds or makes the workspaces that a set is asked of, and maps their documents to the names that the set uses."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import app.adapters.postgres.library.bm25
import app.adapters.rerankers.late_interaction
import app.ingest
import domain.text.terms
from app.evaluation.sets import EvaluationSet, Question, SetError
from app.wiring.services import Services
from domain.documents import Document

Progress = Callable[[int, int], None]
"""Called with the number of libraries done and their total."""


@dataclass(frozen=True, slots=True)
class Shelf:
    """A workspace that holds a set's documents."""

    workspace_id: str
    libraries: Mapping[str, str] = field(default_factory=dict)
    """The workspace of each library of a practical set, by its name."""
    document_ids: Mapping[str, str] = field(default_factory=dict)
    """The set's name of each document, by the library's id."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The library's id of each document that a question may choose, by the name that questions use."""

    def find_workspace(self, question: Question) -> str:
        """Return the workspace to ask the question of."""
        return self.libraries.get(question.library, self.workspace_id)


@asynccontextmanager
async def open_shelf(
    services: Services, wanted: EvaluationSet, *, keep: bool, progress: Progress
) -> AsyncIterator[Shelf]:
    """Ingest each of the set's libraries into a workspace, and remove it at the end unless `keep` is set. What an
    earlier run kept is not embedded again. Files that cannot be read stay out, as they would for a user.

    Raises `DatabaseUnavailable` and `EmbedderUnavailable`.
    """
    name = name_workspace(services, wanted)
    # A temporary workspace must not be mixed up with one that is kept.
    workspace_id = name if keep else f"{name}-{uuid4().hex[:8]}"
    libraries = {library: f"{workspace_id}-{library}" for library in wanted.libraries}
    ids: dict[str, str] = {}
    try:
        for done, (library, folder) in enumerate(wanted.libraries.items()):
            progress(done, len(libraries))
            reports = await services.library.ingestion.add_path(libraries[library], folder)
            ids |= {each.document_id: each.source for each in reports if each.document_id is not None}
        await services.library.wait_for_indexes()
        progress(len(libraries), len(libraries))
        yield Shelf(workspace_id, libraries, ids)
    finally:
        if not keep:
            for each in libraries.values():
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
    # The name that a question uses comes before the document's source.
    called: dict[str, str] = {}
    chosen: dict[str, str] = {}
    for question in wanted.questions:
        named = dict.fromkeys(relevant.doc for relevant in question.relevant)
        for name in (*named, *([question.pdf] if question.pdf else [])):
            ids = documents.get(name, set())
            if not ids:
                raise SetError(f"{question.id!r} names a document that the workspace {workspace_id!r} lacks: {name!r}.")
            if len(ids) > 1:
                raise SetError(
                    f"{question.id!r} names {name!r}, as {len(ids)} documents of the workspace {workspace_id!r} are "
                    "called. Take the id or source that `askgraph documents` shows."
                )
            [chosen[name]] = ids
        for name in named:
            if (other := called.setdefault(chosen[name], name)) != name:
                raise SetError(f"{question.id!r} names {name!r}, which is called {other!r} elsewhere. Choose one name.")
    return Shelf(workspace_id, document_ids={document.id: document.source for document in held} | called, chosen=chosen)


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
