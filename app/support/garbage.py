"""The garbage collector of a process that serves: what it may leave alone, and how often it looks."""

import ctypes
import gc

NEW_OBJECTS = 20_000
"""New containers until the collector looks at the young ones; Python's 700 is for small programs. A turn makes tens of
thousands, of which few are in cycles."""


def leave_what_is_open() -> None:
    """Keep the collector from what this process has opened so far, which stays open. It would look at all of it every
    few seconds, and nothing else runs meanwhile: up to half a second (docs/measurements/runs.md)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)
    # What loading models and modules needed goes back to the system: 20 to 40 MB. Only glibc has this.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
