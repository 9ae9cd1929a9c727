"""Reads the examples of docs/clients.md, which tests run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def read_example(heading: str, language: str = "python") -> str:
    """Return the only example in this language below the heading."""
    _, _, section = PAGE.read_text("utf-8").partition(f"## {heading}\n")
    [example] = re.findall(rf"```{language}\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    return str(example)
