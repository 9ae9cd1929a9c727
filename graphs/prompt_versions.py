"""The versions of the prompts.

A version is a digest of a step's prompts. Changing a prompt so changes its version, which is part of the cache key and
of every run's record.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from domain.state import ExecutedStep
from graphs.answer import STEPS


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


VERSIONS: Mapping[str, str] = {name: _digest(list(step.prompts)) for name, step in STEPS.items() if step.prompts}
"""12 hexadecimal digits by node."""

ALL_VERSIONS = _digest(VERSIONS)
"""One version for all prompts together."""


def find_versions(steps: Iterable[ExecutedStep]) -> dict[str, str]:
    """Return the versions of the prompts that these steps sent to models, by node."""
    asked = dict.fromkeys(used["node"] for step in steps for used in step["usage"])
    return {node: VERSIONS[node] for node in asked if node in VERSIONS}
