"""Replays many runs, for `askgraph replay --since`."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.adapters.tracing.experiments import check_langsmith
from app.cli.support.running import print_json, write_file
from app.cli.support.terminal import count, err, new_table, out, print_table, show_progress
from app.evaluation.uploading import upload_replay
from app.history.costs import parse_since
from app.modes import fit_modes, read_modes
from app.settings import Settings, read_settings
from app.support.garbage import leave_what_is_open
from app.wiring.services import open_services
from app.workbench.cli.reading_runs import escape, shorten
from app.workbench.fleet.fleet import MOST_REPLAYED, make_variant
from app.workbench.fleet.fleet_journal import FleetJournal
from app.workbench.fleet.fleet_page import draw_report
from app.workbench.fleet.fleet_report import list_most_different
from domain.errors import StateError
from domain.profile import Profile
from domain.run_lists import RunFilter, parse_run_filter
from domain.scope import Scope


@dataclass(frozen=True, slots=True)
class ManyRuns:
    """The options of a replay of many runs."""

    since: str
    where: str | None
    changes: Mapping[str, str]
    mode: str | None
    profile: str | None
    search_anew: bool
    budget: float | None
    judge: bool
    dry_run: bool
    most_changed: float | None
    most_worse: float | None
    journal: Path | None
    report: Path | None
    upload: bool
    workspace: str
    as_json: bool


async def replay_many(options: ManyRuns) -> int:
    """Replay the runs that fit, print the report, and return the exit code: 1 if a greater share than `most_changed`
    changed, or than `most_worse` became worse."""
    asker = Scope(options.workspace)
    wanted = RunFilter(parse_since(options.since), parse_run_filter(options.where), MOST_REPLAYED)
    if options.judge and options.budget is None:
        raise StateError("--judge asks a language model: say with --budget how many dollars it may cost.")
    if options.upload:
        check_langsmith()
    settings = read_settings()
    async with open_services(settings) as services:
        leave_what_is_open()
        modes, mode = dict(services.modes), options.mode
        if options.profile is not None:
            added, mode = _read_profile(options.profile, settings, modes)
            modes |= fit_modes(added, services.library.embedder.name)
        variant = make_variant(options.changes, mode, search_anew=options.search_anew)
        judge = services.models.chat.judge if options.judge else None
        if options.judge and judge is None:
            raise StateError("--judge needs a language model that verifies: ASKGRAPH_MODEL_JUDGE.")
        journal = None
        if options.journal is not None:
            journal = FleetJournal(
                options.journal,
                workspace=options.workspace,
                changes=options.changes,
                search_anew=options.search_anew,
                profile=None if mode is None else modes[mode].model_dump(),
                judge=judge and judge.name,
                machine=services.runs.fingerprint,
                documents=await services.library.documents.corpus_fingerprint(asker),
            )
        fleet = services.make_debugger().make_fleet(modes)
        plan, planned = await fleet.plan(asker, wanted, variant)
        if not options.as_json:
            print_plan(plan, options.budget)
        if options.dry_run:
            if options.as_json:
                print_json(plan)
            return 0
        with show_progress(transient=True) as progress:
            report = await fleet.run(
                asker,
                plan,
                planned,
                variant,
                budget=options.budget,
                judge=judge,
                journal=journal,
                progress=partial(progress, "replayed"),
            )
        fingerprint = services.runs.fingerprint
    if options.as_json:
        print_json(report)
    else:
        print_report(report)
    if options.report is not None:
        write_file(options.report, draw_report(report).encode())
        err.print(f"Side by side: {options.report}", markup=False)
    if options.upload:
        name = await asyncio.to_thread(upload_replay, report, options.workspace, fingerprint)
        err.print(f"Experiment in LangSmith: {name}", markup=False)
    too_many = options.most_changed is not None and report["share_changed"] > options.most_changed
    too_bad = options.most_worse is not None and report["share_worse"] > options.most_worse
    return 1 if too_many or too_bad else 0


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
    out.print(f"  {report['better']} better, {report['worse']} worse, by {escape(report['judge'])}")
    for change, number in report["outcomes"].items():
        out.print(f"  {number} × {escape(change)}")
    out.print(
        f"citations: {report['citations_gained']} gained, {report['citations_lost']} lost; routes changed: "
        f"{report['routes_changed']}; spent ${report['spent']:.4f}"
    )
    for reason, number in report["not_tried"].items():
        out.print(f"[yellow]{number} not tried: {escape(reason)}[/yellow]")
    table = new_table()
    for heading in ("step", "ms then", "ms now", "$ then", "$ now"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for node, change in report["by_node"].items():
        costs = ("?" if cost is None else f"{cost:.4f}" for cost in change["cost"])
        table.add_row(node, *(f"{ms:,.1f}" for ms in change["ms"]), *costs)
    print_table(table)
    for row in list_most_different(report):
        judged = f"{row['judged']['now']}: {row['judged']['reason']}" if row["judged"] else ""
        asked = escape(shorten(row["question"], 100))
        out.print(f"\n[bold]{asked}[/bold] [dim]{row['run_id']} {escape(shorten(judged, 120))}[/dim]")
        for label, ending in (("then", row["recorded"]), ("now", row["ending"])):
            ended = ending["error"] or ending["outcome"]
            out.print(f"  {label:<4} {ended} {ending['confidence']:.2f}: {escape(shorten(ending['answer'], 120))}")
