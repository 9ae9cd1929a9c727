"""Tries what would have changed a run's end: without a source, with another grade, number of sources, fusion, reranker,
mode, and with each knob of the profile at its default.

Every variant runs on, in memory, from the first step that it affects. Calls that the run has made are answered from its
tape; others are made, but a model that is paid for is asked only where the caller says so. A variant that would have
needed one says that instead of an ending.
"""

import asyncio
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal
from uuid import uuid4

from typing_extensions import TypedDict

from app.answering.graph_pass import prepare_judgement
from app.answering.parts import RunParts
from app.workbench.compare.endings import Compared, Ending, compare, read_ending
from app.workbench.replay.again import Start, begin_in_memory, run_in_memory, start_at
from app.workbench.replay.effects import INCIDENTAL, Beginning, find_difference, find_first
from app.workbench.replay.saved_run import SavedRun
from app.workbench.replay.state_changes import change_values
from app.workbench.tapes.tape import Tape
from app.workbench.tapes.taping import Player, fill
from domain.errors import StateError
from domain.ports.library import Library
from domain.ports.models import ModelUsage
from domain.profile import MOST_SOURCES, Profile
from domain.state import add_costs
from graphs.answer import STEPS
from nodes.context import Context

MOST_VARIANTS = 40
"""Variants that are tried at most."""
MOST_SETS = 20
"""Changes that a caller may add."""
AT_ONCE = 4
"""Variants that run at the same time."""
SECONDS = 15.0
"""Longest time of one variant."""
TOTAL_SECONDS = 40.0
"""Longest time of all together. What has not begun by then is reported as not tried."""
_PAID = ("ChatModel ", "Reranker cohere/", "Embedder openai:", "Functions")
"""How the names of ports begin whose servers send bills. Such a server may be one's own: we cannot tell. Nor what a
function from outside costs, or changes."""
_TOO_LATE = "not tried: the time for all of them was over"
_LONGEST = 120
"""Characters of a label."""
_MOST_DROPPED = 10
_MOST_MODES = 6
_MOST_DEFAULTS = 15

Kind = Literal["nothing", "documents", "source", "grade", "keep", "fusion", "reranker", "mode", "default", "set"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One thing that might have been otherwise."""

    kind: Kind
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    mode: str | None = None
    at: tuple[int, Beginning] | None = None
    """The place in the run's path and how to begin there; None: the first step that the changes affect."""
    search_anew: bool = False
    """Search the documents of today, from the first search on, instead of what the tape says of them."""


SEARCH_ANEW = Variant("documents", "searched anew, in the documents of today", search_anew=True)


class Outcome(TypedDict):
    """What became of a variant."""

    kind: Kind
    """What was varied."""
    label: str
    """The variant, in words."""
    set: dict[str, Any]
    """The changes, as a replay takes them; without those that are too long to show."""
    mode: str | None
    begins: str
    """The step that runs first: `rerank`; or `after grade`, whose edge decides again."""
    node: str | None
    after: str | None
    """The step that a replay names to begin there, one of the two: `rerank@2` runs again, or its edge decides again.
    None where a replay cannot make the change."""
    replay: str | None
    """The command that makes a branch of it; None where a command line cannot hold the change."""
    ending: Ending | None
    """None where it was not tried to the end."""
    compared: Compared | None
    """With the run as it was."""
    taped: int
    """Calls that were answered from the tape."""
    made: int
    """Calls that were made."""
    problem: str | None
    """Why there is no ending."""
    unasked: bool
    """True where a model that is paid for would have to be asked."""


class WhatIf(TypedDict):
    """A table of what would have changed the end."""

    run_id: str
    recorded: Ending
    outcomes: list[Outcome]
    """Those that flip something first."""
    flipping: int
    """Number of variants that flip something."""
    not_tried: int
    """Number of those that came to no ending."""
    left_out: int
    """Variants beyond the limit."""
    taped: bool
    """True where the run has a tape of its calls."""
    tokens: int
    """What the calls that were made have used, also those of variants that came to no ending."""
    cost: float | None
    """US dollars; None where a price is not known."""


@dataclass(frozen=True, slots=True)
class Tried:
    """How a run would have ended with a variant, or why that is not known."""

    ending: Ending | None = None
    problem: str | None = None
    """Why there is no ending, or why the run failed."""
    taped: int = 0
    """Calls that were answered from the tape."""
    made: int = 0
    """Calls that were made."""
    unasked: bool = False


async def try_variants(
    run: SavedRun,
    parts: RunParts,
    modes: Mapping[str, Profile],
    groups: frozenset[str] | None,
    *,
    sets: Sequence[Mapping[str, Any]] = (),
    models: bool = False,
    used: list[ModelUsage] | None = None,
) -> WhatIf:
    """Try the variants of a run for a caller of these groups (None: all), and those that change the state as one of
    `sets` says. With `models`, models that are paid for are asked what the tape does not know; what they use is added
    to `used`, even where this ends early.

    Raises `StateError` where the steps of the run are not saved, or one of `sets` cannot take effect, and
    `UnknownCheckpoint`.
    """
    path = read_path(run)
    if len(sets) > MOST_SETS:
        raise StateError(f"At most {MOST_SETS} changes can be added; these are {len(sets)}.")
    recorded = read_ending(run.final, error=run.record.error, path=path)
    context = parts.make_context()
    found = list(_list_variants(run, path, modes, context, models=models))
    added = [Variant("set", _name_changes(each), each) for each in sets]
    planned = [(variant, plan_variant(run, path, variant, modes, groups)) for variant in (*added, *found)]
    for variant, plan in planned:
        if plan is None and variant.kind == "set":
            raise StateError(f"{variant.label} would change nothing: no step of this run reads it.")
    startable = [(variant, plan) for variant, plan in planned if plan is not None]
    await prepare_judgement(context.judges)

    used = [] if used is None else used
    slots = asyncio.Semaphore(AT_ONCE)
    deadline = asyncio.get_running_loop().time() + TOTAL_SECONDS

    async def run_one(variant: Variant, start: Start) -> Outcome:
        async with slots:
            if asyncio.get_running_loop().time() > deadline:
                tried = Tried(problem=_TOO_LATE)
            else:
                tried = await run_variant(run, variant, start, parts, used, models=models, deadline=deadline)
        return _report(run, variant, start, tried, recorded)

    outcomes = await asyncio.gather(*(run_one(variant, start) for variant, start in startable[:MOST_VARIANTS]))
    # In the order in which they were listed within each group.
    ordered = sorted(outcomes, key=lambda each: (each["kind"] != "nothing", _weigh(each)))
    return WhatIf(
        run_id=run.record.run_id,
        recorded=recorded,
        outcomes=ordered,
        flipping=sum(bool(each["compared"] and each["compared"]["flipped"]) for each in outcomes),
        not_tried=sum(each["ending"] is None for each in outcomes),
        left_out=max(0, len(startable) - MOST_VARIANTS),
        taped=run.tape is not None,
        tokens=count_tokens(used),
        cost=add_costs(each.cost for each in used),
    )


def count_tokens(used: Sequence[ModelUsage]) -> int:
    """Return how many tokens were read and written."""
    return sum(each.input_tokens + each.output_tokens for each in used)


def _name_changes(changes: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in changes.items())[:_LONGEST] or "A change of nothing, {},"


def read_path(run: SavedRun) -> list[str]:
    """Return the nodes that ran. Raises `StateError` where not all steps are saved."""
    path = [step.node for step in run.steps[1:] if step.node in STEPS]
    if len(path) < len(run.steps) - 1 or not path:
        raise StateError(
            "Only a run whose steps are all there can be tried otherwise: not one that was stopped, or answered from "
            "the cache."
        )
    return path


async def run_variant(
    run: SavedRun,
    variant: Variant,
    start: Start,
    parts: RunParts,
    used: list[ModelUsage],
    *,
    models: bool,
    deadline: float | None = None,
) -> Tried:
    """Run on from where the variant starts, as long as it may take. What it used is added to `used`, whatever comes of
    it. It waits for its turn until `deadline`, a time of the event loop."""

    def allows(title: str) -> bool:
        return models or not title.startswith(_PAID)

    tape = run.tape or Tape({}, [], [])
    if variant.search_anew:
        # The tape answers no question to the library.
        tape = Tape(tape.ports, [call for call in tape.calls if call.port != Library.__name__], tape.events)
    player = Player(tape, run.record.run_id, after=start.step.number, allows=allows)
    begun = False
    try:
        async with asyncio.timeout_at(deadline) as limit, parts.admission.take_turn():
            begun = True
            limit.reschedule(asyncio.get_running_loop().time() + SECONDS)
            thread_id, context = str(uuid4()), replace(fill(parts.make_context(), player), run_id=run.record.run_id)
            in_memory = await begin_in_memory(parts.states.graph, thread_id, start)
            done = await run_in_memory(in_memory, thread_id, start, context)
    except TimeoutError:
        return Tried(problem=f"took longer than {SECONDS:.0f} s" if begun else _TOO_LATE)
    except StateError as error:
        return Tried(problem=error.message)
    finally:
        used += player.used
    if player.refused:
        return Tried(problem=f"not made: {player.refused} would have to be asked", unasked=True)
    failed = done.ended if done.ended and done.ended["type"] == "error" else None
    ending = read_ending(done.state, error=failed and failed["code"])
    return Tried(ending, failed and failed["message"], player.answered, player.made)


def _weigh(outcome: Outcome) -> int:
    if outcome["compared"] is None:
        return 2
    return 0 if outcome["compared"]["flipped"] else 1


def _list_variants(
    run: SavedRun, path: Sequence[str], modes: Mapping[str, Profile], context: Context, *, models: bool
) -> Iterator[Variant]:
    """List what is worth trying, the most telling first."""
    profile = Profile.model_validate(run.final["profile"])
    yield Variant("nothing", "nothing changed", at=(0, Beginning(path[0])))
    yield SEARCH_ANEW
    grades = [place for place, node in enumerate(path) if node == "grade"]
    if grades:
        last = grades[-1]
        graded = run.steps[last + 1].values
        flipped = 0.0 if graded["confidence"] >= profile.grade.sufficient else 1.0
        yield Variant(
            "grade",
            f"grade says {flipped:.2f} instead of {graded['confidence']:.2f}",
            {"confidence": flipped},
            at=(last, Beginning("grade", decides=True)),
        )
    yield from _list_defaults(profile)
    if grades:
        yield from _drop_sources(run, grades[-1])
    for keep in sorted({1, max(1, profile.rerank.keep // 2), min(MOST_SOURCES, 2 * profile.rerank.keep)}):
        yield Variant("keep", f"keep {keep} instead of {profile.rerank.keep}", {"profile.rerank.keep": keep})
    for fusion in ("standardised", "rrf", "weighted", "dense"):
        yield Variant("fusion", f"fusion {fusion}", {"profile.retrieval.fusion": fusion})
    # Some rerankers are paid for like language models.
    unpaid = [
        name for name, each in context.rerankers.items() if models or not f"Reranker {each.name}".startswith(_PAID)
    ]
    methods = ["none", *sorted(unpaid)]
    for method in [*methods, *(["model"] if context.models.small is not None else [])]:
        yield Variant("reranker", f"reranker {method}", {"profile.rerank.method": method})
    others = list(dict.fromkeys(mode.name for mode in modes.values() if mode.name != run.record.mode))
    # Of an assistant's run, its other versions are the nearest.
    others.sort(key=lambda name: name.rpartition("@")[0] != run.record.mode.rpartition("@")[0] or "@" not in name)
    for name in others[:_MOST_MODES]:
        yield Variant("mode", f"mode {name}", mode=name)


def _list_defaults(profile: Profile) -> Iterator[Variant]:
    """Put each knob back to its default that differs from it. A threshold that was set wrong is found like this."""
    default = Profile(name=profile.name)
    before, after = ({"profile": each.model_dump()} for each in (profile, default))
    knobs = [knob for knob in find_difference(before, after) if not knob.startswith("profile.budget.")]
    for knob in knobs[:_MOST_DEFAULTS]:
        _, *parts = knob.split(".")
        was, value = before["profile"], after["profile"]
        for part in parts:
            was, value = was[part], value[part]
        yield Variant("default", f"{knob} at its default, {value} instead of {was}", {knob: value})


def _drop_sources(run: SavedRun, place: int) -> Iterator[Variant]:
    """Leave out each source that grade was given, and let it judge the others."""
    given = run.steps[place].values
    for source in given["sources"][:_MOST_DROPPED]:
        left = [each for each in given["sources"] if each["number"] != source["number"]]
        changes: dict[str, Any] = {"sources": [each | {"number": number} for number, each in enumerate(left, 1)]}
        label = f"without source {source['number']}, {source['title']}"
        yield Variant("source", label, changes, at=(place, Beginning("grade")))


def plan_variant(
    run: SavedRun,
    path: Sequence[str],
    variant: Variant,
    modes: Mapping[str, Profile],
    groups: frozenset[str] | None,
) -> Start | None:
    """Find where the variant begins, for a caller of these groups (None: all); None where it changes nothing that a
    step reads."""
    found = variant.at or _find_beginning(run, path, variant, modes)
    if found is None:
        return None
    place, beginning = found
    step, forced = (run.steps[place + 1], None) if beginning.decides else (run.steps[place], beginning.node)
    return start_at(step, groups, forced, variant.changes, variant.mode, modes)


def _find_beginning(
    run: SavedRun, path: Sequence[str], variant: Variant, modes: Mapping[str, Profile]
) -> tuple[int, Beginning] | None:
    # A run that failed has begun a step more than it ended.
    begun = [*path, *run.steps[-1].next[:1]]
    # It changes the profile alone, which is one for the whole run, or the documents.
    if all(key.startswith("profile.") for key in variant.changes):
        found = find_beginning(begun, run.final, variant, modes)
        return None if found is not None and found[1].decides and found[0] == len(path) else found

    @cache
    def list_differing(place: int) -> list[str]:
        return _list_differing(run.steps[place].values, variant, modes)

    for place, node in enumerate(begun):
        here = find_first([node], list_differing(place))
        if here is not None and not here[1].decides:
            return place, here[1]
        here = find_first([node], list_differing(min(place + 1, len(run.steps) - 1)))
        if here is not None and here[1].decides and place < len(path):
            return place, here[1]
    return None


def find_beginning(
    path: Sequence[str], values: Mapping[str, Any], variant: Variant, modes: Mapping[str, Profile]
) -> tuple[int, Beginning] | None:
    """Find the first step of the path that the variant affects, and how to begin there. The variant changes the same
    in every state of the run, so that `values` may be any of them.

    Raises `StateError` where the change cannot be made.
    """
    if variant.search_anew:
        return (path.index("retrieve"), Beginning("retrieve")) if "retrieve" in path else None
    return find_first(path, _list_differing(values, variant, modes))


def _list_differing(values: Mapping[str, Any], variant: Variant, modes: Mapping[str, Profile]) -> list[str]:
    differing = find_difference(values, change_values(values, variant.changes, variant.mode, modes))
    return differing if variant.mode is None else [each for each in differing if not each.startswith(INCIDENTAL)]


def _name_start(run: SavedRun, begins: Beginning, start: Start) -> str:
    """Name the step where a variant begins: `rerank@2`."""
    place = [step.checkpoint_id for step in run.steps].index(start.step.checkpoint_id)
    earlier = sum(step.node == begins.node for step in run.steps[1 : place + (not begins.decides)])
    return f"{begins.node}@{earlier + 1}" if earlier else begins.node


def _write_command(run_id: str, variant: Variant, option: str, step: str) -> str:
    """Write the command that makes a branch of the variant."""
    options = [f"{option} {step}"]
    written = {key: value if isinstance(value, str) else json.dumps(value) for key, value in variant.changes.items()}
    options += [f"--set {shlex.quote(f'{key}={value}')}" for key, value in written.items()]
    options += [f"--mode {shlex.quote(variant.mode)}"] if variant.mode else []
    return " ".join(["askgraph replay", run_id, *options])


def _report(run: SavedRun, variant: Variant, start: Start, tried: Tried, recorded: Ending) -> Outcome:
    begins = start.beginning
    # A replay can change neither nothing nor the list of sources.
    step = None if variant.kind in ("nothing", "source") else _name_start(run, begins, start)
    option = "--after" if begins.decides else "--from"
    return Outcome(
        kind=variant.kind,
        label=variant.label,
        set={key: value for key, value in variant.changes.items() if key != "sources"},
        mode=variant.mode,
        begins=begins.name,
        node=None if begins.decides else step,
        after=step if begins.decides else None,
        replay=step and _write_command(run.record.run_id, variant, option, step),
        ending=tried.ending,
        compared=None if tried.ending is None else compare(recorded, tried.ending),
        taped=tried.taped,
        made=tried.made,
        problem=tried.problem,
        unasked=tried.unasked,
    )
