"""The output of commands on a terminal and in a pipe."""

from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from app.cli.library.documents import print_documents
from app.cli.library.ingest import print_ingest
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
    assert (counted, terminal.count(2, "miss", "misses")) == (["0 hits", "1 hit", "1,200 hits"], "2 misses")


def test_skipped_files_are_told_by_type(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["a.py", "b.py", "Makefile", "c.[red]", "d\x1b.x", "e.y", "f.z", "g.go"]
    print_ingest(IngestReport([], 0.0, [Path("/srv", name) for name in names]))
    said = "8 files of other types skipped (2 like a.py, Makefile, c.[red], 'd\\x1b.x', e.y, 2 others)"
    assert said in capsys.readouterr().out


def test_a_failed_file_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    failed = DocumentReport("/x/cut.pdf", "failed", error="The PDF file is damaged.")
    print_ingest(IngestReport([failed], 0.0))
    assert capsys.readouterr().err.count("cut.pdf") == 1
