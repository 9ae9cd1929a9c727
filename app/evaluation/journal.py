"""What an evaluation has asked so far, on disk."""

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
    """The outcomes of one set in one profile, a line each, in a file named after everything that decides them.
    `machine` is the fingerprint of code and models, `held` the state of a workspace that the set did not fill."""

    def __init__(self, folder: Path, each: EvaluationSet, profile: Profile, machine: str, held: str) -> None:
        decisive = json.dumps([each.fingerprint, profile.model_dump(), machine, held])
        digest = hashlib.sha256(decisive.encode()).hexdigest()[:16]
        self._folder = folder
        self._name = f"{each.name}-{profile.name}"
        self._path = folder / f"{self._name}-{digest}{_UNFINISHED}"

    def read(self) -> dict[str, Outcome]:
        """What is there, by question. Questions that failed are left out: they are worth another try."""
        outcomes: dict[str, Outcome] = {}
        for line in self._path.read_bytes().splitlines() if self._path.exists() else []:
            try:
                outcome = Outcome.model_validate_json(line)
            except ValidationError:
                continue  # the line that was being written when the run was stopped
            if outcome.error is None:
                outcomes[outcome.id] = outcome
        return outcomes

    def add(self, outcome: Outcome) -> None:
        """Keep one more."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(outcome.model_dump_json() + "\n")

    def discard(self) -> None:
        """Forget what is there, and what other versions of the set, the profile or the code have left."""
        for path in self._folder.glob(f"{escape(self._name)}-????????????????{_UNFINISHED}"):
            path.unlink()
