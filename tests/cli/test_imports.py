"""Commands that only read start quickly, because they import no models, no graph and no server."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.adapters.embedded import open_servers

HEAVY = {
    "numpy", "onnxruntime", "tokenizers", "langgraph", "langchain_core", "openai", "langsmith", "fastapi", "uvicorn",
    "alembic", "sqlalchemy", "procrastinate", "redis", "PIL", "httpx", "graphs", "nodes",
}  # fmt: skip
"""Packages that such a command does without. Each takes at least 50 ms of CPU to import."""

MAIN = """
import sys, json
import app.cli
try: app.cli.main()
finally: print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})), file=sys.stderr)
"""


def list_imports(home: Path, *arguments: str) -> set[str]:
    environment = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        env=environment | {"HOME": str(home), "ASKGRAPH_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "command",
    [
        ("documents",),
        ("documents", "--json"),
        ("ingestions",),
        ("costs",),
        ("runs", "--where", "retries > 0"),
        ("costs", "--by", "model", "--json"),
        ("graph",),
        ("graph", "--format", "mermaid"),
    ],
    ids=" ".join,
)
async def test_a_command_that_reads_imports_nothing_heavy(
    command: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.getbasetemp() / "imports"
    home.mkdir(exist_ok=True)
    async with open_servers(home, redis=False):
        # The first one prepares the database, with Alembic.
        list_imports(home, "documents")
        assert not list_imports(home, *command) & HEAVY
