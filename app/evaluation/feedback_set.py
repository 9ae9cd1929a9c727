"""Makes a practical evaluation set of what readers say of answers: their questions, and the files of the library.

A person adds the facts that the answers have to hold (`must`); `rating`, `reason`, `comment` and `answer` are there for
that, and `askgraph eval` passes over them.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from domain.documents import Document
from domain.errors import InputError
from domain.feedback import RatedRun
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


class FeedbackSet:
    """A set that is being written. The folder must be new or empty."""

    def __init__(self, folder: Path, read: ReadFile) -> None:
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} is not empty. Name a new folder.")
        self._folder = folder
        self._read = read
        self._sources: dict[tuple[str, str], str] = {}
        """The place in its library of each document that was written, by workspace and id."""
        self.exported = Exported()

    async def add_library(self, workspace_id: str, documents: Sequence[Document]) -> None:
        """Write the files of a workspace's documents."""
        library = self._folder / "files" / workspace_id
        library.mkdir(parents=True, exist_ok=True)
        for document in documents:
            place = _place(document.source)
            if (library / place).exists():
                place = Path(document.id, place.name)
            if await self._write(library / place, workspace_id, document.content_hash):
                self._sources[workspace_id, document.id] = place.as_posix()
                self.exported.files += 1
            else:
                self.exported.without_file.append(document.source)

    def add_questions(self, rated: Sequence[RatedRun]) -> None:
        """Write the questions, after the libraries."""
        rows = [self._describe(run) for run in rated if run.outcome != "asked_back"]
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (self._folder / "queries.jsonl").write_text(text, "utf-8")
        self.exported.questions, self.exported.left_out = len(rows), len(rated) - len(rows)

    async def _write(self, file: Path, workspace_id: str, content_hash: str) -> bool:
        content = [part async for part in self._read(workspace_id, content_hash)]
        if content:
            await asyncio.to_thread(_write_file, file, content)
        return bool(content)

    def _describe(self, run: RatedRun) -> dict[str, Any]:
        said, row = run.feedback, dict[str, Any]()
        if run.outcome == "conversed":
            row["talk"] = True
        elif said.rating == "up":
            row["answerable"] = run.outcome in ANSWERS
        elif said.reason in ("not_found", "incomplete", "bad_source"):
            row["answerable"] = True
        cited = [self._sources.get((run.workspace_id, citation["document_id"])) for citation in run.citations]
        if said.rating == "up" and run.outcome in ANSWERS and cited and cited[0]:
            row["source"] = cited[0]
        if said.reason == "wrong":
            row["must_not"] = _list_statements(run.answer)
        return {
            "id": run.run_id,
            "library": run.workspace_id,
            "question": run.question,
            "before": list(run.before),
            "type": "up" if said.rating == "up" else said.reason or "down",
            "must": [],
            **row,
            "rating": said.rating,
            "reason": said.reason,
            "comment": said.comment,
            "answer": run.answer,
        }


def _write_file(file: Path, content: Sequence[bytes]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as written:
        written.writelines(content)


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
