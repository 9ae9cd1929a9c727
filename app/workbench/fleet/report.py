"""What a replay of many runs reports: a row per run, and what they come to together."""

from collections import Counter

from typing_extensions import TypedDict

from app.workbench.compare.endings import Compared, Ending


class Plan(TypedDict):
    """What a replay would do, before it does anything."""

    runs: int
    """Runs that are looked at."""
    affected: int
    """Those that have a step which reads what would change."""
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


class FleetRow(TypedDict):
    """One run that was replayed."""

    run_id: str
    question: str
    begins: str
    recorded: Ending | None
    """None where the run could no longer be read."""
    ending: Ending | None
    compared: Compared | None
    cost: float
    """US dollars for new calls of models."""
    problem: str | None
    """Why there is no ending."""


class FleetReport(TypedDict):
    """What would have been otherwise."""

    change: str
    plan: Plan
    tried: int
    not_tried: dict[str, int]
    """By reason."""
    changed: int
    share_changed: float
    """Of those that were tried."""
    flipped: dict[str, int]
    """Runs whose outcome, answer, citations or verdict differs."""
    outcomes: dict[str, int]
    """Changed outcomes: `abstained → answered`."""
    routes_changed: int
    citations_gained: int
    citations_lost: int
    spent: float
    """US dollars, for new calls of models."""
    runs: list[FleetRow]
    """Those that changed most first."""


def make_report(change: str, plan: Plan, rows: list[FleetRow]) -> FleetReport:
    """Sum up the rows."""
    flipped, outcomes, reasons = Counter[str](), Counter[str](), Counter[str]()
    changed = gained = lost = routes = tried = 0
    for row in rows:
        ending, compared, recorded = row["ending"], row["compared"], row["recorded"]
        if ending is None or compared is None or recorded is None:
            reasons[row["problem"] or "no ending"] += 1
            continue
        tried += 1
        changed += bool(compared["flipped"])
        flipped.update(compared["flipped"])
        gained, lost = gained + len(compared["gained"]), lost + len(compared["lost"])
        routes += ending["route"] != recorded["route"]
        if "outcome" in compared["flipped"]:
            outcomes[f"{recorded['outcome']} → {ending['error'] or ending['outcome']}"] += 1
    return FleetReport(
        change=change,
        plan=plan,
        tried=tried,
        not_tried=dict(reasons),
        changed=changed,
        share_changed=round(changed / tried, 4) if tried else 0.0,
        flipped=dict(flipped),
        outcomes=dict(outcomes),
        routes_changed=routes,
        citations_gained=gained,
        citations_lost=lost,
        spent=round(sum(row["cost"] for row in rows), 6),
        runs=sorted(rows, key=_weigh_change, reverse=True),
    )


def _weigh_change(row: FleetRow) -> tuple[bool, bool, int, int]:
    compared = row["compared"]
    if compared is None:
        return False, False, 0, 0
    flipped = compared["flipped"]
    moved = len(compared["gained"]) + len(compared["lost"])
    return "outcome" in flipped, "verdict" in flipped, len(flipped), moved
