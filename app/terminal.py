"""What people see in a terminal."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from app.ingest.background import HandedOver
from app.ingest.reindexing import Reindexed
from app.runs.examination import Examination
from app.runs.history import HistoryStep
from domain.documents import Citation, Document, DocumentReport, IngestReport, name_place
from domain.events import Compared, Event
from domain.ingestions import IngestionStatus
from domain.retention import Pruned
from domain.state import STATE_VERSION

if TYPE_CHECKING:
    from app.evaluation.evaluation import Evaluated

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)

_SHOWN = 110
"""Characters of a changed value in the history."""

_FLIPS = 20
"""Questions named of those that came out differently; the report has them all."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """`1 chunk`, `1,200 chunks`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


async def print_events(events: AsyncIterator[Event]) -> int:
    """The answer as it is written, then its sources. The exit code: of a strict replay, whether it was as recorded."""
    compared: Compared | None = None
    async for event in events:
        match event["type"]:
            case "thinking":
                if err.is_terminal:
                    err.print(f"[dim]{event['step']} …[/dim]")
            case "content":
                sys.stdout.write(event["token"])
                sys.stdout.flush()
            case "correction":
                out.print(f"\n\n[yellow]Corrected:[/yellow] {escape(event['reason'])}\n\n{escape(event['answer'])}")
            case "comparison":
                compared = event
            case "error":
                err.print(f"\n[red]{escape(event['message'])}[/red]")
                return print_comparison(compared) if compared else 1
            case "done":
                print()
                print_citations(event["citations"])
                for warning in event["warnings"]:
                    err.print(f"[yellow]{escape(warning)}[/yellow]")
                cached = ", from the cache" if event["cached"] else ""
                out.print(
                    f"\n[dim]confidence {event['confidence']:.2f} · {event['timings']['total']:.0f} ms{cached} · "
                    f"thread {event['thread_id']} · run {event['run_id']}[/dim]"
                )
    return print_comparison(compared) if compared else 0


def print_comparison(compared: Compared) -> int:
    """Whether a strict replay was as recorded, and if not, where. The exit code."""
    if compared["identical"]:
        out.print(f"Identical to run {compared['run_id']}: every event, and the final state.")
        return 0
    err.print(f"[red]Not what was recorded of run {compared['run_id']}:[/red]")
    for line in compared["differences"]:
        err.print(escape(line))
    return 1


def print_citations(citations: Sequence[Citation]) -> None:
    """The sources under an answer."""
    if citations:
        out.print("\n[bold]Sources[/bold]")
    for citation in sorted(citations, key=lambda c: c["marker"]):
        where = name_place(citation["title"], citation["heading_path"])
        page = f", page {citation['page']}" if citation["page"] else ""
        snippet = " ".join(citation["text"].split())
        out.print(f"  \\[{citation['marker']}] [bold]{escape(where)}[/bold]{page}\n      [dim]{escape(snippet)}[/dim]")


def print_costs(report: dict[str, Any]) -> None:
    """What answering has cost, a row for each thing told apart and one for all."""
    total = report["total"]
    table = Table(box=None, pad_edge=False)
    table.add_column(report["by"])
    for heading in ("runs", "cached", "calls", "tokens in", "tokens out", "US dollars"):
        table.add_column(heading, justify="right")
    for spent in [*report["costs"], total]:
        name = "all" if spent is total else spent["name"] or "no model"
        counts = [f"{spent[key]:,}" for key in ("runs", "cached", "calls", "input_tokens", "output_tokens")]
        unknown = " + ?" if spent["unpriced"] else ""
        table.add_row(escape(name), *counts, f"{spent['cost']:.4f}{unknown}", style="bold" if spent is total else None)
    out.print(f"Since {report['since']}:")
    _print_table(table)
    if total["unpriced"]:
        out.print(f"Not in the dollars: {count(total['unpriced'], 'call')} of models without a price.")


def print_pruned(pruned: Pruned, *, dry_run: bool) -> None:
    """What was deleted, or would have been."""
    for number, noun, rest in (
        (pruned.threads, "thread", ""),
        (pruned.thinned, "thread", " of which older runs keep their final states only"),
        (pruned.runs, "run", "; what was spent stays known"),
        (pruned.tapes, "tape", ""),
        (pruned.states, "state", ""),
        (pruned.values, "value", " of states"),
        (pruned.ingestions, "ingestion", " that ended; the documents stay"),
    ):
        figure, _, named = count(number, noun).partition(" ")
        out.print(f"{figure:>10} {named}{rest}")
    freed = f"{pruned.bytes / 1e6:,.1f} MB"
    out.print(f"Nothing was deleted; {freed} would be free." if dry_run else f"{freed} are free for what comes.")


def print_examination(found: Examination) -> None:
    """How many states there are of each version, which cannot be run on from, and what to do about them."""
    for version, states in sorted(found.versions.items()):
        figure, _, named = count(states, "state").partition(" ")
        out.print(f"version {version}{' (today)' if version == STATE_VERSION else '':<8} {figure:>10} {named}")
    if not found.failed:
        all_of_them = "The one state" if found.states == 1 else f"All {found.states:,} states"
        out.print(f"{all_of_them} can be run on from.")
        return
    for failure in found.failures:
        err.print(
            f"[red]{'fails' if failure.readable else 'damaged'}[/red] thread {escape(failure.thread_id)} "
            f"checkpoint {failure.checkpoint_id} (version {failure.version}): "
            f"{escape(failure.field)}: {escape(failure.why)}"
        )
    if found.failed > len(found.failures):
        err.print(f"… and {found.failed - len(found.failures):,} more.")
    err.print(f"[red]{found.failed:,} of {count(found.states, 'state')} cannot be run on from.[/red]")
    if any(failure.readable for failure in found.failures):
        err.print(
            "Those that fail: give the field a value as you run on, askgraph replay THREAD --from CHECKPOINT --set"
        )
        err.print("FIELD=VALUE; or run them with the version that saved them.")
    if not all(failure.readable for failure in found.failures):
        err.print("Those that are damaged: restore the tables checkpoints, checkpoint_blobs and checkpoint_writes of")
        err.print("their threads from a backup; or delete the threads, and askgraph prune deletes what was in them.")


def print_history(steps: Sequence[HistoryStep]) -> None:
    """A thread's saved steps."""
    run = None
    for step in steps:
        if step["run_id"] != run:
            run = step["run_id"]
            out.print(f"\n[bold]run {run}[/bold]")
        ms = f"{step['ms']:.1f} ms" if step["ms"] is not None else ""
        following = ", ".join(step["next"]) or ("" if step["node"] == "damaged" else "end")
        out.print(
            f"[bold cyan]{step['node']:<12}[/bold cyan] {ms:>10}  → {following:<12} [dim]{step['checkpoint_id']}[/dim]"
        )
        for key, value in step["changed"].items():
            out.print(f"    {key} = {escape(_shorten(value))}")


def print_documents(documents: Sequence[Document]) -> None:
    """The documents of a workspace."""
    table = Table(box=None, pad_edge=False)
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(d.id) for d in documents), default=0))
    for column in ("title", "pages", "chunks", "source"):
        table.add_column(column, justify="right" if column in ("pages", "chunks") else "left", overflow="fold")
    for d in documents:
        table.add_row(d.id, escape(d.title), str(d.pages or ""), str(d.chunks), escape(d.source))
    _print_table(table)


def print_handed_over(handed: HandedOver, workspace_id: str) -> None:
    """The files that wait, and how to follow them; and those that were refused."""
    for report in handed.refused:
        _print_failure(report)
    for status in handed.ingestions:
        out.print(f"{status.state:<10} {status.ingestion_id} {escape(status.source)}")
    counts = [f"{count(len(handed.ingestions), 'file')} to be read", f"{len(handed.refused)} failed"]
    if handed.passed_over:
        counts.append(f"{count(handed.passed_over, 'file')} of other types passed over")
    out.print(", ".join(counts))
    if handed.ingestions:
        option = "" if workspace_id == "default" else f" -w {workspace_id}"
        out.print("A running `askgraph serve` or `askgraph worker` reads them; where none runs, the next one does.")
        out.print(f"How they stand: askgraph ingestions{option}")


def print_ingestions(statuses: Sequence[IngestionStatus]) -> None:
    """How each ingestion stands, and why where it did not become a document."""
    table = Table(box=None, pad_edge=False)
    # An id that is broken over two lines cannot be copied.
    table.add_column("id", min_width=max((len(status.ingestion_id) for status in statuses), default=0))
    for column in ("state", "accepted", "source", ""):
        table.add_column(column, overflow="fold")
    for status in statuses:
        report = status.report
        said = report and (report.error or report.note or f"{report.status}, {count(report.chunks, 'chunk')}")
        accepted = f"{status.accepted_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(status.ingestion_id, status.state, accepted, escape(status.source), escape(said or ""))
    _print_table(table)


def _print_failure(report: DocumentReport) -> None:
    err.print(f"[red]failed[/red]     {escape(report.source)}: {escape(report.error or '')}")


def print_ingest(report: IngestReport) -> None:
    """What became of each file."""
    for d in report.documents:
        if d.status == "failed":
            _print_failure(d)
        elif d.status == "superseded":
            out.print(f"superseded {escape(d.source)}: {escape(d.note or '')}")
        else:
            pages = f", {count(d.pages, 'page')}" if d.pages else ""
            note = f" ({escape(d.note)})" if d.note else ""
            out.print(f"{d.status:<10} {escape(d.source)}: {count(d.chunks, 'chunk')}, {d.embedded} new{pages}{note}")
    taken = len(report.documents) - len(report.failed)
    rate = f" ({report.chunks / report.seconds:.0f} chunks/s)" if report.seconds and report.chunks else ""
    counts = [count(taken, "document"), f"{count(report.chunks, 'chunk')} written", f"{len(report.failed)} failed"]
    if report.passed_over:
        counts.append(f"{count(report.passed_over, 'file')} of other types passed over")
    out.print(f"{', '.join(counts)}, {report.seconds:.1f} s{rate}")


def print_reindexing(report: Reindexed, embeddings: str) -> None:
    """What was embedded, what it cost, and what is left to do."""
    if not report.switched:
        out.print(f"The index is of {report.model} already.")
        return
    spent = f", {count(report.tokens, 'token')}" if report.usage else ""
    cost = f", ${report.cost:.4f}" if report.cost else ""
    out.print(
        f"{count(report.chunks, 'chunk')} embedded with {report.model}{spent}{cost}. What serves them searches by "
        f"words until it is started again with ASKGRAPH_EMBEDDINGS={embeddings}."
    )


@contextmanager
def show_progress(*, enabled: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar per file: called with the file's name, the chunks done, and all its chunks."""
    if not enabled or not err.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        tasks: dict[str, Any] = {}

        def update(source: str, done: int, total: int) -> None:
            if source not in tasks:
                tasks[source] = progress.add_task(escape(source[-60:]), total=total)
            progress.update(tasks[source], completed=done, total=total)

        yield update


def print_evaluation(evaluated: Sequence["Evaluated"], page: Path) -> None:
    """The metrics of each set, a column for each profile; what changed from the first to the others; where to read
    more."""
    from app.evaluation.comparison import compare

    for each in evaluated:
        comparisons = compare(each)
        table = Table(title=escape(each.set.name), title_justify="left", box=None, pad_edge=False)
        table.add_column("metric")
        for result in each.results:
            table.add_column(escape(result.profile), justify="right")
        for comparison in comparisons:
            table.add_column(escape(f"{comparison.after} − {comparison.before}"), justify="right")
        for name in dict.fromkeys(name for result in each.results for name in result.metrics):
            values = [_format(result.metrics.get(name)) for result in each.results]
            table.add_row(name, *values, *(_format(c.differences.get(name), "+") for c in comparisons))
        _print_table(table)
        for comparison in comparisons:
            tests = ", ".join(f"{name} p = {value:.3g}" for name, value in comparison.p_values.items())
            out.print(
                f"{escape(comparison.after)} against {escape(comparison.before)}: "
                f"{count(len(comparison.gained), 'question')} gained, {len(comparison.lost)} lost; "
                f"paired permutation test: {tests}"
            )
            for sign, ids in (("+", comparison.gained), ("-", comparison.lost)):
                if ids:
                    out.print(f"  {sign} {escape(' '.join(ids[:_FLIPS]))}{' …' if len(ids) > _FLIPS else ''}")
        out.print()
    out.print(f"Every question: {escape(str(page))}")


@contextmanager
def show_work() -> Iterator[Callable[[str, int, int], None]]:
    """A bar per piece of work on standard error, called with its name, how much is done, and how much there is. Where
    nobody watches, a line when it begins and with every tenth that is done."""
    if not err.is_terminal:
        said: dict[str, int] = {}

        def log(label: str, done: int, total: int) -> None:
            tenths = 10 * done // max(total, 1)
            if said.get(label) != tenths:
                said[label] = tenths
                err.print(escape(f"{label}: {done} of {total}"))

        yield log
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err) as progress:
        tasks: dict[str, Any] = {}

        def update(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = progress.add_task(escape(label), total=total)
            progress.update(tasks[label], completed=done, total=total)

        yield update


def _print_table(table: Table) -> None:
    """In full where nobody watches: a program reads rows, not what fits a screen."""
    (out if out.is_terminal else Console(file=out.file, width=1_000_000)).print(table)


def _format(value: float | None, sign: str = "") -> str:
    if value is None:
        return ""
    return f"{value:{sign}.0f}" if value == int(value) and abs(value) > 1 else f"{value:{sign}.3f}"


def _shorten(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        named = [v.get("title") or v.get("chunk_id") or v.get("question") or v.get("text") for v in value]
        value = f"{len(value)}: {named}"
    text = " ".join(str(value).split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
