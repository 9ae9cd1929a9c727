"""docs/profiles.md lists every knob with its default."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.modes import PIPELINES
from domain.profile import MODES

PAGE = (Path(__file__).parent.parent / "docs" / "profiles.md").read_text("utf-8")


def list_knobs(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from list_knobs(value, f"{prefix}{name}.")
        elif prefix + name != "name":
            yield prefix + name, "none" if value is None else f"`{json.dumps(value)}`"


def test_every_knob_is_in_the_table_with_its_default() -> None:
    rows = re.findall(r"^\| `([\w.]+)` \| (.+?) \|", PAGE.partition("## Knobs")[2].partition("\n## ")[0], re.MULTILINE)
    assert rows == list(list_knobs(MODES["standard"].model_dump()))


def test_every_pipeline_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `([\w-]+)` \| [^|]+ \| [^|]*\|$", PAGE, re.MULTILINE)) >= {
        file.stem for file in PIPELINES.glob("*.toml")
    }
