"""Keeps the outcomes of an unfinished evaluation on disk, so that it can be resumed."""

import hashlib
import json
from glob import escape
from pathlib import Path

from pydantic import TypeAdapter

from app.evaluation.asking import Outcome
from app.evaluation.sets import EvaluationSet
from app.support.cases import Journal
from domain.profile import Profile

_UNFINISHED = ".unfinished.jsonl"
_OUTCOME = TypeAdapter(Outcome)


class OutcomeJournal(Journal[Outcome]):
    """Stores the outcomes of one set in one profile, in a file named after everything that they depend on."""

    def __init__(self, folder: Path, each: EvaluationSet, profile: Profile, machine: str, held: str) -> None:
        """`machine` is the fingerprint of code and models, `held` the state of a workspace that the set did not
        fill."""
        decisive = [each.fingerprint, profile.model_dump(), machine, held]
        digest = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:16]
        self._name = f"{each.name}-{profile.name}"
        super().__init__(folder / f"{self._name}-{digest}{_UNFINISHED}", _OUTCOME, decisive=decisive)

    def read_finished(self) -> dict[str, Outcome]:
        """Return the stored outcomes by question id, without failed ones, which are worth another try."""
        return {outcome.id: outcome for outcome in self.read() if outcome.error is None}

    def discard(self) -> None:
        """Delete the journal, and those of the same set and profile by name that other versions left."""
        for path in self.file.parent.glob(f"{escape(self._name)}-????????????????{_UNFINISHED}"):
            path.unlink()
