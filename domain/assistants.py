"""Assistants: the modes that a team makes for itself, of a mode and what it changes of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from domain.documents import check_groups
from domain.library.where import Where
from domain.model_names import ModelName
from domain.profile import MOST_DOCUMENTS, MOST_INSTRUCTIONS, Length, Speech

MOST_ASSISTANTS = 100
"""Of a workspace."""
MOST_VERSIONS = 1000
"""Of an assistant."""
MOST_METADATA = 20_000
"""Bytes of JSON."""


def _check_name(name: str) -> str:
    if not name.isprintable() or "@" in name or "/" in name:
        raise ValueError("it has to be printable, without @ and /")
    return name


AssistantName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60), AfterValidator(_check_name)
]
"""NAME@2 names the second version."""


class ModelChoice(BaseModel):
    """Language models in the place of the mode's, as far as the deployment has connected them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    small: ModelName | None = None
    """Routes, and makes small talk; null: as the mode says."""
    large: ModelName | None = None
    """Writes answers."""
    judge: ModelName | None = None
    """Verifies them."""


class Setup(BaseModel):
    """What an assistant is made of."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: str = "standard"
    """The mode of the deployment that it changes."""
    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MOST_INSTRUCTIONS)] | None = None
    """For the language model that writes: what to stress and how to word it. They cannot lift the rules of citing."""
    document_ids: list[str] | None = Field(None, max_length=MOST_DOCUMENTS)
    """It answers from these documents only; null: from all of the workspace."""
    filter: dict[str, Any] | None = None
    """It answers only from documents whose metadata passes all of these tests; null: from all."""
    length: Length | None = None
    """Null, here and below: as the mode says."""
    language: Speech | None = None
    """Of small talk, abstentions and caveats."""
    models: ModelChoice | None = None

    @field_validator("filter")
    @classmethod
    def _read_filter(cls, given: dict[str, Any] | None) -> dict[str, Any] | None:
        return Where.from_json(given or {}).to_json() or None


class Draft(Setup):
    """A version of an assistant that is to be."""

    name: AssistantName
    """How questions name it."""
    description: Annotated[str, StringConstraints(max_length=500)] = ""
    """What it is for."""
    metadata: dict[str, Any] = {}
    """Notes of clients."""
    groups: list[str] | None = None
    """Only callers of one of these groups read, use and change it, in all of its versions; none: everybody in the
    workspace. Unset: as before, and for a new one the groups of its maker."""

    @field_validator("groups")
    @classmethod
    def _check_groups(cls, groups: list[str] | None) -> list[str] | None:
        return check_groups(groups)

    @field_validator("metadata")
    @classmethod
    def _check_metadata(cls, metadata: dict[str, Any]) -> dict[str, Any]:
        if len(json.dumps(metadata)) > MOST_METADATA:
            raise ValueError(f"it may have at most {MOST_METADATA:,} bytes")
        return metadata

    @property
    def setup(self) -> Setup:
        """What it is made of."""
        return Setup.model_validate(self.model_dump(include=set(Setup.model_fields)))


@dataclass(frozen=True, slots=True)
class Assistant:
    """A version of an assistant."""

    assistant_id: str
    """A UUID."""
    version: int
    """Counts from 1."""
    name: str
    description: str
    setup: Setup
    created_by: str
    """The caller who made this version."""
    created_at: datetime
    """When its first version was made."""
    updated_at: datetime
    """When this version was made."""
    metadata: dict[str, Any] = field(default_factory=dict)
    groups: Sequence[str] = ()
    """Whose it is, in all of its versions; none: the workspace's."""

    @property
    def full_name(self) -> str:
        """The name under which runs record this version."""
        return f"{self.name}@{self.version}"
