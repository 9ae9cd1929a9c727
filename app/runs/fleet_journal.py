"""Keeps what became of each run of an unfinished replay on disk, so that it can go on where it stopped."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.runs.fleet_report import FleetRow
from domain.errors import InputError

_ROW = TypeAdapter(FleetRow)


class FleetJournal:
    """A file of JSON lines: first a digest of what all depends on, then a row a run."""

    def __init__(self, file: Path, **depends_on: Any) -> None:
        """Raises `InputError` where the file is no journal, or one of another replay."""
        self._file = file
        decisive = json.dumps(depends_on, sort_keys=True, default=str)
        self._head = json.dumps({"replay": hashlib.sha256(decisive.encode()).hexdigest()[:16]})
        self.rows: Mapping[str, FleetRow] = {}
        """The rows so far by run, without runs that came to no end, which are worth another try."""
        try:
            # Where a replay was killed, the last line is cut, perhaps within a character.
            text = file.read_text("utf-8", errors="replace") if file.exists() else ""
            # Not `splitlines`: JSON may hold what Unicode calls a line separator.
            *lines, cut = text.split("\n")
            if text and lines[:1] != [self._head]:
                raise InputError(
                    f"{file} is no journal of this replay: of another change, other documents, other models or another "
                    "version. Name a new file."
                )
            if not text:
                self._append(self._head)
            elif cut:
                self._append("")
        except OSError as error:
            raise InputError(f"{file} cannot be used as a journal: {error}.") from error
        self.rows = {row["run_id"]: row for row in map(_read, lines[1:]) if row is not None and row["ending"]}

    def add(self, row: FleetRow) -> None:
        """Append a row."""
        self._append(json.dumps(row, ensure_ascii=False))

    def _append(self, line: str) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _read(line: str) -> FleetRow | None:
    try:
        return _ROW.validate_json(line)
    except ValidationError:
        return None  # a line that was cut off when the replay was stopped
