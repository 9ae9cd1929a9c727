"""How far the reading of a file has come. A reader notes it; a parser worker passes it on to the process that waits."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

PAUSE_SECONDS = 0.2
"""Notes that follow one sooner are dropped."""

Listener = Callable[[int, int], None]
"""Called with the number of pages that are read, and of all."""

_listener: Listener | None = None
_noted_at = 0.0


def note_pages(done: int, total: int) -> None:
    """Note that so many pages of the file are read."""
    global _noted_at
    if _listener is not None and (now := monotonic()) - _noted_at >= PAUSE_SECONDS:
        _noted_at = now
        _listener(done, total)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Pass notes on to `listener` within the context. A parser worker reads one file at a time."""
    global _listener
    _listener = listener
    try:
        yield
    finally:
        _listener = None
