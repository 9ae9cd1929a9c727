"""Runs scripts in tests/protocols/node, which use clients from npm."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent / "node"

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (FOLDER / "node_modules").exists(),
    reason="there is no node, or tests/install-node-clients.sh was not run",
)


async def run_node(script: str, *arguments: str) -> Any:
    """Run the script of this name, and return the JSON that it prints."""
    return json.loads(await run_code((FOLDER / script).read_text("utf-8"), *arguments))


async def run_code(code: str, *arguments: str) -> str:
    """Run a module, and return what it prints."""
    command = ["node", "--input-type=module", "-", *arguments]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, cwd=FOLDER, stdin=pipe, stdout=pipe, stderr=pipe)
    printed, complaints = await process.communicate(code.encode())
    assert process.returncode == 0, complaints.decode()
    return printed.decode()
