import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.evaluation.sets import SetError, read_sets


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(row if isinstance(row, str) else f"{json.dumps(row)}\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(folder: Path, **options: Any) -> Any:
    [each] = read_sets([str(folder)], Path("nowhere"), **{"workspace": None, "limit": None, **options})
    return each


QUESTION = {"id": "q1", "question": "How long?", "answerable": True, "relevant": [{"doc": "d", "grade": 2}]}
DOCUMENT = {"id": "d", "title": "D", "text": "Two years."}


def test_a_folder_of_packed_rows(tmp_path: Path) -> None:
    write(tmp_path / "small" / "corpus.jsonl.gz", DOCUMENT)
    write(tmp_path / "small" / "queries.jsonl.gz", QUESTION, {**QUESTION, "id": "q2", "relevant": ["d"]})
    each = read(tmp_path / "small")
    assert (each.name, each.kind, len(each.corpus)) == ("small", "questions", 1)
    assert [question.grades for question in each.questions] == [{"d": 2}, {"d": 1}]
    assert len(read(tmp_path / "small", limit=1).questions) == 1
    [named] = read_sets(["small"], tmp_path, workspace=None, limit=None)
    assert named.fingerprint == each.fingerprint


def test_kinds(tmp_path: Path) -> None:
    write(tmp_path / "r" / "queries.jsonl", {"id": "a", "question": "hi", "type": "meta"})
    assert read(tmp_path / "r").kind == "routing"


def test_a_file_of_ones_own_needs_a_workspace(tmp_path: Path) -> None:
    file = write(tmp_path / "ours.jsonl", {"id": "1", "question": "How long?"})
    with pytest.raises(SetError, match="--workspace NAME"):
        read(file)
    assert read(file, workspace="default").name == "ours"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([QUESTION, "{oops\n"], r"queries\.jsonl, line 2: .*JSON"),
        ([{"id": "q1"}], r"line 1: question: Field required"),
        ([{**QUESTION, "relevant": [{"doc": "d", "grade": "high"}]}], r"line 1: relevant\.0\.grade"),
        (["\n", QUESTION, QUESTION], r"line 3: the id 'q1' stands on an earlier line"),
        ([{**QUESTION, "relevant": ["elsewhere"]}], r"'q1' calls a document relevant .* 'elsewhere'"),
        ([{**QUESTION, "pdf": "manual"}], r"'q1' is about a PDF .* 'manual'"),
        (["\n"], r"holds no question"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, rows: list[Any], problem: str) -> None:
    write(tmp_path / "corpus.jsonl", DOCUMENT)
    write(tmp_path / "queries.jsonl", *rows)
    with pytest.raises(SetError, match=problem):
        read(tmp_path)


def test_a_mark_of_the_encoding_is_no_content(tmp_path: Path) -> None:
    file = tmp_path / "ours.jsonl"
    file.write_text(f"{json.dumps(QUESTION)}\n", "utf-8-sig")
    assert read(file, workspace="default").questions[0].id == "q1"


def test_a_corpus_without_documents(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", {"id": "q1", "question": "How long?"})
    write(tmp_path / "corpus.jsonl", "\n")
    with pytest.raises(SetError, match=r"corpus\.jsonl holds no document"):
        read(tmp_path)


def test_damaged_files(tmp_path: Path) -> None:
    (tmp_path / "queries.jsonl.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    with pytest.raises(SetError, match="cannot be read"):
        read(tmp_path)
    with pytest.raises(SetError, match="holds no queries"):
        read(write(tmp_path / "empty" / "corpus.jsonl", DOCUMENT).parent)


def test_pages_need_their_pdf(tmp_path: Path) -> None:
    (tmp_path / "pdfs").mkdir()
    write(tmp_path / "queries.jsonl", {**QUESTION, "pdf": "m"})
    write(tmp_path / "corpus.jsonl", DOCUMENT)
    with pytest.raises(SetError, match="does not say which page"):
        read(tmp_path)
    write(tmp_path / "corpus.jsonl", {**DOCUMENT, "metadata": {"pdf": "pdfs/m.pdf", "page": 1}})
    with pytest.raises(SetError, match="No such file"):
        read(tmp_path)
    (tmp_path / "pdfs" / "m.pdf").write_bytes(b"%PDF")
    assert list(read(tmp_path).pdfs) == ["pdfs/m.pdf"]


def test_names_that_would_be_mixed_up(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write(tmp_path / folder / "set" / "queries.jsonl", {"id": "a", "question": "hi", "type": "meta"})
    with pytest.raises(SetError, match="Two sets are called 'set'"):
        read_sets([str(tmp_path / f / "set") for f in ("one", "two")], tmp_path, workspace=None, limit=None)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing-here"], "There is no set 'nothing-here'"),
        (["nothing-here", "--profile", "brilliant"], "There is no profile 'brilliant'"),
        (["nothing-here", "--workspace", "no/such"], "cannot be the name of a workspace"),
        (["routing", "--out", __file__], "Reports cannot be written to"),
        (["routing", "--out", "/proc/nowhere"], "Reports cannot be written to /proc/nowhere: No such file"),
    ],
)
def test_the_command_refuses_before_it_starts_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], problem: str
) -> None:
    monkeypatch.setenv("ASKGRAPH_HOME", str(tmp_path / "home"))
    write(tmp_path / "routing" / "queries.jsonl", {"id": "a", "question": "hi", "type": "meta"})
    done = CliRunner().invoke(cli, ["eval", *arguments, "--bench", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "home").exists()
