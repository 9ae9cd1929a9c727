"""Which version of each prompt this machine asks its models with.

A version is a digest of the prompt's own text, which stands beside its node: whoever changes a prompt changes its
version, and with that what the cache keeps and what the record of a run says.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from domain.state import Step
from nodes import converse, expansion, generate, grade, model_ranking, reconcile, reformulate, route, verify

_PROMPTS: Mapping[str, Sequence[str]] = {
    "route": [route.PROMPT],
    "converse": [converse.PROMPT],
    "retrieve": [expansion.QUERIES_PROMPT, expansion.HYPOTHESIS_PROMPT],
    "rerank": [model_ranking.PROMPT],
    "grade": [grade.PROMPT],
    "reformulate": [reformulate.PROMPT, reformulate.PARTS_PROMPT],
    "generate": [generate.PROMPT, generate.CHECKED],
    "verify": [verify.PROMPT],
    "reconcile": [reconcile.PROMPT],
}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:12]


VERSIONS: Mapping[str, str] = {node: _digest(texts) for node, texts in _PROMPTS.items()}
"""By node: 12 hexadecimal digits."""

ALL_VERSIONS = _digest(VERSIONS)
"""Of all of them together."""


def find_versions(steps: Iterable[Step]) -> dict[str, str]:
    """The versions of the prompts that models were asked with in these steps."""
    asked = dict.fromkeys(used["node"] for step in steps for used in step["usage"])
    return {node: VERSIONS[node] for node in asked if node in VERSIONS}
