"""Commands that only read start quickly, because they import no models, no graph and no server."""

import json
import os
import subprocess
import sys
from pathlib import Path

from app.adapters.embedded import open_servers

HEAVY = {
    "numpy", "onnxruntime", "tokenizers", "langgraph", "langchain_core", "openai", "langsmith", "fastapi", "uvicorn",
    "sqlalchemy", "procrastinate", "redis", "PIL", "httpx", "graphs", "nodes",
}  # fmt: skip
"""Packages that such a command does without. Each takes at least 50 ms of CPU to import."""

MAIN = """
import sys, json
import app.cli
for command in json.loads(sys.argv[1]):
    sys.argv[1:] = command
    try: app.cli.main()
    except SystemExit as end: code = end.code
    print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]), file=sys.stderr, flush=True)
"""
"""Runs commands one after the other, and says after each one how it ended and what has been imported by then."""

COMMANDS = (
    ("documents",),
    ("documents", "--json"),
    ("documents", "--waiting"),
    ("costs",),
    ("runs", "--where", "retries > 0"),
    ("costs", "--by", "model", "--json"),
)


def list_imports(home: Path, *commands: tuple[str, ...]) -> list[set[str]]:
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, json.dumps(commands)],
        env=environment | {"HOME": str(home), "ASKGRAPH_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert [code for code, _ in said] == [0] * len(commands), done.stderr
    return [set(imported) for _, imported in said]


async def test_commands_that_read_import_nothing_heavy(tmp_path: Path) -> None:
    async with open_servers(tmp_path, redis=False):
        # The first command prepares the database.
        list_imports(tmp_path, COMMANDS[0])
        imported = list_imports(tmp_path, *COMMANDS)
    assert [(command, found & HEAVY) for command, found in zip(COMMANDS, imported, strict=True) if found & HEAVY] == []
