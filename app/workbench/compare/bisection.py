"""Finds the first commit under which a recorded run is answered otherwise: git chooses the commits, and each one's own
`askgraph test` repeats the run, in a working tree beside the repository."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from domain.errors import InputError

SECONDS = 300
"""Longest time of one repetition."""

Verdict = Literal["good", "bad", "skip"]

_CHANGED = re.compile(r'^[+-]\s*"(answer|outcome|code)":')
"""A line of a comparison that shows another answer, outcome or error."""
_FOUND = re.compile(r"^([0-9a-f]{40}) is the first bad commit", re.MULTILINE)
_FOUND_AMONG = re.compile(r"any of:\s+((?:[0-9a-f]{40}\s+)+)")


@dataclass(frozen=True, slots=True)
class Repetition:
    """What became of the run under one commit."""

    commit: str
    subject: str
    verdict: Verdict
    """`skip` where this commit cannot say it, because it cannot repeat the file."""
    reason: str


@dataclass(frozen=True, slots=True)
class Bisection:
    """Where the answer changed."""

    first: list[str]
    """The first commit that changes the answer; several where commits between them cannot say it."""
    repetitions: list[Repetition]


def bisect(repository: Path, file: Path, good: str, bad: str, report: Callable[[Repetition], None]) -> Bisection:
    """Find the first commit after `good`, up to `bad`, under which the run in the file is answered otherwise. `report`
    is called with each repetition.

    Raises `InputError` where there is no such repository or commit, where the run is answered otherwise under `good`,
    or as recorded under `bad`.
    """
    file = file.resolve()
    good, bad = (_git(repository, "rev-parse", "--verify", f"{name}^{{commit}}").strip() for name in (good, bad))
    repetitions: list[Repetition] = []
    with tempfile.TemporaryDirectory(prefix="askgraph-bisect-") as folder:
        tree = Path(folder) / "tree"
        _git(repository, "worktree", "add", "--detach", str(tree), bad)
        try:

            def repeat() -> Repetition:
                commit, subject = _git(tree, "show", "--no-patch", "--format=%H %s").strip().split(" ", 1)
                done = Repetition(commit, subject, *_repeat(tree, file))
                repetitions.append(done)
                report(done)
                return done

            _require(repeat(), "bad")
            _git(tree, "checkout", "--detach", good)
            _require(repeat(), "good")
            said = _git(tree, "bisect", "start", bad, good)
            while not (found := _FOUND.findall(said) or _list_found(said)):
                said = _git(tree, "bisect", repeat().verdict, ends=(0, 2))
        finally:
            _git(repository, "worktree", "remove", "--force", str(tree))
    return Bisection(found, repetitions)


def _require(done: Repetition, wanted: Verdict) -> None:
    if done.verdict != wanted:
        verdicts = {"good": "answers as recorded", "bad": "answers otherwise", "skip": "cannot repeat the run"}
        needed = "must answer as recorded" if wanted == "good" else "must answer otherwise"
        raise InputError(f"{done.commit[:12]} {verdicts[done.verdict]}, and {needed}: {done.reason or done.subject}.")


def _list_found(said: str) -> list[str]:
    among = _FOUND_AMONG.search(said)
    return among[1].split() if among else []


def _repeat(tree: Path, file: Path) -> tuple[Verdict, str]:
    """Repeat the file with the code in the tree. Returns the verdict, and why."""
    command = [sys.executable, "-m", "app.cli", "test", str(file), "--json"]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree)},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        [result] = json.loads(done.stdout).values()
        return _judge(result)
    except subprocess.TimeoutExpired:
        return "skip", f"it takes longer than {SECONDS} s"
    except (ValueError, KeyError, AttributeError):
        return "skip", (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]


def _judge(result: dict[str, Any]) -> tuple[Verdict, str]:
    """Judge by the answer: fields that a commit adds to the state, or times, change nothing for a reader."""
    if result["identical"]:
        return "good", ""
    if result["problem"]:
        return "bad", str(result["problem"]).splitlines()[0]
    changed = [line.strip() for line in result["differences"] if _CHANGED.match(line)]
    return ("bad", changed[-1]) if changed else ("good", "it differs, and answers the same")


def _git(folder: Path, *arguments: str, ends: tuple[int, ...] = (0,)) -> str:
    # What a hook of ours has set would lead git to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment | {"LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise InputError("bisect needs git, which is not installed here.") from error
    if done.returncode not in ends:
        raise InputError(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
