"""The phrases by which talk and requests are recognised: one set per language, in `nodes/local/data`."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from domain.state import Route
from domain.text.languages import LANGUAGES, Language

_DATA = Path(__file__).parent / "data"

_SEPARATORS = r"[\s,.!?;:…¡¿)(-]*"
_END = re.compile(r"(?<![\s.!?…:;)])[\s.!?…:;)]++$")


@dataclass(frozen=True, slots=True)
class TalkPhrases:
    """Small talk of one language. `nodes/local/data/en/talk.toml` says what each is for."""

    courtesies: tuple[re.Pattern[str], ...]
    address: re.Pattern[str]
    speakers: re.Pattern[str]
    asks: re.Pattern[str]
    action: re.Pattern[str]
    conversational: tuple[re.Pattern[str], ...]
    replies: Mapping[str, re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class LibraryPhrases:
    """Requests about the library itself in one language. `nodes/local/data/en/library.toml` says what each is for."""

    list: tuple[re.Pattern[str], ...]
    summary: tuple[re.Pattern[str], ...]
    articles: re.Pattern[str]
    pointers: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class FollowUpPhrases:
    """How a question leans on its conversation. `nodes/local/data/en/followup.toml` says what each is for."""

    pointers: re.Pattern[str]
    pronouns: re.Pattern[str]
    openers: re.Pattern[str]
    requests: re.Pattern[str]
    whole: re.Pattern[str]
    dangling: re.Pattern[str]
    measures: re.Pattern[str]
    ordinals: tuple[re.Pattern[str], ...]
    part: re.Pattern[str]


@cache
def read_talk(language: Language) -> TalkPhrases:
    """Read the small talk of a language."""
    return TalkPhrases(**_read(language, "talk"))


@cache
def read_library(language: Language) -> LibraryPhrases:
    """Read the requests about the library in a language."""
    return LibraryPhrases(**_read(language, "library"))


@cache
def read_follow_ups(language: Language) -> FollowUpPhrases:
    """Read how questions lean on their conversation in a language."""
    return FollowUpPhrases(**_read(language, "followup"))


@cache
def read_questions(language: Language) -> Mapping[str, re.Pattern[str]]:
    """Read how questions of a language say what they ask for, by kind. `nodes/local/data/en/questions.toml` says what
    each is for."""
    return _read(language, "questions")


@cache
def read_courtesies() -> re.Pattern[str]:
    """Return the pattern of one courtesy, in any language, with the punctuation after it."""
    texts = [courtesy.pattern for language in LANGUAGES for courtesy in read_talk(language).courtesies]
    return re.compile(rf"(?:{'|'.join(texts)})(?=$|[\s,.!?;:…)-]){_SEPARATORS}", re.IGNORECASE)


@cache
def read_examples() -> list[tuple[Route, str, str]]:
    """Read examples of what people say: the way that it takes through the graph, its kind, and the text, in English."""
    kinds = tomllib.loads((_DATA / "en" / "examples.toml").read_text(encoding="utf-8"))
    return [
        (cast(Route, route), kind, text)
        for route, each in kinds.items()
        for kind, texts in each.items()
        for text in texts.splitlines()
    ]


def match_whole(patterns: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """Return the match of the first pattern that matches all of the text but its final punctuation."""
    bare = _END.sub("", text.replace("’", "'"))
    return next((match for pattern in patterns if (match := pattern.fullmatch(bare))), None)


def _read(language: Language, name: str) -> dict[str, Any]:
    texts = tomllib.loads((_DATA / language / f"{name}.toml").read_text(encoding="utf-8"))
    return {entry: _compile(value) for entry, value in texts.items()}


def _compile(value: Any) -> Any:
    """Compile a text, or each of a list or a table of texts."""
    if isinstance(value, str):
        return re.compile(value, re.IGNORECASE)
    if isinstance(value, dict):
        return {name: _compile(each) for name, each in value.items()}
    return tuple(map(_compile, value))
