"""Reads evaluation sets.

A set is a folder with `queries.jsonl` and libraries of real files in `files/`, or a file of questions about an existing
workspace. docs/evaluation.md describes the rows.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from domain.errors import InputError


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
    page: int | None = None
    """The page that answers; None if any may."""

    @property
    def place(self) -> str:
        """The document, and the page where one is named."""
        return self.doc if self.page is None else name_page(self.doc, self.page)


def name_page(doc: str, page: int | None) -> str:
    """Return the name of a page of the document of this name."""
    return f"{doc}, page {page}"


def _read_relevant(value: Any) -> Any:
    return [{"doc": item} if isinstance(item, str) else item for item in value] if isinstance(value, list) else value


class Question(_Row):
    """One row of `queries.jsonl`."""

    id: str = Field(min_length=1)
    question: str = Field(min_length=1)
    type: str = ""
    """The group that metrics are reported by."""
    answers: tuple[str, ...] = ()
    answerable: bool | None = None
    """False if the right behaviour is to abstain; None if not known."""
    relevant: Annotated[tuple[Relevant, ...], BeforeValidator(_read_relevant)] = ()
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
        """The relevance grade of each place that answers."""
        return {relevant.place: relevant.grade for relevant in self.relevant}


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """Questions, and the files to ask them of."""

    name: str
    questions: tuple[Question, ...]
    fingerprint: str
    """SHA-256 of all the set's files, in hex."""
    libraries: dict[str, Path] = field(default_factory=dict)
    """The folders of its libraries, by name. Empty if the questions are asked of an existing workspace."""

    @property
    def is_practical(self) -> bool:
        """True where answers are scored by the facts that they hold."""
        return any(question.library for question in self.questions)


def read_sets(given: Sequence[str], *, workspace: str | None, limit: int | None) -> list[EvaluationSet]:
    """Read each set of `given`, the path of a folder or file. A set keeps only its first `limit` questions.

    Raises `SetError`, which names file and line.
    """
    sets = [_read_set(Path(name).expanduser(), workspace, limit) for name in given]
    names = Counter(each.name for each in sets)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise SetError(f"Two sets are called {repeated[0]!r}, and their results would be mixed up. Rename one.")
    return sets


def _read_set(path: Path, workspace: str | None, limit: int | None) -> EvaluationSet:
    if not path.exists():
        raise SetError(f"There is no set {str(path)!r}.")
    queries = path / "queries.jsonl" if path.is_dir() else path
    if not queries.is_file():
        raise SetError(f"{path} holds no queries.jsonl, so it is no evaluation set.")
    digest = hashlib.sha256()
    questions = tuple(_read_rows(queries, digest))
    if not questions:
        raise SetError(f"{queries} holds no question.")
    libraries = _find_libraries(queries, questions, digest) if path.is_dir() and (path / "files").is_dir() else {}
    if workspace is None and not libraries:
        raise SetError(f"{queries} comes without files. Name the workspace to ask it of: --workspace NAME.")
    name = path.resolve().name.removesuffix(".jsonl")
    return EvaluationSet(name, questions[:limit], digest.hexdigest(), libraries)


def _read_rows(path: Path, digest: "hashlib._Hash") -> Iterator[Question]:
    try:
        # JSON strings may hold the other line ends that splitlines() splits at.
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SetError(f"{path} cannot be read: {error}.") from error
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        digest.update(line.encode())
        if not line.strip():
            continue
        try:
            question = Question.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise SetError(f"{path}, line {number}: {f'{where}: ' if where else ''}{first['msg']}.") from error
        if question.id in seen:
            raise SetError(f"{path}, line {number}: the id {question.id!r} stands on an earlier line, too.")
        seen.add(question.id)
        yield question


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
