"""The help, which imports no command."""

import subprocess
import sys
from importlib import import_module

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from app.cli import ROOMS, cli

COMMANDS = {name: summary for room in ROOMS.values() for name, summary in room.COMMANDS.items()}
MODULES = {name: f"{room.__name__}.{name}" for room in ROOMS.values() for name in room.COMMANDS}
SAY_IMPORTS = "import sys, app.cli\ntry: app.cli.main()\nfinally: print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = get_command(import_module(MODULES[name]).cli)
    assert command.help is not None
    assert command.help.replace("\n", " ").startswith(COMMANDS[name])


def test_help_lists_every_command_and_imports_none() -> None:
    command = [sys.executable, "-c", SAY_IMPORTS, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, imported = done.stdout, set(done.stderr.split())
    for name, summary in COMMANDS.items():
        assert f"  {name} " in said
        assert summary.split()[0] in said
    assert not imported & (set(MODULES.values()) | {"rich", "pydantic", "asyncio", "psycopg", "langgraph"})


def test_a_mistyped_command_is_corrected() -> None:
    done = CliRunner().invoke(cli, ["documnets"])
    assert done.exit_code == 2
    assert "Did you mean 'documents'" in done.stderr


def test_a_former_command_names_its_heir() -> None:
    assert "use `askgraph delete ID --everywhere`" in CliRunner().invoke(cli, ["forget"]).stderr
