"""Adding a format takes a reader and one line in the registry."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.ingest import formats
from app.ingest.files import find_files, load
from app.ingest.formats import FORMATS, Format, list_formats
from app.ingest.metadata.sidecars import read_sidecar
from app.ingest.reading import read_document
from domain.documents import DocumentReport
from domain.errors import MetadataError, UnreadableDocument, UnsupportedDocument

TOY = 'Format("TOY", ("toy",), ("text/toy",), "tests.ingest.toy_reader:read_toy", "a toy file")'
ROOT = Path(__file__).parents[2]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Format:
    made: Format = eval(TOY, {"Format": Format})
    monkeypatch.setattr(formats, "FORMATS", [*FORMATS, made])
    return made


def test_an_added_format_is_read_and_listed(toy: Format, tmp_path: Path) -> None:
    document = read_document("garden.toy", b"rain = 4 litres")
    assert (document.text, document.media_type) == ("rain is 4 litres", "text/toy")
    assert read_document("upload", b"rain = 4", media_type="text/toy; charset=utf-8").media_type == "text/toy"
    (tmp_path / "garden.toy").write_text("rain = 4 litres")
    (tmp_path / "sheet.xls").write_text("rain")
    assert find_files(tmp_path) == ([tmp_path / "garden.toy"], [tmp_path / "sheet.xls"])
    with pytest.raises(UnsupportedDocument, match=r"Supported formats: Markdown, .* and TOY"):
        read_document("sheet.xls", b"\0\1\2 rain")
    (tmp_path / "garden.toy").unlink()
    [report], _ = find_files(tmp_path)
    assert isinstance(report, DocumentReport)
    assert "and TOY" in (report.error or "")


def test_a_file_whose_name_tells_nothing_is_read_by_what_it_is(tmp_path: Path) -> None:
    manual = b".TH RAIN 1\n.SH NAME\nrain \\- falls\n"
    read = {"rlm_eap": b"rain = 4\n", "rain.1": manual, "Plan of 5.1_ May": b"Rain.", "LICENSE": b"%PDF-1.7\n"}
    for name, data in (read | {"tool": b"\x7fELF\0", "blob": b"\0\1\2", "rain.py": b"rain = 4"}).items():
        (tmp_path / name).write_bytes(data)
    found, passed_over = find_files(tmp_path)
    assert {path.name for path in found if isinstance(path, Path)} == read.keys()
    assert {path.name for path in passed_over} == {"tool", "blob", "rain.py"}
    assert read_document("rain.1", manual).media_type == "text/troff"
    # Who names a file means it.
    assert read_document("rain.py", b"rain = 4").text == "rain = 4"


def test_the_command_line_and_the_api_list_an_added_format() -> None:
    script = (
        f"from app.ingest.formats import FORMATS, Format\nFORMATS.append({TOY})\n"
        "import sys\nfrom fastapi import FastAPI\nfrom app.api.library.documents import writing\n"
        "app = FastAPI()\napp.include_router(writing)\nprint(app.openapi())\n"
        "from app.cli import main\nsys.argv = ['askgraph', 'ingest', '--help']\nmain()"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True, cwd=ROOT
    )
    described, _, helped = done.stdout.partition("Usage")
    for shown in (described, helped):
        assert "DocBook, OPML and TOY" in " ".join(shown.split())


def test_the_readme_lists_all_formats() -> None:
    assert list_formats() in (ROOT / "README.md").read_text()


def test_links_that_lead_out_of_a_folder_are_passed_over(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    (outside / "passwd").write_text('{"root": "x"}')
    (outside / "other.md").write_text("# Other")
    (folder / "own.md").write_text("# Own")
    (folder / "passwd.txt").symlink_to(outside / "passwd")
    (folder / "link").symlink_to(outside)
    (folder / "inside.md").symlink_to(folder / "own.md")
    assert set(find_files(folder)[0]) == {folder / "own.md"}
    assert find_files(folder)[1] == [folder / "passwd.txt"]
    (folder / "own.md.meta.json").symlink_to(outside / "passwd")
    with pytest.raises(MetadataError, match="leads out of its folder"):
        read_sidecar(folder / "own.md")
    # What takes a file's place after it was found is not read: a link, one above it, or a pipe.
    (folder / "sub").mkdir()
    for name in ("swapped.md", "sub/moved.md", "piped.md"):
        (folder / name).write_text("# Own")
        assert load(folder / name, 99) == b"# Own"
    (outside / "moved.md").write_text("# Other")
    for name in ("swapped.md", "piped.md"):
        (folder / name).unlink()
    (folder / "swapped.md").symlink_to(outside / "other.md")
    (folder / "sub").rename(folder / "before")
    (folder / "sub").symlink_to(outside)
    os.mkfifo(folder / "piped.md")
    for name in ("swapped.md", "sub/moved.md", "piped.md"):
        with pytest.raises(UnreadableDocument, match="Check the path"):
            load(folder / name, 99)
    # Who names the link itself means what it leads to.
    assert find_files(folder / "passwd.txt")[0] == [outside / "passwd"]
