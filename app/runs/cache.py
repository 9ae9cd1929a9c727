"""When a stored answer may be given again.

The key holds everything that the answer depends on, so that there is nothing to invalidate: a changed document
changes the key.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from domain.events import Done
from domain.state import Turn, TurnInput
from graphs.prompts import ALL_VERSIONS


@dataclass(frozen=True, slots=True)
class CacheKey:
    """The components of an answer's key. `conversation`, `corpus`, `profile`, `prompts` and `machine` are digests."""

    workspace_id: str
    question: str
    conversation: str
    documents: tuple[str, ...] | None
    corpus: str
    mode: str
    profile: str
    prompts: str
    machine: str

    @classmethod
    def of(cls, turn: TurnInput, turns: list[Turn], corpus: str, machine: str) -> "CacheKey":
        """The key of a question asked in a conversation of a corpus, answered by this machine."""
        documents = turn["document_ids"]
        return cls(
            workspace_id=turn["workspace_id"],
            question=turn["question"],
            conversation=digest([[t["question"], t["answer"]] for t in turns]),
            documents=None if documents is None else tuple(sorted(set(documents))),
            corpus=corpus,
            mode=turn["mode"],
            profile=digest(turn["profile"]),
            prompts=ALL_VERSIONS,
            machine=machine,
        )

    def digest(self) -> str:
        """The key as stored."""
        return digest(asdict(self))


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def is_storable(done: Done) -> bool:
    """Whether the answer is finished and grounded. Abstentions are not: a document that answers may come."""
    return (
        done["route"] == "needs_retrieval"
        and bool(done["citations"])
        and done["verification"]["status"] != "unsupported"
        and not done["warnings"]
    )
