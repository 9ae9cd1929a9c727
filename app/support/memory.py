"""The memory of a process that serves: what the collector may leave alone, how often it looks, and what goes back to
the system."""

import ctypes
import gc

NEW_OBJECTS = 20_000
"""New containers until the collector looks at the young ones; Python's 700 is for small programs. A turn makes tens of
thousands, of which few are in cycles."""

OLD_ROUNDS = 50
"""Times that the middle-aged are looked at until all are: with 256 runs this stops every stream for .6 s."""

_C = ctypes.CDLL(None)
_OPTIONS = {-8: 2, -3: 2**20, -1: 2**20}
"""Of glibc's mallopt: arenas, size in bytes from which a block is mapped by itself, and free bytes at the end of an
arena that go back. By default each thread has an arena, and these sizes grow to 32 MB after the first large block."""


def give_back_memory() -> None:
    """Have what is freed go back to the system, in a process that starts no threads before: 383 MB after 100 turns at
    once become 286 (docs/measurements.md). Only glibc can be told."""
    if hasattr(_C, "mallopt"):
        for option, value in _OPTIONS.items():
            _C.mallopt(option, value)


def leave_what_is_open() -> None:
    """Keep the collector from what this process has opened so far, which stays open. It would look at all of it every
    few seconds, and nothing else runs meanwhile: up to half a second (docs/measurements.md)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, OLD_ROUNDS)
    if hasattr(_C, "malloc_trim"):
        _C.malloc_trim(0)
