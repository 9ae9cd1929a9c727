"""Shows the run in a file to whoever sends it: its trace, and why it ended as it did."""

from typing import Any

import orjson

from app.workbench.explain.trace import trace
from app.workbench.explain.why import explain_run
from app.workbench.replay.bundle import Bundle, read_bundle
from domain.errors import StateError

MAX_SENT = 5_000_000
"""Bytes of a file that is sent."""
_MAX_CONTENT = 30_000_000
"""Bytes of what is in it."""
_MOST_LISTED = 2_000
"""Candidates, or sources, of one state: the profile allows far fewer."""


def view_bundle(data: bytes) -> bytes:
    """Describe the run in a file, whoever made it, as JSON. Call it in a parser worker: a small file may be built to
    take gigabytes or hours. Raises `StateError` where it is none of ours, or too large."""
    bundle = read_bundle(data, most=_MAX_CONTENT)
    try:
        # A figure that JSON does not know becomes null.
        _check_size(bundle)
        return orjson.dumps(describe_bundle(bundle))
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise StateError(f"This file is damaged: {type(error).__name__}.") from error


def _check_size(bundle: Bundle) -> None:
    for step in bundle.run.steps:
        if max(len(step.values["candidates"]), len(step.values["sources"])) > _MOST_LISTED:
            raise StateError(f"A state in this file has more than {_MOST_LISTED:,} candidates or sources.")


def describe_bundle(bundle: Bundle) -> dict[str, Any]:
    """Describe the run in a file: why it ended as it did, and every step."""
    return {
        "exported_at": bundle.exported_at,
        "made_with": bundle.made_with,
        "configuration": bundle.configuration,
        "prompts": bundle.run.record.prompts,
        "redacted": bundle.redacted,
        "why": explain_run(bundle.run),
        "trace": trace(bundle.run),
    }
