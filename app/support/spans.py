"""Spans of traces. Parts open them here, and the tracing adapter decides where they go; by default nowhere."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from domain.execution.spans import Note, ignore

Opener = Callable[..., AbstractContextManager[Note]]

_opener: Opener | None = None


def send_spans(opener: Opener | None) -> None:
    """Open the spans of this process with `opener`: it gets a name, attributes, the `traceparent` of a caller, and
    whether no span will be below it."""
    global _opener
    _opener = opener


def are_sent() -> bool:
    """Return True where spans go somewhere."""
    return _opener is not None


def span(
    name: str, attributes: Mapping[str, Any] | None = None, parent: str | None = None, *, leaf: bool = False
) -> AbstractContextManager[Note]:
    """Open a span below the current one of this task, or below that of a caller's `traceparent`. A generator may keep
    a `leaf` open while it yields: it does not become the current one of whoever reads. One
    below no span goes nowhere."""
    return nullcontext(ignore) if _opener is None else _opener(name, attributes or {}, parent, leaf=leaf)
