"""Makes a practical evaluation set of runs: their questions, what readers say of the answers, and the library's files.

A set grows: what is added later brings the library of that day, beside those that are there. A person adds the facts
that the answers have to hold (`must`); `rating`, `reason`, `comment` and `answer` are there for that, and
`askgraph eval` passes over them.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from domain.documents import Document
from domain.errors import InputError
from domain.history.feedback import RatedRun
from domain.outcome import ANSWERS
from domain.profile import MOST_SOURCES
from domain.text.markers import find_markers

ReadFile = Callable[[str, str], AsyncIterator[bytes]]
"""Reads a file in pieces, by workspace and hash of its content."""


@dataclass(slots=True)
class Exported:
    """What was written."""

    questions: int = 0
    files: int = 0
    left_out: int = 0
    """Questions that were answered by asking back, which a set cannot score."""
    without_file: list[str] = field(default_factory=list)
    """Documents whose file is not kept."""
    known: int = 0
    """Questions that the set had already. They stay as they are."""


class FeedbackSet:
    """A set that is being written, or added to."""

    def __init__(self, folder: Path, read: ReadFile) -> None:
        """Raises `InputError` where the folder holds something else than such a set."""
        self._rows = folder / "queries.jsonl"
        if folder.exists() and any(folder.iterdir()) and not self._rows.exists():
            raise InputError(f"{folder} is neither empty nor a set. Name a new folder.")
        self._known = _read_ids(self._rows)
        self._folder = folder
        self._read = read
        self._libraries: dict[str, str] = {}
        """The name of each workspace's library."""
        self._sources: dict[tuple[str, str], str] = {}
        """The place in its library of each document that was written, by workspace and id."""
        self.exported = Exported()

    async def add_library(self, workspace_id: str, documents: Sequence[Document]) -> None:
        """Write the files of a workspace's documents."""
        # A file that changes must not change what older questions are asked of.
        held = sorted((document.source, document.content_hash) for document in documents)
        digest = hashlib.sha256(json.dumps(held).encode()).hexdigest()[:8]
        self._libraries[workspace_id] = f"{workspace_id}-{digest}"
        library = self._folder / "files" / self._libraries[workspace_id]
        library.mkdir(parents=True, exist_ok=True)
        taken: set[Path] = set()
        for document in sorted(documents, key=lambda each: (each.source, each.id)):
            place = _place(document.source)
            if place in taken:
                place = Path(document.id, place.name)
            taken.add(place)
            if (library / place).exists() or await self._write(library / place, workspace_id, document.content_hash):
                self._sources[workspace_id, document.id] = place.as_posix()
                self.exported.files += 1
            else:
                self.exported.without_file.append(document.source)

    def add_questions(self, runs: Sequence[RatedRun]) -> None:
        """Write the questions, after the libraries."""
        fitting = [run for run in runs if run.outcome != "asked_back"]
        rows = [self._describe(run) for run in fitting if run.run_id not in self._known]
        with self._rows.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        self.exported.questions, self.exported.left_out = len(rows), len(runs) - len(fitting)
        self.exported.known = len(fitting) - len(rows)

    async def _write(self, file: Path, workspace_id: str, content_hash: str) -> bool:
        content = [part async for part in self._read(workspace_id, content_hash)]
        if content:
            await asyncio.to_thread(_write_file, file, content)
        return bool(content)

    def _describe(self, run: RatedRun) -> dict[str, Any]:
        rating, reason = run.feedback.rating, run.feedback.reason
        row: dict[str, Any] = {}
        if run.outcome == "conversed":
            row["talk"] = True
        elif rating == "up":
            row["answerable"] = run.outcome in ANSWERS
        elif reason in ("not_found", "incomplete", "bad_source"):
            row["answerable"] = True
        cited = [self._sources.get((run.workspace_id, citation["document_id"])) for citation in run.citations]
        if rating == "up" and run.outcome in ANSWERS and cited and cited[0]:
            row["source"] = cited[0]
        if reason == "wrong":
            row["must_not"] = _list_statements(run.answer)
        return {
            "id": run.run_id,
            "library": self._libraries[run.workspace_id],
            "question": run.question,
            "before": list(run.before),
            "type": rating if rating == "up" else reason or rating,
            "must": [],
            **row,
            "rating": rating,
            "reason": reason,
            "comment": run.feedback.comment,
            "answer": run.answer,
        }


def _write_file(file: Path, content: Sequence[bytes]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    # A file that is there is whole, also after an interrupt.
    partial = file.with_name(f".{file.name}.partial")
    with partial.open("wb") as written:
        written.writelines(content)
    partial.replace(file)


def _read_ids(rows: Path) -> set[str]:
    """Return the ids of the set's questions. Raises `InputError` where the file is none of a set."""
    try:
        text = rows.read_text("utf-8") if rows.exists() else ""
        return {json.loads(line)["id"] for line in text.splitlines() if line.strip()}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{rows} is not the list of a set's questions. Name a new folder.") from error


def _list_statements(answer: str) -> list[str]:
    """Return the longest part of the answer without a marker. It shows that the same was said again."""
    numbers = [str(number) for number in range(MOST_SOURCES)]
    edges = [0, *(edge for marker in find_markers(answer, numbers) for edge in (marker.start, marker.end)), len(answer)]
    parts = [answer[start:end].strip() for start, end in zip(edges[::2], edges[1::2], strict=True)]
    longest = max(parts, key=len)
    return [longest] if longest else []


def _place(source: str) -> Path:
    """Return where in a library's folder the file of this path, name or address goes."""
    parts = [_name_part(part) for part in re.split(r"[/\\]+", source.partition("://")[2] or source) if part.strip(". ")]
    return Path(*parts or ["document"])


def _name_part(part: str) -> str:
    """Return the part of a path as a name that no file system takes for something else."""
    name = "".join(character if character.isalnum() or character in "._- " else "_" for character in part)
    return f"_{name[:100]}" if name.startswith(".") else name[:100]
