"""The versions of the prompts.

A version is a digest of the prompt's text, which stands beside its node. Changing a prompt so changes its version,
which is part of the cache key and of every run's record.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from domain.state import Step
from nodes.converse import step as converse
from nodes.generate import step as generate
from nodes.grade import step as grade
from nodes.reconcile import step as reconcile
from nodes.reformulate import step as reformulate
from nodes.rerank import model_ranking
from nodes.route import step as route
from nodes.sources import expansion
from nodes.verify import step as verify

_PROMPTS: Mapping[str, Sequence[str]] = {
    "route": [route.PROMPT],
    "converse": [converse.PROMPT],
    "retrieve": [expansion.QUERIES_PROMPT, expansion.HYPOTHESIS_PROMPT],
    "rerank": [model_ranking.PROMPT],
    "grade": [grade.PROMPT],
    "reformulate": [reformulate.PROMPT, reformulate.PARTS_PROMPT],
    "generate": [generate.PROMPT, generate.CHECKED, generate.INSTRUCTIONS],
    "verify": [verify.PROMPT],
    "reconcile": [reconcile.PROMPT],
}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


VERSIONS: Mapping[str, str] = {node: _digest(texts) for node, texts in _PROMPTS.items()}
"""12 hexadecimal digits by node."""

ALL_VERSIONS = _digest(VERSIONS)
"""One version for all prompts together."""


def find_versions(steps: Iterable[Step]) -> dict[str, str]:
    """Return the versions of the prompts that these steps sent to models, by node."""
    asked = dict.fromkeys(used["node"] for step in steps for used in step["usage"])
    return {node: VERSIONS[node] for node in asked if node in VERSIONS}
