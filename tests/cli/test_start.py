"""What is imported for the help and for commands that only read: nothing that takes long."""

import asyncio
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from app.adapters.embedded import open_servers
from app.cli import ROOMS, cli

COMMANDS = {name: summary for room in ROOMS.values() for name, summary in room.COMMANDS.items()}
MODULES = {name: f"{room.__name__}.{name}" for room in ROOMS.values() for name in room.COMMANDS}
HEAVY = {"numpy", "onnxruntime", "tokenizers", "langgraph", "langchain_core", "openai", "langsmith", "fastapi", "redis"}
SAY_IMPORTS = "import sys, app.cli\ntry: app.cli.main()\nfinally: print(*sys.modules, file=sys.stderr)"


def start(*arguments: str, home: Path | None = None) -> tuple[str, set[str]]:
    """Run a command. Returns its output, and what was imported for it."""
    environment = None if home is None else {"HOME": str(home), "ASKGRAPH_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", SAY_IMPORTS, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_is_the_first_sentence_of_the_help(name: str) -> None:
    command = get_command(import_module(MODULES[name]).cli)
    assert command.help is not None
    assert command.help.replace("\n", " ").startswith(COMMANDS[name])


def test_help_lists_every_command_and_imports_none() -> None:
    said, imported = start("--help")
    for name, summary in COMMANDS.items():
        assert f"  {name} " in said
        assert summary.split()[0] in said
    assert not imported & (set(MODULES.values()) | {"rich", "pydantic", "asyncio", "psycopg", "langgraph"})


async def test_a_command_that_reads_imports_nothing_heavy(tmp_path: Path) -> None:
    async with open_servers(tmp_path, redis=False):
        # The first command prepares the database.
        await asyncio.to_thread(start, "documents", home=tmp_path)
        for command in (["documents", "--json"], ["documents", "--waiting"], ["runs"], ["costs"]):
            _, imported = await asyncio.to_thread(start, *command, home=tmp_path)
            assert not imported & HEAVY, command


def test_a_mistyped_command_is_corrected() -> None:
    done = CliRunner().invoke(cli, ["documnets"])
    assert done.exit_code == 2
    assert "Did you mean 'documents'" in done.stderr
