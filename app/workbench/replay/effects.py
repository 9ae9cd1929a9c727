"""Lists the state fields and profile settings that each node and each edge depends on.

Each step and each router says so itself; `tests/workbench/test_effects.py` compares that with what runs really read.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphs.answer import STEPS, find_router

PROFILE = "profile"

INCIDENTAL = ("mode", "profile.name", "profile.assistant", "profile.budget")
"""What differs in another mode without changing what a step does, as long as the budget is not reached."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a run continues: with a node, or with the edge after one."""

    node: str
    decides: bool = False
    """True: the node has run, and its edge decides what comes next. False: the node itself runs."""

    @property
    def name(self) -> str:
        """The name for people: `rerank`, or `after rerank`."""
        return f"after {self.node}" if self.decides else self.node


def find_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Name the fields of two states that differ, and for the profile the knobs: `confidence`, `profile.rerank.keep`."""
    named = []
    for field in sorted(before.keys() | after.keys()):
        old, new = before.get(field), after.get(field)
        if old == new:
            continue
        if field == PROFILE and isinstance(old, Mapping) and isinstance(new, Mapping):
            named += [f"{PROFILE}.{knob}" for knob in _name_knobs(old, new)]
        else:
            named.append(field)
    return named


def _name_knobs(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    for key in sorted(old.keys() | new.keys()):
        was, becomes = old.get(key), new.get(key)
        if was != becomes:
            nested = isinstance(was, Mapping) and isinstance(becomes, Mapping)
            yield from _name_knobs(was, becomes, f"{prefix}{key}.") if nested else [f"{prefix}{key}"]  # type: ignore[arg-type]


def reads(node: str, change: str) -> bool:
    """Return True where the node's function reads the field or knob, named as `find_difference` names it."""
    if change.startswith(f"{PROFILE}."):
        return _is_among(change.removeprefix(f"{PROFILE}."), STEPS[node].depends)
    return change in STEPS[node].reads


def decides(node: str, change: str) -> bool:
    """Return True where the edge after the node is chosen by the field or knob."""
    router = find_router(node)
    if router is None:
        return False
    if change.startswith(f"{PROFILE}."):
        return _is_among(change.removeprefix(f"{PROFILE}."), router.knobs)
    return change in router.fields


def find_unnoticed(
    beginning: Beginning, following: Sequence[str], changes: Collection[str], *, is_open: bool = False
) -> list[str]:
    """Return the changes that no step would notice, if the run continued from the beginning with all of them.

    `following` are the nodes that ran after the beginning. They run again, one after the other, until a change is
    noticed; any node may follow then. `is_open`: the run went no further than these, without having ended.
    """
    places = [beginning] if beginning.decides else []
    places += [Beginning(node, edge) for node in following for edge in (False, True)]
    left = set(changes)
    for place in places:
        if any((decides if place.decides else reads)(place.node, change) for change in left):
            return sorted(set(changes) - left)
        if not place.decides:
            left -= STEPS[place.node].sets
    return [] if is_open else sorted(changes)


def find_first(path: Sequence[str], changes: Collection[str]) -> tuple[int, Beginning] | None:
    """Find the first step of a run's path that one of the changes affects, and how to begin there. None: no step."""
    for place, node in enumerate(path):
        if node in STEPS and any(reads(node, change) for change in changes):
            return place, Beginning(node)
        if any(decides(node, change) for change in changes):
            return place, Beginning(node, decides=True)
    return None


def _is_among(knob: str, known: Collection[str]) -> bool:
    return any(knob == each or knob.startswith(f"{each}.") or each.startswith(f"{knob}.") for each in known)
