"""A filter over document metadata, and the two forms in which people write it.

`Where` is what the rest of the code passes on. Its JSON form is the API's, the state's, the cache key's and the tape's;
its text form is the command line's.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from domain.errors import FilterError
from domain.people.names import spell_name

Scalar = str | int | float | bool
"""A value of a document's metadata."""

Operator = Literal["eq", "in", "gt", "gte", "lt", "lte", "prefix"]

PATH_KEY: Final = "path"
"""The key under which every document has its source, whatever its metadata says."""

MAX_CONDITIONS = 20
MAX_CHOICES = 100
"""Values of one `in`."""
MAX_KEY = 64
"""Characters of a metadata key."""
MAX_VALUE = 500
"""Characters of a metadata value that is text."""
MAX_WRITTEN = 20_000
"""Characters of a filter as text."""
LARGEST_INTEGER = 2**53
"""Integers beyond it are not exact in JSON."""

_SYMBOLS: Final[dict[Operator, str]] = {"eq": "=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<=", "prefix": "^="}
_OPERATORS: Final[dict[str, Operator]] = {**{symbol: name for name, symbol in _SYMBOLS.items()}, "==": "eq"}
_NAMES: Final[tuple[Operator, ...]] = get_args(Operator)


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


_KNOWN_TESTS: Final = _list(_NAMES)
_KNOWN_OPERATORS: Final = _list([_SYMBOLS.get(name, name) for name in _NAMES])


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """A test of one metadata key.

    `eq` and `in` compare values of the same type; ranges compare numbers with numbers and texts with texts, character
    by character, which orders ISO dates; `prefix` takes text. A key that holds several values passes if one does.
    """

    key: str
    operator: Operator
    value: Scalar | tuple[Scalar, ...]
    """A tuple for `in`, sorted and without repetitions; a single value otherwise."""

    # Compared as text, because True equals 1 in Python, and a filter for one must not be taken for the other.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        key = self.key if _BARE_KEY.fullmatch(self.key) else _quote(self.key)
        if isinstance(self.value, tuple):
            return f"{key} in ({', '.join(map(_write_value, self.value))})"
        return f"{key}{_SYMBOLS[self.operator]}{_write_value(self.value)}"


@dataclass(frozen=True, slots=True)
class Where:
    """A filter over document metadata: all conditions hold. Build it with `of`, `parse` or `from_json`, which check it
    and bring it into canonical order."""

    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.conditions)

    def __str__(self) -> str:
        """The filter as `parse` reads it."""
        return " and ".join(map(str, self.conditions))

    @classmethod
    def of(cls, conditions: Iterable[Condition]) -> "Where":
        """Check the conditions and bring them into canonical order. Raises `FilterError`."""
        checked: dict[tuple[str, Operator], Condition] = {}
        for condition in map(_check, conditions):
            place = (condition.key, condition.operator)
            if checked.setdefault(place, condition) != condition:
                raise _refuse(f"it tests {condition.key!r} twice in the same way. For one of several values use `in`")
            if len(checked) > MAX_CONDITIONS:
                raise _refuse(f"it has more than {MAX_CONDITIONS} conditions")
        return cls(tuple(checked[place] for place in sorted(checked)))

    @classmethod
    def parse(cls, text: str) -> "Where":
        """Read the form of the command line: `team=legal and year>=2024 and region in (eu, us) and path^=hr/`.

        Text in quotes is text; without, `2024` is a number and `true` a boolean. Raises `FilterError`, which says what
        is wrong and where.
        """
        if len(text) > MAX_WRITTEN:
            raise _refuse(f"it is longer than {MAX_WRITTEN:,} characters")
        return cls.of(_Parser(text).read_conditions())

    @classmethod
    def parse_alternatives(cls, text: str) -> tuple["Where", ...]:
        """Read the form of the command line with alternatives: `outcome=abstained and ms>500 or retries>0`. One of them
        has to hold; `and` binds more tightly than `or`. Raises `FilterError`."""
        if len(text) > MAX_WRITTEN:
            raise _refuse(f"it is longer than {MAX_WRITTEN:,} characters")
        alternatives = tuple(cls.of(conditions) for conditions in _Parser(text).read_alternatives())
        if len(alternatives) > MAX_CONDITIONS:
            raise _refuse(f"it has more than {MAX_CONDITIONS} alternatives")
        return alternatives

    @classmethod
    def parse_option(cls, text: str | None) -> "Where":
        """Read an optional filter: none filters nothing. Raises `FilterError`."""
        return EVERYTHING if text is None else cls.parse(text)

    @classmethod
    def from_json(cls, value: object) -> "Where":
        """Read the JSON form: `{"team": "legal", "year": {"gte": 2024}, "region": {"in": ["eu", "us"]}}`.

        Raises `FilterError`, which names the key that is wrong.
        """
        if not isinstance(value, Mapping):
            raise _refuse('it has to be an object such as {"team": "legal", "year": {"gte": 2024}}')
        return cls.of(_read_json(value))

    def to_json(self) -> dict[str, Any]:
        """The canonical JSON form, which `from_json` reads."""
        tests: dict[str, dict[str, Any]] = {}
        for condition in self.conditions:
            value = list(condition.value) if isinstance(condition.value, tuple) else condition.value
            tests.setdefault(condition.key, {})[condition.operator] = value
        return {key: test["eq"] if list(test) == ["eq"] else test for key, test in tests.items()}


EVERYTHING: Final = Where()


def read_value(written: str) -> Scalar:
    """A value as people write it without quotes: a number, `true`, `false`, or else text.

    What only looks like a number stays text: `007`, and integers that JSON cannot hold exactly.
    """
    if written in ("true", "false"):
        return written == "true"
    if _NUMBER.fullmatch(written):
        number = float(written) if "." in written or "e" in written else int(written)
        if abs(number) <= LARGEST_INTEGER:
            return _settle_number(number)
    return written


def _check(condition: Condition) -> Condition:
    """The condition in canonical form."""
    key, operator, value = condition.key, condition.operator, condition.value
    if not is_key(key):
        raise _refuse(f"{str(key)[:MAX_KEY]!r} is no metadata key. A key has 1 to {MAX_KEY} printable characters")
    if operator not in _NAMES:
        raise _refuse(f"{key!r} has the test {operator!r}, which does not exist. Use {_KNOWN_TESTS}")
    if operator == "in":
        if not isinstance(value, tuple) or not value:
            raise _refuse(f"{key!r} needs a list of at least one value after `in`")
        if len(value) > MAX_CHOICES:
            raise _refuse(f"{key!r} has more than {MAX_CHOICES} values after `in`")
        choices = {_sort_key(choice): choice for choice in (_check_scalar(key, each) for each in value)}
        return Condition(key, operator, tuple(choices[place] for place in sorted(choices)))
    if isinstance(value, tuple):
        raise _refuse(f"{key!r} has a list of values, which only `in` takes")
    value = _check_scalar(key, value)
    if operator == "prefix" and not isinstance(value, str):
        raise _refuse(f"{key!r} has a prefix that is not text. Put it in quotes")
    if operator not in ("eq", "prefix") and isinstance(value, bool):
        raise _refuse(f"{key!r} has a range over true and false. A range takes numbers or text")
    return Condition(key, operator, value)


def _check_scalar(key: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        if not is_text(value):
            raise _refuse(f"{key!r} has a value that is not text, or is longer than {MAX_VALUE} characters")
        return spell_name(value)
    if isinstance(value, int | float):
        if not abs(value) <= LARGEST_INTEGER:  # nor is NaN
            raise _refuse(f"{key!r} has a number that is too large")
        return _settle_number(value)
    raise _refuse(f"{key!r} has a value that is neither text, a number, true nor false")


def is_key(key: object) -> bool:
    """Return True for text that can be a metadata key: 1 to 64 printable characters, no space at either end."""
    return isinstance(key, str) and 0 < len(key) <= MAX_KEY and key.isprintable() and key == key.strip()


def is_text(value: str) -> bool:
    """Return True for text that can be a metadata value: of bounded length, and without what Postgres cannot store."""
    return len(value) <= MAX_VALUE and "\0" not in value and not _SURROGATE.search(value)


def _settle_number(number: float) -> int | float:
    """The number as an integer where it is one, so that 2024 and 2024.0 are the same."""
    return int(number) if number == int(number) else number


def _sort_key(value: Scalar) -> tuple[str, Any]:
    # By type first: True equals 1 in Python, and text does not compare with numbers.
    return ("boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"), value


def _read_json(value: Mapping[object, object]) -> Iterator[Condition]:
    for key, test in value.items():
        key = cast(str, key)
        if not isinstance(test, Mapping):
            yield Condition(key, "eq", cast(Scalar, test))
            continue
        if not test:
            raise _refuse(f"{str(key)[:MAX_KEY]!r} has no test. Use {_KNOWN_TESTS}")
        for operator, tested in test.items():
            if operator not in _NAMES:
                raise _refuse(
                    f"{str(key)[:MAX_KEY]!r} has the test {str(operator)[:20]!r}, which does not exist. "
                    f"Use {_KNOWN_TESTS}"
                )
            choices = tuple(tested) if isinstance(tested, list | tuple) else tested
            yield Condition(key, operator, cast("Scalar | tuple[Scalar, ...]", choices))


_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,30})?(?:e-[0-9]{1,3})?")
_BARE_KEY = re.compile(r"[^\W\d][\w.-]*")
_BARE_VALUE = re.compile(r"""[^\s,()"'=<>^]+""")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|' r"'[^']*'")
_SYMBOL = re.compile(r"\^=|>=|<=|==|=|>|<")
_WORD = re.compile(r"\w+")
_SPACE = re.compile(r"\s*")
_AND_ADVICE = "A value with spaces or special characters needs quotes"
_OR_ADVICE = "For one of several values of a key use `in`; other alternatives are not supported"


class _Parser:
    """Reads a filter from left to right, in linear time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = _end_of(_SPACE, text, 0)
        self._joint_at = 0
        """Where the last word between two conditions began."""

    def read_conditions(self) -> Iterator[Condition]:
        yield self._read_condition()
        while (joint := self._read_joint()) is not None:
            if joint == "or":
                raise self._refuse(self._joint_at, f"`and` is expected. {_OR_ADVICE}")
            yield self._read_condition()

    def read_alternatives(self) -> Iterator[list[Condition]]:
        conditions = [self._read_condition()]
        while (joint := self._read_joint()) is not None:
            if joint == "or":
                yield conditions
                conditions = []
            conditions.append(self._read_condition())
        yield conditions

    def _read_joint(self) -> str | None:
        """Take the word between two conditions; None at the end."""
        if self._at >= len(self._text):
            return None
        self._joint_at = self._at
        joint = (self._take(_WORD) or "").lower()
        if joint not in ("and", "or"):
            raise self._refuse(self._joint_at, f"`and` is expected. {_AND_ADVICE}")
        return joint

    def _read_condition(self) -> Condition:
        start = self._at
        key = self._take_quoted()
        if key is None:
            key = self._take(_BARE_KEY)
        if key is None:
            raise self._refuse(start, "a condition such as team=legal is expected")
        start = self._at
        if symbol := self._take(_SYMBOL):
            return Condition(key, _OPERATORS[symbol], self._read_value())
        if (word := self._take(_WORD)) is None or word.lower() != "in":
            raise self._refuse(start, f"an operator is expected after {key!r}: {_KNOWN_OPERATORS}")
        return Condition(key, "in", tuple(self._read_choices()))

    def _read_choices(self) -> Iterator[Scalar]:
        self._expect("(")
        yield self._read_value()
        while not self._accept(")"):
            if not self._accept(","):
                raise self._refuse(self._at, "a comma or a closing bracket is expected")
            yield self._read_value()

    def _read_value(self) -> Scalar:
        start = self._at
        if (quoted := self._take_quoted()) is not None:
            return quoted
        if (bare := self._take(_BARE_VALUE)) is None:
            raise self._refuse(start, "a value is expected. A value with special characters needs quotes")
        return read_value(bare)

    def _take_quoted(self) -> str | None:
        start = self._at
        if not self._text.startswith(('"', "'"), start):
            return None
        quoted = self._take(_QUOTED)
        if quoted is None:
            raise self._refuse(start, "the quote that begins here has no end")
        if quoted.startswith("'"):
            return quoted[1:-1]
        try:
            return cast(str, json.loads(quoted, strict=False))
        except ValueError as error:
            raise self._refuse(start, "the text in quotes has an unknown escape. Write a backslash twice") from error

    def _expect(self, character: str) -> None:
        if not self._accept(character):
            raise self._refuse(self._at, f"{character!r} is expected")

    def _accept(self, character: str) -> bool:
        found = self._text.startswith(character, self._at)
        if found:
            self._at = _end_of(_SPACE, self._text, self._at + 1)
        return found

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        """Take the text that matches here, and skip the spaces after it."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = _end_of(_SPACE, self._text, match.end())
        return match.group()

    def _refuse(self, at: int, problem: str) -> FilterError:
        where = "at its end" if at >= len(self._text) else f"at character {at + 1} ({self._text[at : at + 20]!r})"
        return _refuse(f"{where}, {problem}")


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _write_value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        is_bare = _BARE_VALUE.fullmatch(value) and isinstance(read_value(value), str)
        return value if is_bare else _quote(value)
    return repr(value)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _refuse(problem: str) -> FilterError:
    return FilterError(f"The filter cannot be used: {problem}.")
