"""The names that a client may choose, and what may have been meant by one that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

WORKSPACE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Pattern of a workspace's name."""

GROUP = r"^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,99}$"
"""Pattern of a group's name."""

THREAD_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""Pattern of a thread's id."""

_COMPARED = 2_000
"""Names that are compared letter by letter, which takes some microseconds each."""


def find_nearest(wanted: str, names: Iterable[str]) -> str | None:
    """Return the name that may have been meant: one that begins with `wanted`, holds it, or is spelled nearly so."""
    folded = {name.casefold(): name for name in names}
    wanted = wanted.casefold()
    for holds in (str.startswith, str.__contains__):
        if wanted and (found := next((name for key, name in folded.items() if holds(key, wanted)), None)):
            return found
    near = get_close_matches(wanted, list(folded)[:_COMPARED], 1)
    return folded[near[0]] if near else None
