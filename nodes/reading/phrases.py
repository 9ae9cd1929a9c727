"""The phrases by which talk and requests are recognised: one set per language, in `nodes/reading/data`.

The English files say what each is for. A list of texts is one pattern, which matches any of them.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from domain.state import Route
from domain.text.languages import LANGUAGES, Language

_DATA = Path(__file__).parent / "data"

_SEPARATORS = r"[\s,.!?;:…¡¿)(-]*"
_END = re.compile(r"(?<![\s.!?…:;)])[\s.!?…:;)]++$")


@cache
def read_phrases(language: Language, kind: str, table: str | None = None) -> Mapping[str, re.Pattern[str]]:
    """Read the phrases of a kind in a language: those of a table, or those outside of tables."""
    data = _read(language, kind)
    texts = {name: text for name, text in (data[table] if table else data).items() if not isinstance(text, dict)}
    return {
        name: re.compile(text if isinstance(text, str) else "|".join(text), re.IGNORECASE)
        for name, text in texts.items()
    }


@cache
def read_courtesies() -> re.Pattern[str]:
    """Return the pattern of one courtesy, in any language, with the punctuation after it."""
    texts = [text for language in LANGUAGES for text in _read(language, "talk")["courtesies"]]
    return re.compile(rf"(?:{'|'.join(texts)})(?=$|[\s,.!?;:…)-]){_SEPARATORS}", re.IGNORECASE)


@cache
def read_examples() -> list[tuple[Route, str, str]]:
    """Read examples of what people say: the way that it takes through the graph, its kind, and the text, in English."""
    return [
        (cast(Route, route), kind, text)
        for route, kinds in _read("en", "examples").items()
        for kind, texts in kinds.items()
        for text in texts.splitlines()
    ]


def match_whole(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the match of the pattern with all of the text but its final punctuation."""
    return pattern.fullmatch(_END.sub("", text.replace("’", "'")))


def _read(language: Language, kind: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / language / f"{kind}.toml").read_text(encoding="utf-8"))
