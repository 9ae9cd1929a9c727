"""The phrases by which talk and requests are recognised: tables of each language's `reading.toml`.

The English files say what each is for. A list of texts is one pattern, which matches any of them.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from domain.state import Route
from domain.text.languages import LANGUAGES, Language, read_file

_EXAMPLES = Path(__file__).parent / "data" / "en" / "examples.toml"

_SEPARATORS = r"[\s,.!?;:…¡¿)(-]*"
_END = re.compile(r"(?<![\s.!?…:;)])[\s.!?…:;)]++$")


@cache
def read_phrases(language: Language, kind: str, table: str | None = None) -> Mapping[str, re.Pattern[str]]:
    """Read the phrases of a kind in a language: those of a table, or those outside of tables."""
    data = read_file(language, "reading")[kind]
    texts = {name: text for name, text in (data[table] if table else data).items() if not isinstance(text, dict)}
    return {
        name: re.compile(text if isinstance(text, str) else "|".join(text), re.IGNORECASE)
        for name, text in texts.items()
    }


@cache
def read_patterns(language: Language, kind: str, name: str) -> list[re.Pattern[str]]:
    """Return the patterns of one phrase, in the order in which they are tried."""
    return [re.compile(text, re.IGNORECASE) for text in read_file(language, "reading")[kind][name]]


@cache
def read_courtesies() -> re.Pattern[str]:
    """Return the pattern of one courtesy, in any language, with the punctuation after it."""
    texts = [text for language in LANGUAGES for text in read_file(language, "reading")["talk"]["courtesies"]]
    return re.compile(rf"(?:{'|'.join(texts)})(?=$|[\s,.!?;:…)-]){_SEPARATORS}", re.IGNORECASE)


@cache
def read_examples() -> list[tuple[Route, str, str]]:
    """Read examples of what people say: the way that it takes through the graph, its kind, and the text, in English."""
    return [
        (cast(Route, route), kind, text)
        for route, kinds in tomllib.loads(_EXAMPLES.read_text(encoding="utf-8")).items()
        for kind, texts in kinds.items()
        for text in texts.splitlines()
    ]


def match_whole(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the match of the pattern with all of the text but its final punctuation."""
    return pattern.fullmatch(_END.sub("", text.replace("’", "'")))
