"""The names that a client may choose, and what may have been meant by one that does not exist."""

import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

WORKSPACE_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
"""Pattern of a workspace's name."""

GROUP = r"^[A-Za-z0-9][A-Za-z0-9 ._:@/-]{0,99}$"
"""Pattern of a group's name."""

THREAD_ID = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
"""Pattern of a thread's id."""


def spell_name(name: str) -> str:
    """Return the form in which names of files are kept: macOS and Linux write the same accents in two ways."""
    return unicodedata.normalize("NFC", name)


def fold_name(name: str) -> str:
    """Return the form in which names are compared: full-width letters and ligatures taken apart, without case."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def find_twin(name: str, others: Iterable[str]) -> str | None:
    """Return the one of the others that the name is, or that people would take it for: it differs at most where one has
    a Latin letter and the other a digit of its shape, or a letter of another script, as a Cyrillic а."""
    mine = fold_name(name)
    return next((other for other in others if _look_alike(mine, fold_name(other))), None)


def _look_alike(one: str, other: str) -> bool:
    if len(one) != len(other):
        return False
    differing = [pair for pair in zip(one, other, strict=True) if pair[0] != pair[1]]
    # Names that share no letter are words of two scripts.
    return not differing or (len(differing) < len(one) and all(map(_are_alike, differing)))


_SHAPES = {"0": "o", "1": "il", "2": "z", "3": "e", "4": "a", "5": "s", "6": "bg", "7": "t", "8": "b", "9": "gq"}
"""The letters that each digit is read as."""


def _are_alike(pair: tuple[str, str]) -> bool:
    one, other = pair
    if other in _SHAPES.get(one, "") or one in _SHAPES.get(other, ""):
        return True
    scripts = [unicodedata.name(letter, "?").split()[0] for letter in pair]
    return all(map(str.isalpha, pair)) and "LATIN" in scripts and scripts[0] != scripts[1]


_COMPARED = 2_000
"""Names that are compared letter by letter, which takes some microseconds each."""


def find_nearest(wanted: str, names: Iterable[str]) -> str | None:
    """Return the name that may have been meant: one that begins with `wanted`, holds it, or is spelled nearly so."""
    folded = {fold_name(name): name for name in names}
    wanted = fold_name(wanted)
    for holds in (str.startswith, str.__contains__):
        if wanted and (found := next((name for key, name in folded.items() if holds(key, wanted)), None)):
            return found
    near = get_close_matches(wanted, list(folded)[:_COMPARED], 1)
    return folded[near[0]] if near else None
