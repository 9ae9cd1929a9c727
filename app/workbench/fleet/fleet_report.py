"""What a replay of many runs reports: a row per run, and what they come to together."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from app.workbench.compare.endings import Compared, Ending
from app.workbench.compare.judging import Judged
from domain.state import Step, add_costs

MOST_DIFFERENT = 20
"""Changed runs that a report shows side by side."""


class Plan(TypedDict):
    """What a replay would do, before it does anything."""

    runs: int
    affected: int
    unaffected: int
    """No step of these reads what would change."""
    skipped: dict[str, int]
    """Runs that cannot be replayed, by reason."""
    begins: dict[str, int]
    """Affected runs by the step that runs first."""
    repeated_cost: float
    """What the steps that run again cost then, in US dollars: about the most that language models may cost now."""
    unpriced_calls: int
    """Calls of these steps whose price is not known, and is not in `repeated_cost`."""


class NodeChange(TypedDict):
    """What the executions of one step took, then and now."""

    ms: tuple[float, float]
    cost: tuple[float | None, float | None]
    """US dollars of the calls that it made, also of those that a tape answers now; None where a price is not known."""


class FleetRow(TypedDict):
    """One run that was replayed."""

    run_id: str
    question: str
    begins: str
    recorded: Ending | None
    """None where the run could no longer be read."""
    ending: Ending | None
    compared: Compared | None
    judged: Judged | None
    """None where the answer is the same."""
    by_node: dict[str, NodeChange]
    """Of the steps that ran again."""
    taped: int
    made: int
    cost: float
    """US dollars for new calls of models."""
    problem: str | None
    """Why there is no ending."""


class FleetReport(TypedDict):
    """What would have been otherwise."""

    change: str
    plan: Plan
    tried: int
    resumed: int
    """Of these, runs that the journal of an interrupted replay held."""
    not_tried: dict[str, int]
    """By reason."""
    changed: int
    share_changed: float
    """Of those that were tried."""
    flipped: dict[str, int]
    """Runs whose outcome, answer, citations or verdict differs."""
    judge: str
    """Who judged changed answers: `verifier`, or the name of a language model."""
    better: int
    worse: int
    share_worse: float
    """Of those that were tried."""
    outcomes: dict[str, int]
    """Changed outcomes: `abstained → answered`."""
    routes_changed: int
    citations_gained: int
    citations_lost: int
    by_node: dict[str, NodeChange]
    """Of the steps that ran again, together."""
    spent: float
    """US dollars, for new calls of models."""
    most_different: list[str]
    """The run ids of the runs that changed most."""
    runs: list[FleetRow]


class Planning(TypedDict):
    """The first event of a replay of many runs."""

    type: Literal["plan"]
    plan: Plan
    budget: float | None
    """US dollars that language models may cost; null: they are not asked."""


class Progress(TypedDict):
    """How many of the runs were replayed."""

    type: Literal["progress"]
    done: int
    total: int


class Reported(TypedDict):
    """The last event."""

    type: Literal["report"]
    report: FleetReport


def compare_nodes(then: Iterable[Step], now: Iterable[Step]) -> dict[str, NodeChange]:
    """Return what each node's steps took then and now."""
    sums: dict[str, list[list[Any]]] = {}
    for place, steps in enumerate((then, now)):
        for step in steps:
            ms, costs = sums.setdefault(step["node"], [[0.0, 0.0], [[], []]])
            ms[place] += step["ms"]
            costs[place] += [used["cost"] for used in step["usage"]]
    return {
        node: NodeChange(ms=(round(ms[0], 2), round(ms[1], 2)), cost=(add_costs(costs[0]), add_costs(costs[1])))
        for node, (ms, costs) in sums.items()
    }


def make_report(change: str, plan: Plan, rows: list[FleetRow], *, judge: str, resumed: int = 0) -> FleetReport:
    """Sum up the rows."""
    flipped, outcomes, reasons, judged = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    changed: list[FleetRow] = []
    gained = lost = routes = tried = 0
    for row in rows:
        ending, compared, recorded = row["ending"], row["compared"], row["recorded"]
        if ending is None or compared is None or recorded is None:
            reasons[row["problem"] or "no ending"] += 1
            continue
        tried += 1
        flipped.update(compared["flipped"])
        gained, lost = gained + len(compared["gained"]), lost + len(compared["lost"])
        routes += ending["route"] != recorded["route"]
        if "outcome" in compared["flipped"]:
            outcomes[f"{recorded['outcome']} → {ending['error'] or ending['outcome']}"] += 1
        if compared["flipped"]:
            changed.append(row)
        if row["judged"] is not None:
            judged[row["judged"]["now"]] += 1
    changed.sort(key=_weigh_change, reverse=True)
    return FleetReport(
        change=change,
        plan=plan,
        tried=tried,
        resumed=resumed,
        not_tried=dict(reasons),
        changed=len(changed),
        share_changed=_share(len(changed), tried),
        flipped=dict(flipped),
        judge=judge,
        better=judged["better"],
        worse=judged["worse"],
        share_worse=_share(judged["worse"], tried),
        outcomes=dict(outcomes),
        routes_changed=routes,
        citations_gained=gained,
        citations_lost=lost,
        by_node=_add_nodes(row["by_node"] for row in rows),
        spent=round(sum(row["cost"] for row in rows), 6),
        most_different=[row["run_id"] for row in changed[:MOST_DIFFERENT]],
        runs=rows,
    )


def list_most_different(report: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the rows of the runs that changed most."""
    by_id = {row["run_id"]: row for row in report["runs"]}
    return [by_id[run_id] for run_id in report["most_different"]]


def _share(part: int, tried: int) -> float:
    return round(part / tried, 4) if tried else 0.0


def _add_nodes(rows: Iterable[Mapping[str, NodeChange]]) -> dict[str, NodeChange]:
    changes: dict[str, list[NodeChange]] = {}
    for row in rows:
        for node, change in row.items():
            changes.setdefault(node, []).append(change)

    def add_ms(node: str, place: Literal[0, 1]) -> float:
        return round(sum(change["ms"][place] for change in changes[node]), 2)

    def add(node: str, place: Literal[0, 1]) -> float | None:
        return add_costs(change["cost"][place] for change in changes[node])

    return {
        node: NodeChange(ms=(add_ms(node, 0), add_ms(node, 1)), cost=(add(node, 0), add(node, 1))) for node in changes
    }


def _weigh_change(row: FleetRow) -> tuple[int, int, int]:
    compared, judged = row["compared"], row["judged"]
    assert compared is not None
    return (
        judged is not None and judged["now"] == "worse",
        ("outcome" in compared["flipped"]) * 4 + ("verdict" in compared["flipped"]) * 2 + len(compared["flipped"]),
        len(compared["gained"]) + len(compared["lost"]),
    )
