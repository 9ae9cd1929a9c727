"""The output of commands on a terminal and in a pipe."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from app.cli.asking.answers import TerminalText
from app.cli.library.documents import print_documents
from app.cli.library.ingest import print_ingest
from app.cli.support.running import print_json
from app.support import terminal
from domain.documents import Document, DocumentReport, IngestReport

ID = "0b9c2f5e-6d1a-4c3f-9a77-52b6f0c1d2e3"
LONG = Document(
    id=ID,
    workspace_id="default",
    source="/srv/a folder/of a team/" + "handbook " * 12 + ".md",
    title="Lindenhof Instruments Team Handbook, " + "with all of its annexes " * 4,
    media_type="text/markdown",
    content_hash="h",
    pages=None,
    characters=100,
    chunks=1,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    updated_at=datetime(2026, 1, 1, tzinfo=UTC),
)


def test_rows_are_not_folded_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_documents([LONG, replace(LONG, id="short", title="T")])
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["id", "title", "pages", "chunks", "source"]
    assert first.startswith(f"{ID} ")
    assert LONG.title.strip() in first
    assert first.rstrip().endswith(LONG.source)
    assert second.startswith("short ")


@pytest.mark.parametrize("width", [120, 80, 40])
def test_ids_are_never_broken_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    shown = StringIO()
    screen = Console(file=shown, force_terminal=True, width=width, soft_wrap=True, highlight=False, no_color=True)
    monkeypatch.setattr(terminal, "out", screen)
    print_documents([LONG])
    assert ID in shown.getvalue()
    assert LONG.title not in shown.getvalue(), "it is folded"


def test_one_of_a_thing_is_named_in_the_singular() -> None:
    counted = [terminal.count(number, "hit") for number in (0, 1, 1200)]
    assert counted == ["0 hits", "1 hit", "1,200 hits"]


def test_skipped_files_are_told_by_type(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a.py", "b.py", "Makefile", "c.[red]", "d\x1b.x", "e.y", "f.z", "g.go"]
    print_ingest(IngestReport([], 0.0, [Path("/srv", name) for name in names]))
    said = "8 files of other types skipped (2 like a.py, Makefile, c.[red], d\\u001b.x, e.y, 2 others)"
    assert said in capsys.readouterr().out


HOSTILE = "x\x1b[1A\x1b]8;;http://evil\x07\x9b2K\u202egnp.exe\r\nadded      fake.md"


def test_nothing_in_a_name_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_documents([replace(LONG, source=HOSTILE, title=HOSTILE)])
    print_ingest(IngestReport([DocumentReport(HOSTILE, "failed", error=HOSTILE)], 0.0, [Path(HOSTILE)]))
    # Also where somebody forgot to escape it.
    terminal.out.print(HOSTILE, markup=False)
    terminal.err.print(f"[bold]{HOSTILE}[/bold]")
    terminal.print_table(table := terminal.new_table("a"))
    table.add_row(HOSTILE)
    terminal.print_table(table)
    printed = capsys.readouterr()
    shown = (printed.out + printed.err).replace("\r\n", "\n")
    assert r"\u001b[1A\u001b]8;;http://evil\u0007\u009b2K\u202egnp.exe\u000d\u000aadded" in printed.out
    assert [letter for letter in shown if not letter.isprintable() and letter != "\n"] == []


def test_an_answer_does_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    text = TerminalText(terminal.out)
    text.write(f"One.\n{HOSTILE}\n| a |\n| - |\n| \x1b[2J |\n")
    text.finish()
    print_json({"title": HOSTILE})
    shown = capsys.readouterr().out
    assert "One.\nx\\u001b[1A" in shown
    assert "\x1b[2J" not in shown
    assert json.loads(shown.splitlines()[-1]) == {"title": HOSTILE}
    assert shown.isascii()


def test_a_failed_file_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    failed = DocumentReport("/x/cut.pdf", "failed", error="The PDF file is damaged.")
    print_ingest(IngestReport([failed], 0.0))
    assert capsys.readouterr().err.count("cut.pdf") == 1
