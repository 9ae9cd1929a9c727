"""Runs commands as users run them: from another directory, with a home of their own. Most run within this process,
because a new one takes a second to import everything."""

import json
import logging
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.cli import cli

ALONE = {"ASKGRAPH_LOAD_SAMPLES": "false"}

ASKGRAPH = Path(sys.executable).with_name("askgraph")


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return kept | {"HOME": str(home), "ASKGRAPH_HOME": str(home / "data")}


@dataclass
class Said:
    """The output of a command."""

    stdout: str
    stderr: str


def run_installed(home: Path, *arguments: str, code: int = 0) -> Said:
    """Run the installed command in a new process."""
    done = subprocess.run(
        [ASKGRAPH, *arguments],
        env=environment(home),
        cwd=home,
        capture_output=True,
        timeout=120,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == code, done.stderr
    return Said(done.stdout, done.stderr)


def run(home: Path, *arguments: str, code: int = 0, **variables: str) -> Said:
    """Run the command within this process."""
    level = logging.getLogger("askgraph").level
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        # `--server` sets the variable, which the next command must not find.
        named = {"ASKGRAPH_SERVER": None, **environment(home), **variables}
        done = CliRunner(env=named).invoke(cli, arguments, catch_exceptions=False)
    logging.getLogger("askgraph").setLevel(level)
    assert done.exit_code == code, done.stderr
    return Said(done.stdout, done.stderr)


def read(said: Said) -> Any:
    return json.loads(said.stdout)
