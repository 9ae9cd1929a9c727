"""The phrases by which talk and requests are recognised: one set per language, in `nodes/local/data`."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from domain.text.languages import LANGUAGES, Language

_DATA = Path(__file__).parent / "data"

_SEPARATORS = r"[\s,.!?;:…¡¿)(-]*"
_END = re.compile(r"(?<![\s.!?…:;)])[\s.!?…:;)]++$")


@dataclass(frozen=True, slots=True)
class TalkPhrases:
    """Small talk of one language. `nodes/local/data/en/talk.toml` says what each is for."""

    address: re.Pattern[str]
    speakers: re.Pattern[str]
    goes_on: re.Pattern[str]
    asks: re.Pattern[str]
    lasting: re.Pattern[str]
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
    parts: tuple[re.Pattern[str], ...]


@cache
def read_follow_ups(language: Language) -> FollowUpPhrases:
    """Read how questions lean on their conversation in a language."""
    data = _read(language, "followup")
    parts = tuple(_compile(rf"\b(?:{text})\b") for text in data.pop("parts").values())
    ordinals = tuple(map(_compile, data.pop("ordinals")))
    return FollowUpPhrases(**{name: _compile(text) for name, text in data.items()}, parts=parts, ordinals=ordinals)


@cache
def read_talk(language: Language) -> TalkPhrases:
    """Read the small talk of a language."""
    data = _read(language, "talk")
    del data["courtesies"]
    replies = {name: _compile(text) for name, text in data.pop("replies").items()}
    conversational = tuple(map(_compile, data.pop("conversational")))
    return TalkPhrases(
        **{name: _compile(text) for name, text in data.items()}, conversational=conversational, replies=replies
    )


@cache
def read_courtesies() -> re.Pattern[str]:
    """Return the pattern of one courtesy, in any language, with the punctuation after it."""
    texts = [text for language in LANGUAGES for text in _read(language, "talk")["courtesies"]]
    return _compile(rf"(?:{'|'.join(texts)})(?=$|[\s,.!?;:…)-]){_SEPARATORS}")


@cache
def read_library(language: Language) -> LibraryPhrases:
    """Read the requests about the library in a language."""
    data = _read(language, "library")
    return LibraryPhrases(
        list=tuple(map(_compile, data["list"])),
        summary=tuple(map(_compile, data["summary"])),
        articles=_compile(data["articles"]),
        pointers=_compile(data["pointers"]),
    )


@cache
def read_questions(language: Language) -> Mapping[str, re.Pattern[str]]:
    """Read how questions of a language say what they ask for, by kind. `nodes/local/data/en/questions.toml` says what
    each is for."""
    return {name: _compile(text) for name, text in _read(language, "questions").items()}


def match_whole(patterns: Iterable[re.Pattern[str]], text: str) -> re.Match[str] | None:
    """Return the match of the first pattern that matches all of the text but its final punctuation."""
    bare = _END.sub("", text.replace("’", "'"))
    return next((match for pattern in patterns if (match := pattern.fullmatch(bare))), None)


def _read(language: Language, name: str) -> dict[str, Any]:
    return tomllib.loads((_DATA / language / f"{name}.toml").read_text(encoding="utf-8"))


def _compile(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)
