"""Make askgraph/client.py: the client that blocks, from the one for asyncio.

python -m tests.client.generate
"""

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "askgraph"
TARGET = PACKAGE / "client.py"
HEADER = "# Generated from async_client.py by `python -m tests.client.generate`; do not edit.\n"

RULES = [
    (r"Sends what `askgraph.calls` describes\..*\"\"\"", 'Sends what `askgraph.calls` describes."""'),
    (r"Entering it with `async with` waits", "Making the object waits"),
    (r"An object belongs to one event loop", "An object may be used by several threads"),
    (r"# Client only: ", ""),
    (r"await asyncio\.to_thread\(([\w.]+)(?:, )?", r"\1("),
    (r"\basyncio\b", "time"),
    (r"\b(?:async|await) ", ""),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\b(?:Async(?=Client|Generator)|a(?=close\b|closing\b|read\b|iter_bytes\b))", ""),
]


def render() -> str:
    """Return the text of the file, as ruff sorts and formats it."""
    text = (PACKAGE / "async_client.py").read_text("utf-8")
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    for command in (["check", "--fix", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, check=True, encoding="utf-8").stdout
    return HEADER + text


if __name__ == "__main__":
    TARGET.write_text(render(), "utf-8")
