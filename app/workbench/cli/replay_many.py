"""Replays many runs with one change, for `askgraph replay --since`."""

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from app.cli.support.running import print_json
from app.settings import read_settings
from app.support.garbage import leave_what_is_open
from app.support.terminal import count, err, escape, out, shorten, show_progress
from app.wiring.services import open_services
from app.workbench.explain.whatif import Variant
from domain.history.run_lists import RunFilter
from domain.scope import Scope

_SHOWN = 20
"""Changed runs that are shown."""


async def replay_many(
    workspace: str,
    wanted: RunFilter,
    variant: Variant,
    *,
    budget: float | None,
    dry_run: bool,
    most_changed: float | None,
    as_json: bool,
) -> int:
    """Replay the runs, print the report, and return the exit code: 1 if a greater share than `most_changed` changed."""
    asker = Scope(workspace)
    async with open_services(read_settings()) as services:
        leave_what_is_open()
        debugger = services.make_debugger()
        if dry_run:
            plan = await debugger.plan_many(asker, wanted, variant)
            print_json(plan) if as_json else print_plan(plan, budget)
            return 0
        report: Mapping[str, Any] = {}
        with show_progress(transient=True) as progress:
            async with aclosing(debugger.replay_many(asker, wanted, variant, budget=budget)) as events:
                async for event in events:
                    if event["type"] == "plan" and not as_json:
                        print_plan(event["plan"], budget)
                    elif event["type"] == "progress":
                        progress("replayed", event["done"], event["total"])
                    elif event["type"] == "report":
                        report = event["report"]
    print_json(report) if as_json else print_report(report)
    return int(most_changed is not None and report["share_changed"] > most_changed)


def print_plan(plan: Mapping[str, Any], budget: float | None) -> None:
    """Print what would be replayed."""
    begins = ", ".join(f"{number} from {name}" for name, number in plan["begins"].items()) or "none"
    skipped = ", ".join(f"{number} {reason}" for reason, number in plan["skipped"].items())
    err.print(f"{count(plan['runs'], 'run')}: {plan['affected']} to replay ({escape(begins)})", highlight=False)
    err.print(f"{plan['unaffected']} not affected by the change" + (f"; left out: {skipped}" if skipped else ""))
    allowed = "language models are not asked" if budget is None else f"language models may cost ${budget:.2f}"
    unknown = plan["unpriced_calls"]
    more = f", and {count(unknown, 'call')} whose price is not known" if unknown else ""
    err.print(f"These steps cost ${plan['repeated_cost']:.4f}{more} then; {allowed}.")
    if unknown and budget is not None:
        err.print("[yellow]No further run begins after the first call whose price is not known.[/yellow]")


def print_report(report: Mapping[str, Any]) -> None:
    """Print what would have been otherwise."""
    flipped = ", ".join(f"{number} {aspect}" for aspect, number in report["flipped"].items()) or "nothing"
    out.print(f"{report['changed']} of {report['tried']} changed ({report['share_changed']:.1%}): {flipped}")
    for change, number in report["outcomes"].items():
        out.print(f"  {number} × {escape(change)}")
    out.print(
        f"citations: {report['citations_gained']} gained, {report['citations_lost']} lost; routes changed: "
        f"{report['routes_changed']}; spent ${report['spent']:.4f}"
    )
    for reason, number in report["not_tried"].items():
        out.print(f"[yellow]{number} not tried: {escape(reason)}[/yellow]")
    for row in report["runs"][:_SHOWN]:
        if not row["compared"] or not row["compared"]["flipped"]:
            continue
        out.print(f"\n[bold]{escape(shorten(row['question'], 100))}[/bold] [dim]{row['run_id']}[/dim]")
        for label, ending in (("then", row["recorded"]), ("now", row["ending"])):
            ended = ending["error"] or ending["outcome"]
            out.print(f"  {label:<4} {ended} {ending['confidence']:.2f}: {escape(shorten(ending['answer'], 120))}")
