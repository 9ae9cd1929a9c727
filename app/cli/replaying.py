"""Replays many runs, for `askgraph replay --since`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.cli.reading_runs import escape, shorten
from app.cli.running import print_json
from app.cli.terminal import count, err, new_table, out, print_table, show_progress
from app.modes import fit_modes, read_modes
from app.runs.costs import parse_since
from app.runs.fleet import MOST_REPLAYED, make_variant
from app.settings import Settings, read_settings
from app.wiring.services import open_services
from domain.errors import StateError
from domain.profile import Profile
from domain.run_lists import RunFilter, parse_run_filter
from domain.scope import Scope

_SHOWN = 10
"""Changed runs that are printed."""


async def replay_many(
    *,
    since: str,
    where: str | None,
    changes: Mapping[str, str],
    mode: str | None,
    profile: str | None,
    budget: float | None,
    dry_run: bool,
    most_changed: float | None,
    workspace: str,
    as_json: bool,
) -> int:
    """Replay the runs that fit, print the report, and return the exit code: 1 if a greater share than `most_changed`
    changed."""
    wanted = RunFilter(parse_since(since), parse_run_filter(where), MOST_REPLAYED)
    settings = read_settings()
    async with open_services(settings) as services:
        modes = dict(services.modes)
        if profile is not None:
            added, mode = _read_profile(profile, settings, modes)
            modes |= fit_modes(added, services.library.embedder.name)
        variant = make_variant(changes, mode)
        fleet = services.make_debugger().make_fleet(modes)
        plan, planned = await fleet.plan(Scope(workspace), wanted, variant)
        if not as_json:
            print_plan(plan, budget)
        if dry_run:
            if as_json:
                print_json(plan)
            return 0
        with show_progress(transient=True) as progress:
            report = await fleet.run(Scope(workspace), plan, planned, variant, budget=budget, progress=progress)
    if as_json:
        print_json(report)
    else:
        print_report(report)
    return 1 if most_changed is not None and report["share_changed"] > most_changed else 0


def _read_profile(text: str, settings: Settings, known: Mapping[str, Profile]) -> tuple[dict[str, Profile], str]:
    """Return the modes that `--profile` adds, and the one that it names: a mode, a file of one mode, or FILE:MODE."""
    if text in known:
        return {}, text
    file, _, name = text.rpartition(":") if not Path(text).is_file() else (text, "", "")
    if not Path(file).is_file():
        raise StateError(f"{text!r} is neither a mode ({', '.join(known)}) nor a file of profiles.")
    added = read_modes(settings.model_copy(update={"profiles": Path(file)}))
    own = [mode for mode in added if mode not in known or added[mode] != known[mode]]
    if not name and len(own) != 1:
        raise StateError(f"{file} has {count(len(own), 'mode')} of its own; name one: {file}:MODE.")
    name = name or own[0]
    if name not in added:
        raise StateError(f"{file} has no mode {name!r}. It has: {', '.join(own)}.")
    return {name: added[name]}, name


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
    table = new_table()
    for heading in ("step", "ms then", "ms now"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for node, (then, now) in report["ms_by_node"].items():
        table.add_row(node, f"{then:,.1f}", f"{now:,.1f}")
    print_table(table)
    by_id = {row["run_id"]: row for row in report["runs"]}
    for run_id in report["most_different"][:_SHOWN]:
        row = by_id[run_id]
        out.print(f"\n[bold]{escape(shorten(row['question'], 100))}[/bold] [dim]{run_id}[/dim]")
        for label, ending in (("then", row["recorded"]), ("now", row["ending"])):
            ended = ending["error"] or ending["outcome"]
            out.print(f"  {label:<4} {ended} {ending['confidence']:.2f}: {escape(shorten(ending['answer'], 120))}")
