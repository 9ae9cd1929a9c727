from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from app.cli.support.options import JsonOption, check_workspace, new_cli
from app.cli.support.running import as_command, print_result
from app.evaluation.comparison import Comparison, compare
from app.evaluation.evaluation import Evaluated, Options, evaluate
from app.evaluation.feedback_set import Exported, FeedbackSet
from app.evaluation.kept_sets import as_evaluation, find_set, keep_result
from app.evaluation.report import check_folder, list_metrics, write_report
from app.evaluation.scoring import explain, is_right, pair_up
from app.evaluation.sets import read_sets
from app.history.costs import parse_since
from app.modes import read_modes
from app.settings import Settings, read_settings
from app.support.terminal import count, err, escape, new_table, out, print_table, shorten, show_progress
from app.wiring.services import open_services
from app.wiring.stores import open_stores
from domain.errors import InputError, UnknownMode
from domain.profile import Profile

MOST_RATED = 200
"""Rated questions that a set is made of, the latest first."""
MAX_FLIPS = 20
"""Changed or wrong questions that are named; the report has them all."""

cli = new_cli()


@cli.command("eval")
@as_command
async def measure(
    sets: Annotated[
        list[str],
        typer.Argument(
            metavar="SET...",
            help="Folders of sets, files of questions about a workspace, or @NAME for a set that it keeps.",
        ),
    ],
    profile: Annotated[
        list[str] | None,
        typer.Option("--profile", "-p", help="A mode to ask in; give two to compare them. [default: standard]"),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Ask only the first questions of each set.", min=1)] = None,
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("eval-results"),
    workspace: Annotated[
        str | None,
        typer.Option(
            "--workspace",
            "-w",
            help="Ask this workspace instead of those made of the set's files. With --rated: only its questions. "
            "@NAME is a set of it, or of `default`.",
            callback=check_workspace,
        ),
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the set's workspaces for the next run.")] = False,
    rated: Annotated[
        str | None,
        typer.Option(
            metavar="SINCE",
            help="Measure nothing: make a set of the questions that readers rated since then (7d, a date) and of the "
            "library's files, or add to one.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Measure how well questions are answered, or make a set of what readers rated.

    Covers retrieval, answers, abstention and citations.
    """
    settings = read_settings()
    if rated is not None:
        return await _write_rated(settings, sets, rated, workspace, limit or MOST_RATED)
    profiles = _find_profiles(profile or ["standard"], read_modes(settings))
    kept = [name[1:] for name in sets if name.startswith("@")]
    if kept and len(kept) < len(sets):
        raise InputError("Ask sets that a workspace keeps by themselves.")
    keeper = workspace or "default"
    wanted = [] if kept else read_sets(sets, workspace=workspace, limit=limit)
    check_folder(out)
    async with open_services(settings) as services:
        wanted += [as_evaluation(await find_set(services.sets, keeper, name), limit) for name in kept]
        options = Options(keeper if kept else workspace, keep)
        with show_progress() as progress:
            evaluated = await evaluate(services, wanted, profiles, options, progress)
        for each in evaluated if kept and limit is None else ():
            await keep_result(services, keeper, each)
        fingerprint = services.runs.fingerprint
    for each in evaluated:
        if each.kept is not None:
            err.print(f"{escape(each.set.name)}: its documents stay in the workspaces {each.kept}-….")
    page = write_report(evaluated, out, fingerprint)
    if options.workspace is not None and not as_json:
        asking = f"askgraph ask --workspace {escape(options.workspace)} --mode MODE QUESTION"
        err.print(f"To look into a wrong one: {asking}, and askgraph why with the run that it names.")
    return print_result(partial(print_evaluation, page), evaluated, as_json=as_json, describe=list_metrics)


async def _write_rated(
    settings: Settings, folders: Sequence[str], since: str, workspace_id: str | None, limit: int
) -> int:
    if len(folders) != 1:
        raise InputError("Name one folder to write the set to.")
    folder = Path(folders[0])
    async with open_stores(settings) as stores:
        rated = await stores.feedback.list(workspace_id, parse_since(since), limit)
        if not rated:
            out.print("Nothing was rated since then.")
            return 0
        written = FeedbackSet(folder, stores.originals.read)
        for each in dict.fromkeys(run.workspace_id for run in rated):
            await written.add_library(each, await stores.catalog.list(each))
    written.add_questions(rated)
    print_written(folder, written.exported)
    return 0


def print_written(folder: Path, exported: Exported) -> None:
    """Say what was written to a set, and what is missing."""
    out.print(f"{count(exported.questions, 'question')} and {count(exported.files, 'file')} are in {folder}.")
    if exported.left_out:
        out.print(f"Left out: {count(exported.left_out, 'question')} that were answered by asking back.")
    if exported.known:
        out.print(f"There already, and left as they are: {count(exported.known, 'question')}.")
    for source in exported.without_file:
        out.print(f"Not kept, so not in the set: {escape(source)}")
    out.print("Add the facts that answers have to hold (`must`), then: askgraph eval", escape(str(folder)))


def _find_profiles(names: Sequence[str], modes: dict[str, Profile]) -> list[Profile]:
    """Return the profiles of these names, without repeats. Raises `UnknownMode`."""
    if unknown := [name for name in names if name not in modes]:
        raise UnknownMode(f"There is no profile {unknown[0]!r}. There are: {', '.join(modes)}.")
    return [modes[name] for name in dict.fromkeys(names)]


def print_evaluation(page: Path, evaluated: Sequence[Evaluated]) -> None:
    """Print the metrics of each set, a column per profile, and the comparison of the first profile with the others."""
    for each in evaluated:
        _print_wrong(each)
        comparisons = compare(each)
        figures = [escape(result.profile) for result in each.results]
        figures += [escape(f"{comparison.after} − {comparison.before}") for comparison in comparisons]
        table = new_table("metric", *figures, right=figures)
        table.title, table.title_justify = escape(each.set.name), "left"
        for name in dict.fromkeys(name for result in each.results for name in result.metrics):
            values = [_format(result.metrics.get(name)) for result in each.results]
            table.add_row(name, *values, *(_format(c.differences.get(name), "+") for c in comparisons))
        print_table(table)
        for comparison in comparisons:
            _print_comparison(comparison)
        out.print()
    out.print(f"Every question: {escape(str(page))}")


def _print_wrong(each: Evaluated) -> None:
    """Name the questions that came out wrong, each with what went wrong."""
    for result in each.results:
        wrong = [pair for pair in pair_up(each.set, result.outcomes) if not is_right(each.set, *pair)]
        right = len(result.outcomes) - len(wrong)
        out.print(f"{escape(each.set.name)}, {escape(result.profile)}: {right} of {len(result.outcomes)} right.")
        for question, outcome in wrong[:MAX_FLIPS]:
            why = explain(each.set, question, outcome)
            out.print(f"  {escape(question.id)} {escape(shorten(question.question, 80))} [dim]{escape(why)}[/dim]")
        if len(wrong) > MAX_FLIPS:
            out.print(f"  and {len(wrong) - MAX_FLIPS} more")


def _print_comparison(comparison: Comparison) -> None:
    out.print(
        f"{escape(comparison.after)} against {escape(comparison.before)}: "
        f"{count(len(comparison.gained), 'question')} gained, {len(comparison.lost)} lost; "
        f"sign test: p = {comparison.p_value:.3g}"
    )
    for sign, ids in (("+", comparison.gained), ("-", comparison.lost)):
        if ids:
            out.print(f"  {sign} {escape(' '.join(ids[:MAX_FLIPS]))}{' …' if len(ids) > MAX_FLIPS else ''}")


def _format(value: float | None, sign: str = "") -> str:
    if value is None:
        return ""
    return f"{value:{sign}.0f}" if value == int(value) and abs(value) > 1 else f"{value:{sign}.3f}"
