"""Reads evaluation sets.

A set is a folder with `queries.jsonl` and `corpus.jsonl` (each may be gzipped) and perhaps `pdfs/`; or with
`queries.jsonl` and `files/`, which holds libraries of real files; or a file of questions about an existing workspace.
docs/evaluation.md describes the formats.
"""

import codecs
import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from domain.errors import InputError
from domain.state import Route

Kind = Literal["questions", "practical", "routing"]

ROUTES: dict[str, Route] = {
    "conversational": "conversational",
    "small_talk": "conversational",
    "meta": "conversational",
    "out_of_scope": "out_of_scope",
    "oos": "out_of_scope",
    "in_scope": "out_of_scope",
}
"""The right route for each type of request in a routing set. CLINC150's `in_scope` is what a voice assistant does, such
as paying a bill; its `meta` is about the assistant."""


class SetError(InputError):
    """The evaluation set cannot be used."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Relevant(_Row):
    """A document that answers a question or part of it."""

    doc: str
    grade: int = Field(1, ge=0)
    spans: tuple[tuple[int, int], ...] = ()
    """Character offsets in the document's text, end exclusive; empty if not known."""


class Message(_Row):
    """One message of the conversation before a question."""

    role: Literal["user", "assistant"]
    content: str


def _read_relevant(value: Any) -> Any:
    return [{"doc": item} if isinstance(item, str) else item for item in value] if isinstance(value, list) else value


class Question(_Row):
    """One row of `queries.jsonl`."""

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    type: str = ""
    """The group that metrics are reported by."""
    answers: tuple[str, ...] = ()
    answers_known: bool = True
    answerable: bool | None = None
    """False if the right behaviour is to abstain; None if not known."""
    relevant: Annotated[tuple[Relevant, ...], BeforeValidator(_read_relevant)] = ()
    history: tuple[Message, ...] = ()
    pdf: str | None = None
    """Stem of the PDF that the user has chosen."""
    library: str = ""
    """The folder below `files/` that the question is about. A set with libraries is a practical one."""
    before: tuple[str, ...] = ()
    """Earlier questions of the conversation, which are really asked."""
    must: tuple[tuple[str, ...], ...] = ()
    """The facts that the answer has to hold, each in all its accepted spellings."""
    must_not: tuple[str, ...] = ()
    """Texts that show that an answer is wrong, outdated or about something else."""
    source: str | None = None
    """The file that answers, relative to its library."""
    talk: bool = False
    """True for small talk and for questions about the assistant, which need no document."""

    @property
    def grades(self) -> dict[str, int]:
        """The relevance grade of each document, by its id."""
        return {relevant.doc: relevant.grade for relevant in self.relevant}


class PageOf(_Row):
    """The PDF and page that a document of the corpus is."""

    pdf: str | None = None
    page: int | None = None


class CorpusDocument(_Row):
    """One row of `corpus.jsonl`."""

    id: str = Field(min_length=1)
    title: str = ""
    text: str
    metadata: PageOf = PageOf()


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """Questions, and the corpus to ask them of."""

    name: str
    kind: Kind
    questions: tuple[Question, ...]
    fingerprint: str
    """SHA-256 of all the set's files, in hex."""
    corpus: tuple[CorpusDocument, ...] = ()
    """Empty if the questions are asked of an existing workspace, or of no particular one."""
    pdfs: dict[str, Path] = field(default_factory=dict)
    """The PDF files by their names in the corpus, if each document of the corpus is a page."""
    libraries: dict[str, Path] = field(default_factory=dict)
    """The folders of a practical set's libraries, by name."""


def read_sets(given: Sequence[str], bench: Path, *, workspace: str | None, limit: int | None) -> list[EvaluationSet]:
    """Read each set of `given`: the path of a folder or file, or the name of a folder in `bench`. A set keeps only its
    first `limit` questions.

    Raises `SetError`, which names file and line.
    """
    sets = [_read_set(_find(name, bench), workspace, limit) for name in given]
    names = Counter(each.name for each in sets)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise SetError(f"Two sets are called {repeated[0]!r}, and their results would be mixed up. Rename one.")
    return sets


def _find(given: str, bench: Path) -> Path:
    path = Path(given).expanduser()
    if path.exists():
        return path
    if len(path.parts) == 1 and (bench / given).is_dir():
        return bench / given
    if len(path.parts) == 1 and not bench.is_dir():
        raise SetError(
            f"There is no set {given!r} here, and no folder {bench} to look for it in. Give the set's path, or name "
            "the folder of sets with --bench or ASKGRAPH_BENCH."
        )
    raise SetError(f"There is no set {given!r}, neither here nor in {bench}.")


def _read_set(path: Path, workspace: str | None, limit: int | None) -> EvaluationSet:
    queries = _find_rows(path, "queries") if path.is_dir() else path
    if queries is None:
        raise SetError(f"{path} holds no queries.jsonl or queries.jsonl.gz, so it is no evaluation set.")
    digest = hashlib.sha256()
    questions = tuple(_read_rows(queries, Question, digest))
    if not questions:
        raise SetError(f"{queries} holds no question.")
    libraries = _find_libraries(queries, questions, digest) if path.is_dir() and (path / "files").is_dir() else {}
    kind: Kind = "practical" if libraries else _find_kind(questions)
    corpus: tuple[CorpusDocument, ...] = ()
    pdfs: dict[str, Path] = {}
    corpus_file = _find_rows(path, "corpus") if path.is_dir() and workspace is None else None
    if corpus_file is not None:
        corpus = tuple(_read_rows(corpus_file, CorpusDocument, digest))
        if not corpus:
            raise SetError(f"{corpus_file} holds no document.")
        _check_relevant(queries, questions, {document.id for document in corpus})
        pdfs = _find_pdfs(path, corpus_file, corpus, digest)
        _check_chosen(queries, questions, pdfs)
    elif workspace is None and kind not in ("practical", "routing"):
        raise SetError(f"{queries} comes without a corpus. Name the workspace to ask it of: --workspace NAME.")
    name = path.resolve().name if path.is_dir() else path.name.removesuffix(".gz").removesuffix(".jsonl")
    return EvaluationSet(name, kind, questions[:limit], digest.hexdigest(), corpus, pdfs, libraries)


def _find_rows(folder: Path, name: str) -> Path | None:
    return next((file for end in ("jsonl", "jsonl.gz") if (file := folder / f"{name}.{end}").is_file()), None)


_AnyRow = TypeVar("_AnyRow", Question, CorpusDocument)


def _read_rows(path: Path, row: type[_AnyRow], digest: "hashlib._Hash") -> Iterator[_AnyRow]:
    seen: set[str] = set()
    for number, line in enumerate(_read_lines(path), 1):
        digest.update(line)
        if not line.strip():
            continue
        try:
            parsed = row.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise SetError(f"{path}, line {number}: {f'{where}: ' if where else ''}{first['msg']}.") from error
        if parsed.id in seen:
            raise SetError(f"{path}, line {number}: the id {parsed.id!r} stands on an earlier line, too.")
        seen.add(parsed.id)
        yield parsed


def _read_lines(path: Path) -> list[bytes]:
    try:
        data = path.read_bytes()
        text = gzip.decompress(data) if path.suffix == ".gz" else data
        # Some editors write a byte order mark. JSON strings may hold the other line ends that splitlines() splits at.
        return text.removeprefix(codecs.BOM_UTF8).split(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise SetError(f"{path} cannot be read: {error}.") from error


def _find_kind(questions: Sequence[Question]) -> Kind:
    return "routing" if all(question.type in ROUTES for question in questions) else "questions"


def _find_libraries(queries: Path, questions: Sequence[Question], digest: "hashlib._Hash") -> dict[str, Path]:
    """Return the folders of files that the questions are about, by name."""
    libraries: dict[str, Path] = {}
    for question in questions:
        folder = queries.parent / "files" / question.library
        if not question.library or not folder.is_dir():
            raise SetError(f"{queries}: {question.id!r} names no library that files/ holds: {question.library!r}.")
        if question.source is not None and not (folder / question.source).is_file():
            raise SetError(f"{queries}: {question.id!r} names a file that the library lacks: {question.source!r}.")
        libraries[question.library] = folder
    for name, folder in libraries.items():
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            digest.update(f"{name}/{file.relative_to(folder).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    return libraries


def _check_relevant(queries: Path, questions: Sequence[Question], known: set[str]) -> None:
    for question in questions:
        for relevant in question.relevant:
            if relevant.doc not in known:
                raise SetError(
                    f"{queries}: {question.id!r} calls a document relevant that the corpus lacks: {relevant.doc!r}."
                )


def _find_pdfs(
    folder: Path, corpus_file: Path, corpus: Sequence[CorpusDocument], digest: "hashlib._Hash"
) -> dict[str, Path]:
    """Return the PDFs whose pages are the corpus; none if the corpus has its own text."""
    if not (folder / "pdfs").is_dir():
        return {}
    pdfs: dict[str, Path] = {}
    for document in corpus:
        of = document.metadata
        if of.pdf is None or of.page is None:
            raise SetError(f"{corpus_file}: {document.id!r} does not say which page of which PDF it is (metadata).")
        if of.pdf in pdfs:
            continue
        pdfs[of.pdf] = folder / of.pdf
        try:
            digest.update(pdfs[of.pdf].read_bytes())
        except OSError as error:
            raise SetError(f"{corpus_file}: {document.id!r} is a page of {of.pdf}: {error.strerror}.") from error
    return pdfs


def _check_chosen(queries: Path, questions: Sequence[Question], pdfs: dict[str, Path]) -> None:
    stems = {path.stem for path in pdfs.values()}
    for question in questions:
        if question.pdf is not None and question.pdf not in stems:
            raise SetError(f"{queries}: {question.id!r} is about a PDF that the corpus lacks: {question.pdf!r}.")
