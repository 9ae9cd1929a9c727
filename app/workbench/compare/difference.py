"""Compares two runs: the first step where they part, with the state and the call that differ, and how both ended."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import Any, Literal

from typing_extensions import TypedDict

from app.workbench.compare.endings import Compared, Costs, Ending, compare, read_ending, sum_costs
from app.workbench.explain.passages import read_passages
from app.workbench.explain.trace import Change, describe_changes
from app.workbench.replay.saved_run import SavedRun, SavedStep
from app.workbench.tapes.tape import Call, Tape
from app.workbench.tapes.tape_codec import pack, show_request

MAX_LINES = 60
"""Lines of a difference between two calls."""

MOST_WORDS = 4_000
"""Words of both answers together, with the blanks between them. Of longer ones the first is shown removed, and the
second added."""

_WORD = re.compile(r"\S+|\s+")

_OF_THE_RUN = frozenset({"run_id", "steps", "turns"})
"""Fields that differ between any two runs."""
_INPUT = ("question", "scope", "mode", "profile")


class Part(TypedDict):
    """A piece of two answers, in reading order."""

    kind: Literal["same", "removed", "added"]
    """Which of the two answers has it."""
    text: str
    """The piece."""


class CallDifference(TypedDict):
    """The first call of a step that differs."""

    port: str
    """The part that was called, as `Library`."""
    method: str
    """What it was called for."""
    kind: Literal["request", "reply", "only"]
    """`only`: one of the runs alone made it."""
    lines: list[str]
    """From the first run's to the second's."""


class Divergence(TypedDict):
    """Where two runs part."""

    one: str | None
    """The first run's step; None where it had ended."""
    other: str | None
    """The second run's step; None where it had ended."""
    text: str
    """What differs, in words."""
    changed: list[Change]
    """How the second run's state differs after the step."""
    call: CallDifference | None
    """None where no call differs, or one of the runs has no tape."""


class Side(TypedDict):
    """One of the two runs."""

    run_id: str
    question: str
    mode: str
    started_at: str
    ending: Ending
    costs: Costs


class RunDifference(TypedDict):
    """Two runs side by side."""

    one: Side
    other: Side
    given: list[Change]
    """How what the second run began with differs: question, scope, mode, knobs, what was set for a branch."""
    same_steps: int
    """Steps that both took alike, before they parted."""
    first: Divergence | None
    """None where every step was alike."""
    compared: Compared
    answer: list[Part]
    """Both answers word by word: what is the same, removed from the first, and added by the second."""


def diff(one: SavedRun, other: SavedRun) -> RunDifference:
    """Compare two runs."""
    mine, theirs = _align(one, other)
    begun, started = (_pick(steps[0].values, _list_given(one, other)) for steps in (mine, theirs))
    given = describe_changes(begun, started, read_passages(one) | read_passages(other))
    first, same = _find_divergence(one, other, mine, theirs)
    sides = _describe(one), _describe(other)
    return RunDifference(
        one=sides[0],
        other=sides[1],
        given=given,
        same_steps=same,
        first=first,
        compared=compare(sides[0]["ending"], sides[1]["ending"]),
        answer=list(compare_words(sides[0]["ending"]["answer"], sides[1]["ending"]["answer"])),
    )


def _describe(run: SavedRun) -> Side:
    path = [step.node for step in run.steps[1:]]
    return Side(
        run_id=run.record.run_id,
        question=run.record.question,
        mode=run.record.mode,
        started_at=run.record.started_at.isoformat(),
        ending=read_ending(run.final, error=run.record.error, path=path),
        costs=sum_costs(run.final["steps"]),
    )


def _list_given(*runs: SavedRun) -> set[str]:
    """Return the fields that runs are given: the input, and what of a saved state was set for a branch."""
    changed = [key for run in runs for key in (run.record.forked_from or {}).get("changed", ())]
    return {*_INPUT, *(key.split(".")[0] for key in changed)}


def _pick(values: Mapping[str, Any], fields: set[str]) -> dict[str, Any]:
    return {field: values[field] for field in fields if field in values}


def _align(one: SavedRun, other: SavedRun) -> tuple[Sequence[SavedStep], Sequence[SavedStep]]:
    """Return the steps of both from the same place on: a branch is compared from where it began."""
    for run, branch, swapped in ((one, other, False), (other, one, True)):
        origin = (branch.record.forked_from or {}).get("checkpoint_id")
        place = next((place for place, step in enumerate(run.steps) if step.checkpoint_id == origin), None)
        if place is not None:
            return (branch.steps, run.steps[place:]) if swapped else (run.steps[place:], branch.steps)
    return one.steps, other.steps


def _find_divergence(
    one: SavedRun, second: SavedRun, mine: Sequence[SavedStep], theirs: Sequence[SavedStep]
) -> tuple[Divergence | None, int]:
    for place in range(1, max(len(mine), len(theirs))):
        step = mine[place] if place < len(mine) else None
        other = theirs[place] if place < len(theirs) else None
        if step is None or other is None or step.node != other.node:
            return _say_where_they_went(mine[place - 1], step, other), place - 1
        # What differs from the beginning on is given, until a step makes something else of it.
        made = _list_differing(mine[place - 1].values, step.values)
        made |= _list_differing(theirs[place - 1].values, other.values)
        if differing := _list_differing(step.values, other.values) & made:
            return Divergence(
                one=step.node,
                other=other.node,
                text=f"{step.node} came to another result",
                changed=describe_changes(
                    _keep(step.values, differing),
                    _keep(other.values, differing),
                    read_passages(one) | read_passages(second),
                ),
                call=_compare_calls(_list_calls(one.tape, step), _list_calls(second.tape, other)),
            ), place - 1
    return None, len(mine) - 1


def _say_where_they_went(before: SavedStep, step: SavedStep | None, other: SavedStep | None) -> Divergence:
    went = [f"went on with {each.node}" if each is not None else "ended" for each in (step, other)]
    return Divergence(
        one=None if step is None else step.node,
        other=None if other is None else other.node,
        text=f"after {before.node} the first {went[0]}, and the second {went[1]}",
        changed=[],
        call=None,
    )


def _list_differing(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> set[str]:
    return {field for field in mine.keys() | theirs.keys() if mine.get(field) != theirs.get(field)} - _OF_THE_RUN


def _keep(values: Mapping[str, Any], fields: set[str]) -> dict[str, Any]:
    return {field: value for field, value in values.items() if field in fields and field not in _INPUT}


def _list_calls(tape: Tape | None, step: SavedStep) -> list[Call] | None:
    return None if tape is None else [call for call in tape.calls if call.step == step.number]


def _compare_calls(mine: list[Call] | None, theirs: list[Call] | None) -> CallDifference | None:
    """Find the first call that differs: in its request, else in its reply. Calls are made side by side, so their order
    tells nothing."""
    if mine is None or theirs is None:
        return None
    asked = {_key(call): call for call in theirs}
    own = {_key(call) for call in mine}
    for call in mine:
        if _key(call) not in asked:
            others = [each for each in theirs if _key(each) not in own and _name(each) == _name(call)]
            return _show_request_difference(call, others)
    for call in theirs:
        if _key(call) not in own:
            return _differ(call, "only", [f"+{line}" for line in show_request(call.request)])
    for call in mine:
        replied = asked[_key(call)]
        if pack([call.reply, call.error, call.cut]) != pack([replied.reply, replied.error, replied.cut]):
            return _differ(call, "reply", _diff(_show_reply(call), _show_reply(replied)))
    return None


def _show_request_difference(call: Call, others: Sequence[Call]) -> CallDifference:
    shown = show_request(call.request)
    if not others:
        return _differ(call, "only", [f"-{line}" for line in shown])
    candidates = [show_request(other.request) for other in others[:5]]
    nearest = max(candidates, key=lambda lines: SequenceMatcher(None, lines, shown).quick_ratio())
    return _differ(call, "request", _diff(shown, nearest))


def _differ(call: Call, kind: Literal["request", "reply", "only"], lines: Sequence[str]) -> CallDifference:
    more = [f"… {len(lines) - MAX_LINES} more lines"] if len(lines) > MAX_LINES else []
    return CallDifference(port=call.port, method=call.method, kind=kind, lines=[*lines[:MAX_LINES], *more])


def _diff(mine: Sequence[str], theirs: Sequence[str]) -> list[str]:
    return list(unified_diff(mine, theirs, "first", "second", n=1, lineterm=""))


def _show_reply(call: Call) -> list[str]:
    reply = "".join(call.reply) if call.method == "stream" and call.reply else call.reply
    return show_request({"reply": reply, "error": call.error, "cut": call.cut})


def _name(call: Call) -> tuple[str, str]:
    return call.port, call.method


def _key(call: Call) -> bytes:
    return pack([call.port, call.method, call.request])


def compare_words(one: str, other: str) -> Iterator[Part]:
    """Yield the pieces that make both answers: the first of what is the same and removed, the second of what is the
    same and added."""
    mine, theirs = _WORD.findall(one), _WORD.findall(other)
    # Blanks between words are the same everywhere, and tell nothing of where two texts agree.
    matcher = SequenceMatcher(str.isspace, mine, theirs, autojunk=False)
    if len(mine) + len(theirs) <= MOST_WORDS:
        found = matcher.get_opcodes()
    else:
        found = [("replace", 0, len(mine), 0, len(theirs))]
    for tag, start, end, other_start, other_end in found:
        if tag == "equal":
            yield Part(kind="same", text="".join(mine[start:end]))
            continue
        if end > start:
            yield Part(kind="removed", text="".join(mine[start:end]))
        if other_end > other_start:
            yield Part(kind="added", text="".join(theirs[other_start:other_end]))
