"""Every regular expression that reads text from outside takes time in proportion to the text.

All patterns of `domain`, `nodes` and `app.ingest` are collected, and tried on long repetitions of the characters that
they name. Phrases of `domain/languages` are left out: they read questions, which have 2,000 characters at most. A
linear pattern reads 2,000 characters in microseconds; a quadratic one takes several milliseconds, and 64 times as long
for eight times as many.
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
LENGTH = 2000
SUSPECT_SECONDS = 0.0005
"""Time for `LENGTH` characters from which a pattern is looked at more closely."""
FIRST_LONGER, FIRST_GROWTH = 4, 7
"""A first look at a suspect, of single uses: the growth of the time with four times the length. A linear pattern's is 4,
a quadratic one's 16. It excuses nearly all suspects, which would take a minute to measure well."""
LONGER, GROWTH = 8, 23
"""The same for what the first look does not excuse; a linear pattern's growth is 8, a quadratic one's 64."""
ENOUGH_SECONDS = 0.05
"""CPU time of which the share of one use is taken: some machines count in steps of 0.01."""


def _step_of_the_clock() -> float:
    began = time.thread_time()
    while (now := time.thread_time()) == began:
        pass
    return now - began


COUNTS_FINELY = _step_of_the_clock() < SUSPECT_SECONDS / 20
"""Whether the CPU time of a single use tells something."""
GIVEN_UP_SECONDS = 1.0
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


def measure(use: Callable[[Any], Any], pattern: "re.Pattern[Any]", piece: str, length: int, *, well: bool) -> float:
    """Return the time that the pattern takes for a repetition and an end that it does not match: of a single use, or,
    measured well, the CPU time of several."""
    text: Any = piece * (length // len(piece)) + "\0"
    text = text.encode() if isinstance(pattern.pattern, bytes) else text
    signal.setitimer(signal.ITIMER_VIRTUAL, GIVEN_UP_SECONDS)
    try:
        if not well:
            clock = time.thread_time if COUNTS_FINELY else time.perf_counter
            began = clock()
            use(text)
            return clock() - began
        used, times, began = 0.0, 0, time.thread_time()
        while used < ENOUGH_SECONDS:
            use(text)
            times += 1
            used = time.thread_time() - began
        return used / times
    except TimeoutError:
        return GIVEN_UP_SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def grows_too_fast(pattern: "re.Pattern[Any]", method: str) -> str | None:
    """Return a piece whose repetition takes more than linear time; None where there is none."""
    use = getattr(pattern, method)
    for piece in list_pieces(pattern):
        if _grows(use, pattern, piece):
            return piece
    return None


def _grows(use: Callable[[Any], Any], pattern: "re.Pattern[Any]", piece: str) -> bool:
    def take(length: int, *, well: bool = False) -> float:
        return measure(use, pattern, piece, length, well=well)

    if (short := take(LENGTH)) <= SUSPECT_SECONDS or short >= GIVEN_UP_SECONDS:
        return short >= GIVEN_UP_SECONDS
    if COUNTS_FINELY:
        # The first use may have been slowed down by something else, which would excuse a slow pattern.
        short = min(short, take(LENGTH), take(LENGTH))
        # One that is given up is not excused: its time says nothing of how it grows.
        if short <= SUSPECT_SECONDS or take(FIRST_LONGER * LENGTH) <= min(FIRST_GROWTH * short, GIVEN_UP_SECONDS / 2):
            return False
    short, long = (min(take(length, well=True) for _ in range(2)) for length in (LENGTH, LONGER * LENGTH))
    return long >= GIVEN_UP_SECONDS or long > GROWTH * short


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
        if (piece := grows_too_fast(pattern, method)) is not None
    }
    assert not slow, "\n".join(sorted(slow))


@pytest.mark.parametrize("text", [r"\s*x", r"\s*(?:x|\sy)\s+", r"(?:a|a)*$", r'"(?:[^"\\]|\\.)*"', r"\[[^\]]*\]"])
def test_a_slow_pattern_is_found(alarm: None, text: str) -> None:
    # On a busy machine the first, short measurement may last too long, and hide the growth.
    assert any(grows_too_fast(re.compile(text), "search") for _ in range(3))
