"""The key of a cached answer.

The key holds everything that the answer depends on, so nothing is ever invalidated: a changed document changes the key.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import orjson

from domain.ports.answers import AnswerKey
from domain.scope import Scope
from domain.state import Turn, TurnInput
from graphs.prompts import ALL_VERSIONS


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Everything that an answer depends on but the state of the documents, which is not known yet when it is looked up.

    `conversation`, `profile`, `prompts` and `machine` are digests.
    """

    scope: Scope
    question: str
    conversation: str
    mode: str
    profile: str
    machine: str
    """The fingerprint of this installation's code and models."""
    prompts: str = ALL_VERSIONS

    @classmethod
    def of(cls, turn: TurnInput, turns: Sequence[Turn], machine: str) -> "CacheKey":
        """Build the key of a question; `turns` are the conversation before it. All keys are built here."""
        return cls(
            scope=Scope.from_json(turn["scope"]),
            question=turn["question"],
            conversation=digest([[t["question"], t["answer"]] for t in turns]),
            mode=turn["mode"],
            profile=digest(turn["profile"]),
            machine=machine,
        )

    def digest(self) -> str:
        """Return the SHA-256 of all components, in hex: where the answer is kept."""
        return digest(
            [
                self.scope.to_json(),
                self.question,
                self.conversation,
                self.mode,
                self.profile,
                self.prompts,
                self.machine,
            ]
        )

    def at(self, corpus: str) -> AnswerKey:
        """Return the address of the answer from documents in the state `corpus`."""
        return AnswerKey(self.scope.workspace_id, self.digest(), corpus)

    def components(self, corpus: str) -> dict[str, Any]:
        """Return all components and `corpus` by name, as JSON values."""
        scope = self.scope
        named: dict[str, Any] = {
            "workspace_id": scope.workspace_id,
            "documents": scope.document_ids,
            "filter": str(scope.where),
        }
        named["groups"] = None if scope.groups is None else sorted(scope.groups)
        others = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "scope"}
        return named | others | {"corpus": corpus}


def digest(value: Any) -> str:
    """Return the SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


NO_CONVERSATION = digest([])
