"""Shows the events of a run, for `ask` and `replay`."""

import sys
from collections.abc import Iterable, Sequence

from app.api.schema.descriptions import describe_answer
from app.cli.support.running import print_json
from app.support.terminal import Terminal, err, escape, new_table, out
from domain.documents import Citation, name_cited
from domain.errors import Unavailable
from domain.events import Compared, Done, Event, data_of
from domain.text.controls import show_controls

_ERASE = "\r\x1b[2K"
"""Control codes that erase the terminal's line."""


class TerminalText:
    """Prints text as it comes, except tables of Markdown: their rows are kept until the table has ended, then drawn."""

    def __init__(self, console: Terminal) -> None:
        self._console = console
        self._line = ""
        self._rows: list[str] = []

    def write(self, text: str) -> None:
        for piece in text.splitlines(keepends=True):
            begun, self._line = self._line, self._line + piece
            ended = piece.endswith("\n")
            if self._is_row():
                if begun and "|" not in begun and not self._rows:
                    self._console.file.write(_ERASE)
                if ended:
                    self._rows.append(self._line)
            elif not self._rows:
                self._console.file.write(show_controls(piece, lines=True))
            elif ended:
                self._print_rows()
                self._console.file.write(show_controls(self._line, lines=True))
            if ended:
                self._line = ""
        self._console.file.flush()

    def finish(self) -> None:
        """Print what is kept. Call it once the text has ended."""
        if self._is_row():
            self._rows.append(self._line)
            self._line = ""
        if self._rows:
            self._print_rows()
            self._console.file.write(show_controls(self._line, lines=True))

    def _is_row(self) -> bool:
        # The beginning of a line that is wider than the terminal could not be taken back.
        return "|" in self._line[: self._console.width]

    def _print_rows(self) -> None:
        kept, self._rows = self._rows, []
        cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in kept]
        if len(cells) < 2 or any(cell.strip(":-") for cell in cells[1]):
            self._console.file.writelines(show_controls(row, lines=True) for row in kept)
            return
        head, _, *rows = cells
        table = new_table(*map(escape, head), overflow="fold")
        for row in rows:
            table.add_row(*map(escape, row[: len(head)]))
        self._console.print(table)


class _TextPrinter:
    """Prints the answer as it is written, then its sources."""

    def __init__(self) -> None:
        self._text = TerminalText(out) if out.is_terminal else None
        self._compared: Compared | None = None
        self._failed = False
        self._begun = False
        """True once something of the answer stands there."""

    def show(self, event: Event) -> None:
        if err.is_terminal and not self._begun:
            # Each line of progress takes the place of the one before, and the answer that of the last.
            err.file.write(_ERASE)
        self._begun |= event["type"] not in ("thinking", "waiting", "sources")
        match event["type"]:
            case "thinking":
                if err.is_terminal and not self._begun:
                    err.print(f"[dim]{event['step']} …[/dim]", end="")
            case "waiting":
                err.print(f"[dim]{event['step']} takes longer than usual; no answer has come yet[/dim]")
            case "content":
                self._write(event["token"])
            case "correction":
                answer = escape(event["answer"], lines=True)
                out.print(f"\n\n[yellow]Corrected:[/yellow] {escape(event['reason'])}\n\n{answer}")
            case "comparison":
                self._compared = event
            case "error":
                err.print(f"\n[red]{escape(event['message'], lines=True)}[/red]")
                self._failed = True
            case "done":
                if self._text:
                    self._text.finish()
                _print_done(event)

    def _write(self, token: str) -> None:
        if self._text:
            self._text.write(token)
        else:
            sys.stdout.write(show_controls(token, lines=True))
            sys.stdout.flush()

    def finish(self) -> int:
        return _print_comparison(self._compared) if self._compared else int(self._failed)


class _JsonPrinter:
    """Prints the answer as JSON at its end."""

    def __init__(self) -> None:
        self._seen: list[Event] = []

    def show(self, event: Event) -> None:
        self._seen.append(event)

    def finish(self) -> int:
        ended = self._seen[-1]
        compared = next((event for event in self._seen if event["type"] == "comparison"), None)
        if ended["type"] == "done":
            print_json(describe_answer(ended, self._seen))
        else:
            error = {"error": data_of(ended)}
            print_json(error | ({"comparison": data_of(compared)} if compared else {}))
        return int(ended["type"] == "error" if compared is None else not compared["identical"])


def show_events(events: Iterable[Event], *, as_json: bool) -> int:
    """Print a run's answer as a server streams it, or as JSON at its end, and return the exit code.

    The code is 1 if the run failed, or if a strict replay differs from its recording. Raises `Unavailable` if the
    stream ends before the run does.
    """
    printer = _JsonPrinter() if as_json else _TextPrinter()
    last = None
    for event in events:
        printer.show(event)
        last = event["type"]
    if last not in ("done", "error"):
        raise Unavailable("The server closed the connection before the answer was complete.")
    return printer.finish()


def _print_done(done: Done) -> None:
    print()
    _print_citations(done["citations"])
    for warning in done["warnings"]:
        err.print(f"[yellow]{escape(warning)}[/yellow]")
    cached = ", from the cache" if done["cached"] else ""
    out.print(
        f"\n[dim]confidence {done['confidence']:.2f} · {done['timings']['total']:.0f} ms{cached} · "
        f"thread {done['thread_id']} · run {done['run_id']}[/dim]"
    )


def _print_comparison(compared: Compared) -> int:
    """Say how a strict replay compares with its recording. Return the exit code."""
    if compared["identical"]:
        out.print(f"Identical to run {compared['run_id']}: every event and the final state.")
        return 0
    err.print(f"[red]Differs from the recording of run {compared['run_id']}:[/red]")
    for line in compared["differences"]:
        err.print(escape(line))
    return 1


def _print_citations(citations: Sequence[Citation]) -> None:
    if citations:
        out.print("\n[bold]Sources[/bold]")
    for citation in sorted(citations, key=lambda c: c["marker"]):
        where = name_cited(citation)
        page = f", page {citation['page']}" if citation["page"] else ""
        source = f" [dim]({escape(citation['source'])})[/dim]" if citation.get("source") else ""
        revision = ""
        if citation.get("revision", 1) > 1:
            revision = f", revision {citation['revision']} of {citation['updated_at'][:10]}"
        snippet = " ".join(citation["text"].split())
        out.print(
            f"  \\[{citation['marker']}] [bold]{escape(where)}[/bold]{page}{revision}{source}\n"
            f"      [dim]{escape(snippet)}[/dim]"
        )
