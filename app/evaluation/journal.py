"""Keeps the outcomes of an unfinished evaluation on disk, so that it can be resumed."""

import hashlib
import json
from glob import escape
from pathlib import Path

from pydantic import ValidationError

from app.evaluation.asking import Outcome
from app.evaluation.sets import EvaluationSet
from domain.profile import Profile

_UNFINISHED = ".unfinished.jsonl"


class OutcomeJournal:
    """Stores the outcomes of one set in one profile, a line each, in a file named after everything that they depend
    on."""

    def __init__(self, folder: Path, each: EvaluationSet, profile: Profile, machine: str, held: str) -> None:
        """`machine` is the fingerprint of code and models, `held` the state of a workspace that the set did not
        fill."""
        decisive = [each.fingerprint, profile.model_dump(), machine, held]
        digest = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:16]
        self._name = f"{each.name}-{profile.name}"
        self._file = folder / f"{self._name}-{digest}{_UNFINISHED}"

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("ab") as file:
            # First of all the end of a line that was cut off when the work was killed.
            file.write(b"\n" + outcome.model_dump_json().encode())

    def read_finished(self) -> dict[str, Outcome]:
        """Return the stored outcomes by question id, without failed ones, which are worth another try."""
        # Split at line feeds alone: JSON may hold what Unicode calls a line separator.
        lines = self._file.read_bytes().split(b"\n") if self._file.exists() else []
        outcomes = [outcome for line in lines if (outcome := _read(line)) is not None]
        return {outcome.id: outcome for outcome in outcomes if outcome.error is None}

    def discard(self) -> None:
        """Delete the journal, and those of the same set and profile by name that other versions left."""
        for path in self._file.parent.glob(f"{escape(self._name)}-????????????????{_UNFINISHED}"):
            path.unlink()


def _read(line: bytes) -> Outcome | None:
    try:
        return Outcome.model_validate_json(line)
    except ValidationError:
        return None  # empty, or cut off when the work was killed
