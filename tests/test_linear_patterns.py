"""Every regular expression that reads text from outside takes time in proportion to the text.

All patterns of `domain`, `nodes` and `app.ingest` are collected, and tried on long repetitions of the characters that
they name. Phrases of `domain/languages` are left out: they read questions, which have 2,000 characters at most. A
linear pattern reads 2,000 characters in microseconds, a quadratic one in milliseconds, and 60,000 in seconds.
"""

import ast
import importlib
import itertools
import re
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MATCHED_IN_PLACE = frozenset({"domain.library.where._QUOTED"})
"""Patterns that are handed to a function which tries them at one place only."""
PACKAGES = ("domain", "nodes", "app/ingest")
SHORT, LONG = 2_000, 60_000
SUSPECT_SECONDS = 0.001
"""Time for `SHORT` characters from which a pattern is looked at more closely."""
MOST_SECONDS = 0.4
"""CPU time for `LONG` ones: four times that of the slowest linear pattern, a fifth of that of the fastest quadratic one
among those below."""
MOST_PIECES = 8
METHODS = frozenset({"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})

Use = tuple[str, "re.Pattern[Any]", str]
"""Where a pattern stands, the pattern, and the method it is used with: match, fullmatch or search."""


def collect() -> dict[tuple[Any, int, str], Use]:
    """Return each pattern once for each way in which it is used."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in files}
    methods: dict[tuple[Path, str], set[str]] = {}
    found: dict[tuple[Any, int, str], Use] = {}

    def add(place: str, pattern: "re.Pattern[Any]", method: str) -> None:
        method = method if method in ("match", "fullmatch") else "search"
        found.setdefault((pattern.pattern, pattern.flags, method), (place, pattern, method))

    for file, tree in trees.items():
        for call in ast.walk(tree):
            match call:
                case ast.Call(ast.Attribute(ast.Name("re"), str() as method), [ast.Constant(text), *_]) if (
                    method in METHODS
                ):
                    flags = re.IGNORECASE if "IGNORECASE" in ast.dump(call) else re.NOFLAG
                    add(f"{file.relative_to(ROOT)}:{call.lineno}", re.compile(text, flags), method)
                case ast.Attribute(ast.Name(name), str() as method) if method in METHODS:
                    methods.setdefault((file, name), set()).add(method)
    for file in files:
        name = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for variable, value in vars(importlib.import_module(name)).items():
            for pattern in list_patterns(value):
                place = f"{name}.{variable}"
                handed = {"match" if place in MATCHED_IN_PLACE else "search"}
                for method in methods.get((file, variable), handed):
                    add(place, pattern, method)
    return found


def list_patterns(value: Any) -> Iterator["re.Pattern[Any]"]:
    """Yield the patterns in a value, which may be a collection of them."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from list_patterns(each)
    elif isinstance(value, Mapping):
        yield from list_patterns(list(value.values()))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from list_patterns([getattr(value, field.name) for field in fields(value)])


def list_characters(pattern: "re.Pattern[Any]") -> list[str]:
    """Return characters that the pattern names, one for each class: first those that are no letters."""
    found: dict[str, None] = dict.fromkeys(" \n")

    def walk(nodes: Any) -> None:
        for kind, value in nodes:
            if kind is constants.LITERAL:
                found[chr(value)] = None
            elif kind is constants.RANGE:
                found[chr(value[0])] = None
            elif kind is constants.CATEGORY:
                found[{"SPACE": "\t", "DIGIT": "1"}.get(str(value).rpartition("_")[2], "a")] = None
            elif kind is constants.IN:
                walk(value)
            elif kind in (constants.NOT_LITERAL, constants.ANY):
                found["a"] = None
            elif kind is constants.BRANCH:
                for branch in value[1]:
                    walk(branch)
            elif isinstance(value, tuple | parser.SubPattern):
                walk_parts(value)

    def walk_parts(value: Any) -> None:
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, parser.SubPattern):
                walk(part)

    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    walk(
        parser.parse(
            text, pattern.flags & ~re.UNICODE & ~re.LOCALE if isinstance(pattern.pattern, bytes) else pattern.flags
        )
    )
    return sorted(found, key=lambda character: (character.isalpha(), character))


def list_pieces(pattern: "re.Pattern[Any]") -> Iterator[str]:
    """Yield what is repeated: single characters, and pairs of the first of them. The order within a pair does not matter:
    repeated, both orders give the same text but for its ends."""
    characters = list_characters(pattern)
    letters = [character for character in characters if character.isalpha()][:3]
    others = [character for character in characters if not character.isalpha()]
    yield from others
    yield from letters
    yield from ("".join(pair) for pair in itertools.combinations([*others[:MOST_PIECES], *letters[:1]], 2))


def find_slow_piece(pattern: "re.Pattern[Any]", method: str) -> str | None:
    """Return a piece whose repetition, with an end that the pattern does not match, takes it too long; None where there
    is none."""
    use = getattr(pattern, method)
    for piece in list_pieces(pattern):
        short, long = (repeat(piece, length, pattern.pattern) for length in (SHORT, LONG))
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        try:
            if all(is_suspect(use, short) for _ in range(3)):
                use(long)
        except TimeoutError:
            return piece
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def is_suspect(use: Callable[[Any], Any], text: Any) -> bool:
    began = time.perf_counter()
    use(text)
    return time.perf_counter() - began > SUSPECT_SECONDS


def repeat(piece: str, length: int, pattern: str | bytes) -> Any:
    text = piece * (length // len(piece)) + "\0"
    return text.encode() if isinstance(pattern, bytes) else text


@pytest.fixture
def alarm() -> Iterator[None]:
    """A pattern that takes too long raises `TimeoutError`."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    yield
    signal.signal(signal.SIGVTALRM, before)


def test_patterns_take_linear_time(alarm: None) -> None:
    uses = collect()
    assert len(uses) > 140
    slow = {
        f"{place} ({method}) on {piece!r}"
        for place, pattern, method in uses.values()
        if (piece := find_slow_piece(pattern, method)) is not None
    }
    assert not slow, "\n".join(sorted(slow))


@pytest.mark.parametrize("text", [r"\s*x", r"\s*(?:x|\sy)\s+", r"(?:a|a)*$", r'"(?:[^"\\]|\\.)*"', r"\[[^\]]*\]"])
def test_a_slow_pattern_is_found(alarm: None, text: str) -> None:
    assert find_slow_piece(re.compile(text), "search")
