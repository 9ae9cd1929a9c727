"""Commits are bisected by real git. The code of each commit is a stand-in that prints what `askgraph test` would."""

import json
import subprocess
from pathlib import Path

import pytest

from app.workbench.compare.bisection import Repetition, bisect
from domain.errors import InputError

SAME = {"identical": True, "differences": [], "problem": None}
OTHER_STATE = {"identical": False, "differences": ['+     "boxes": [],'], "problem": None}
OTHER_ANSWER = {
    "identical": False,
    "differences": ['-  "answer": "36 months"', '+  "answer": "3 years"'],
    "problem": None,
}
MISSED = {"identical": False, "differences": [], "problem": "The tape does not hold this.\nMore."}
BROKEN = "raise RuntimeError('broken')"


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@host.example")
    return subprocess.run(
        ["git", "-C", folder, *who, *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def commit_all(folder: Path, *programs: object) -> list[str]:
    """Make a repository with a commit for each of these, which is what its program prints, or the program."""
    program = folder / "app" / "cli" / "__main__.py"
    program.parent.mkdir(parents=True)
    # Without them, the installed packages of these names would come first.
    for package in (program.parent, program.parent.parent):
        (package / "__init__.py").touch()
    git(folder, "init", "--quiet")
    commits = []
    for number, printed in enumerate(programs):
        text = printed if isinstance(printed, str) else f"print({json.dumps({'bug.askgraph': printed})!r})"
        program.write_text(f"{text}  # {number}\n")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", f"Change {number}")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits


def test_the_first_commit_that_answers_otherwise_is_found(tmp_path: Path) -> None:
    commits = commit_all(tmp_path, SAME, BROKEN, OTHER_STATE, OTHER_ANSWER, OTHER_ANSWER, MISSED)
    heard: list[Repetition] = []
    found = bisect(tmp_path, tmp_path / "bug.askgraph", commits[0], "HEAD", heard.append)
    assert found.first == [commits[3]]
    assert heard == found.repetitions
    assert (heard[0].subject, heard[0].verdict, heard[0].reason) == ("Change 5", "bad", "The tape does not hold this.")
    assert {each.commit: each.verdict for each in heard}[commits[3]] == "bad"
    assert git(tmp_path, "worktree", "list").count("\n") == 0


def test_commits_that_cannot_say_it_are_named_together(tmp_path: Path) -> None:
    commits = commit_all(tmp_path, SAME, BROKEN, OTHER_ANSWER)
    found = bisect(tmp_path, tmp_path / "bug.askgraph", commits[0], "HEAD", lambda each: None)
    assert set(found.first) == set(commits[1:])
    assert [each.reason for each in found.repetitions if each.verdict == "skip"] == ["RuntimeError: broken"]


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [
        ("HEAD", "HEAD", "answers otherwise, and must answer as"),
        ("HEAD~1", "HEAD~1", "must answer otherwise"),
        ("x", "HEAD", "git"),
    ],
)
def test_ends_that_do_not_fit_are_refused(tmp_path: Path, good: str, bad: str, says: str) -> None:
    commit_all(tmp_path, SAME, OTHER_ANSWER)
    with pytest.raises(InputError, match=says):
        bisect(tmp_path, tmp_path / "bug.askgraph", good, bad, lambda each: None)


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="needs git"):
        bisect(tmp_path, tmp_path / "bug.askgraph", "HEAD~1", "HEAD", lambda each: None)
