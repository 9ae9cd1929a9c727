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


class Journal:
    """Stores the outcomes of one set in one profile, one line each, in a file named after everything that they depend
    on."""

    def __init__(self, folder: Path, each: EvaluationSet, profile: Profile, machine: str, held: str) -> None:
        """`machine` is the fingerprint of code and models, `held` the state of a workspace that the set did not
        fill."""
        decisive = json.dumps([each.fingerprint, profile.model_dump(), machine, held])
        digest = hashlib.sha256(decisive.encode()).hexdigest()[:16]
        self._folder = folder
        self._name = f"{each.name}-{profile.name}"
        self._path = folder / f"{self._name}-{digest}{_UNFINISHED}"

    def read(self) -> dict[str, Outcome]:
        """Return the stored outcomes by question id, without failed ones, which are worth another try."""
        outcomes: dict[str, Outcome] = {}
        for line in self._path.read_bytes().splitlines() if self._path.exists() else []:
            try:
                outcome = Outcome.model_validate_json(line)
            except ValidationError:
                continue  # a line that was cut off when the run was stopped
            if outcome.error is None:
                outcomes[outcome.id] = outcome
        return outcomes

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(outcome.model_dump_json() + "\n")

    def discard(self) -> None:
        """Delete the journal, and those of the same set and profile by name that other versions left."""
        for path in self._folder.glob(f"{escape(self._name)}-????????????????{_UNFINISHED}"):
            path.unlink()
