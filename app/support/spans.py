"""Spans of traces. Parts open them here, and the tracing adapter decides where they go; by default nowhere."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Opener = Callable[[str, Mapping[str, Any], str | None], AbstractContextManager[Any]]

_opener: Opener | None = None


def send_spans(opener: Opener | None) -> None:
    """Open the spans of this process with `opener`: it gets a name, attributes, and the `traceparent` of a caller."""
    global _opener
    _opener = opener


def span(
    name: str, attributes: Mapping[str, Any] | None = None, parent: str | None = None
) -> AbstractContextManager[Any]:
    """Open a span below the current one of this task, or below that of a caller's `traceparent`."""
    return nullcontext() if _opener is None else _opener(name, attributes or {}, parent)
