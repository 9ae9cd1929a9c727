"""Keeps what became of each run of an unfinished replay on disk, so that it can go on where it stopped."""

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from app.support.cases import Journal
from app.workbench.fleet.fleet_report import FleetRow

_ROW = TypeAdapter(FleetRow)


class FleetJournal(Journal[FleetRow]):
    """A journal of runs that were replayed."""

    def __init__(self, file: Path, **depends_on: Any) -> None:
        super().__init__(file, _ROW, **depends_on)
        self.rows = {row["run_id"]: row for row in self.read() if row["ending"]}
        """The rows so far by run, without runs that came to no end, which are worth another try."""
