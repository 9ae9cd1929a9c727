import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import cli
from app.evaluation.sets import EvaluationSet, SetError, read_sets


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(row if isinstance(row, str) else f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def read(path: Path, workspace: str | None = "default", limit: int | None = None) -> EvaluationSet:
    [each] = read_sets([str(path)], workspace=workspace, limit=limit)
    return each


QUESTION = {"id": "q1", "question": "How long?", "answerable": True, "relevant": [{"doc": "d", "grade": 2}]}


def test_a_file_of_ones_own_needs_a_workspace(tmp_path: Path) -> None:
    other = {**QUESTION, "id": "q2", "relevant": ["d", {"doc": "e", "page": 3}]}
    file = write(tmp_path / "ours.jsonl", "\ufeff", QUESTION, other)
    with pytest.raises(SetError, match="--workspace NAME"):
        read(file, workspace=None)
    each = read(file)
    assert (each.name, each.is_practical) == ("ours", False)
    assert [question.grades for question in each.questions] == [{"d": 2}, {"d": 1, "e, page 3": 1}]
    assert len(read(file, limit=1).questions) == 1


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([QUESTION, "{oops\n"], r"queries\.jsonl, line 2: .*JSON"),
        ([{"id": "q1"}], r"line 1: question: Field required"),
        ([{**QUESTION, "relevant": [{"doc": "d", "grade": "high"}]}], r"line 1: relevant\.0\.grade"),
        (["\n", QUESTION, QUESTION], r"line 3: the id 'q1' stands on an earlier line"),
        (["\n"], r"holds no question"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, rows: list[Any], problem: str) -> None:
    write(tmp_path / "queries.jsonl", *rows)
    with pytest.raises(SetError, match=problem):
        read(tmp_path)


def test_what_is_no_set(tmp_path: Path) -> None:
    with pytest.raises(SetError, match="holds no queries"):
        read(tmp_path)
    (tmp_path / "queries.jsonl").write_bytes(b"\xff\xff")
    with pytest.raises(SetError, match="cannot be read"):
        read(tmp_path)


def test_names_that_would_be_mixed_up(tmp_path: Path) -> None:
    sets = [write(tmp_path / folder / "set" / "queries.jsonl", QUESTION).parent for folder in ("one", "two")]
    with pytest.raises(SetError, match="Two sets are called 'set'"):
        read_sets(list(map(str, sets)), workspace="default", limit=None)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nothing-here"], "There is no set 'nothing-here'"),
        (["@desk", "ours.jsonl"], "Ask sets that a workspace keeps by themselves."),
        (["nothing-here", "--profile", "brilliant"], "There is no profile 'brilliant'"),
        (["nothing-here", "--workspace", "no/such"], "cannot be the name of a workspace"),
        (["ours.jsonl", "-w", "w", "--out", __file__], "Reports cannot be written to"),
        (["ours.jsonl", "-w", "w", "--out", "/proc/nowhere"], "Reports cannot be written to /proc/nowhere: No such"),
    ],
)
def test_the_command_refuses_before_it_starts_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], problem: str
) -> None:
    monkeypatch.setenv("ASKGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "ours.jsonl", QUESTION)
    done = CliRunner().invoke(cli, ["eval", *arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "home").exists()
