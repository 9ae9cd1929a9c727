"""`askgraph --help` and the import of commands."""

import subprocess
import sys
from importlib import import_module

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from app.cli import ROOMS, cli

COMMANDS = {name: summary for room in ROOMS.values() for name, summary in room.COMMANDS.items()}
MODULES = {name: f"{room.__name__}.{name}" for room in ROOMS.values() for name in room.COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = get_command(import_module(MODULES[name]).cli)
    assert command.help is not None
    assert command.help.replace("\n", " ").startswith(COMMANDS[name])


def test_help_lists_every_command_and_imports_none() -> None:
    code = "import sys, app.cli\ntry: app.cli.main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    for name, summary in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert summary.split()[0] in done.stdout
    imported = set(done.stderr.split())
    assert "app.cli.support.lazy_group" in imported
    assert not imported & set(MODULES.values())
    assert not imported & {"rich", "pydantic", "asyncio", "psycopg", "langgraph"}


def test_a_mistyped_command_is_corrected() -> None:
    done = CliRunner().invoke(cli, ["documnets"])
    assert done.exit_code == 2
    assert "Did you mean 'documents'" in done.stderr


def test_completion_knows_the_commands() -> None:
    assert list(get_command(cli).commands) == list(COMMANDS)  # type: ignore[attr-defined]
