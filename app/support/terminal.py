"""Consoles, tables and progress bars that the commands share."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich import markup
from rich.console import Console, ConsoleOptions, ConsoleRenderable, OverflowMethod, RenderHook, RenderResult
from rich.segment import Segment
from rich.table import Column, Table

from domain.text.controls import show_controls


class _Shown:
    """What is printed, without what would control the terminal, wherever it comes from."""

    def __init__(self, printed: ConsoleRenderable) -> None:
        self._printed = printed

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for text, style, control in console.render(self._printed, options):
            yield Segment(text if control else show_controls(text, lines=True), style, control)


class _Guard(RenderHook):
    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Shown(each) for each in renderables]


def _open(**options: Any) -> Console:
    console = Console(soft_wrap=True, highlight=False, **options)
    console.push_render_hook(_Guard())
    return console


out = _open()
err = _open(stderr=True)

Terminal = Console
Progress = Callable[[str, int, int], None]
"""Called with a label, the number of items done, and their total."""


def escape(text: str, *, lines: bool = False) -> str:
    """Return text from outside as it is printed: neither markup nor control characters in it take effect, nor, without
    `lines`, ends of lines. A file may come from anybody."""
    return markup.escape(show_controls(text, lines=lines))


def shorten(text: str, longest: int) -> str:
    """Return the text on one line, cut where it is longer."""
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 chunk`, `1,200 chunks`."""
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal, unless `yes`; end the command if the answer is no. A script is not asked."""
    if is_asked(yes):
        typer.confirm(question, abort=True, err=True)


def is_asked(yes: bool) -> bool:
    """Return True if a person is there to be asked, and has not said yes before."""
    return not yes and sys.stdin.isatty() and err.is_terminal


def new_table(*headings: str, right: Collection[str] = (), overflow: OverflowMethod = "ellipsis") -> Table:
    """Return a table without lines, with these columns; those whose headings are in `right` are flush right."""
    columns = [Column(name, justify="right" if name in right else "left", overflow=overflow) for name in headings]
    return Table(*columns, box=None, pad_edge=False)


def print_table(table: Table) -> None:
    """Print a table: to the width of a terminal, or unfolded into a file or pipe, where a program reads the rows."""
    (out if out.is_terminal else _open(file=out.file, width=1_000_000)).print(table)


@contextmanager
def show_progress(*, transient: bool = False, log: bool = True) -> Iterator[Progress]:
    """Show a progress bar per label on standard error.

    Without a terminal, print a line at each tenth that is done, or nothing if `log` is false. `transient` removes the
    bars at the end.
    """
    if err.is_terminal:
        with _show_bars(transient) as update:
            yield update
    else:
        yield _log_tenths() if log else _ignore


@contextmanager
def _show_bars(transient: bool) -> Iterator[Progress]:
    # Most commands show no bar, and importing this takes as long as all other output.
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=err, transient=transient) as bars:
        tasks: dict[str, Any] = {}

        def update(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(escape(label[-60:]), total=total)
            bars.update(tasks[label], completed=done, total=total)

        yield update


def _log_tenths() -> Progress:
    said: dict[str, int] = {}

    def log(label: str, done: int, total: int) -> None:
        tenths = 10 * done // max(total, 1)
        if said.get(label) != tenths:
            said[label] = tenths
            err.print(escape(f"{label}: {done} of {total}"))

    return log


def _ignore(label: str, done: int, total: int) -> None:
    pass
