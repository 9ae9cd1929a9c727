import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import FilterError
from domain.library.where import (
    LARGEST_INTEGER,
    MAX_CHOICES,
    MAX_CONDITIONS,
    MAX_KEY,
    MAX_VALUE,
    MAX_WRITTEN,
    Condition,
    Where,
    is_key,
    read_value,
)

KEYS = st.one_of(
    st.from_regex(r"[a-z_][a-z0-9_.-]{0,8}", fullmatch=True), st.text(min_size=1, max_size=MAX_KEY).filter(is_key)
)
TEXTS = st.one_of(
    st.sampled_from(["legal", "2024", "true", "and", "in", "", "a b", 'say "hi"', "it's", "\\", "2024-05-01", "hr/"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
)
NUMBERS = st.one_of(
    st.integers(-LARGEST_INTEGER, LARGEST_INTEGER), st.floats(-LARGEST_INTEGER, LARGEST_INTEGER, allow_nan=False)
)
SCALARS = st.one_of(TEXTS, NUMBERS, st.booleans())
CONDITIONS = st.one_of(
    st.builds(Condition, KEYS, st.just("eq"), SCALARS),
    st.builds(Condition, KEYS, st.just("in"), st.lists(SCALARS, min_size=1, max_size=5).map(tuple)),
    st.builds(Condition, KEYS, st.sampled_from(["gt", "gte", "lt", "lte"]), st.one_of(TEXTS, NUMBERS)),
    st.builds(Condition, KEYS, st.just("prefix"), TEXTS),
)
FILTERS = st.lists(CONDITIONS, max_size=6, unique_by=lambda c: (c.key, c.operator)).map(Where.of)


@given(FILTERS.filter(bool))
def test_a_filter_is_read_back_from_its_text(where: Where) -> None:
    assert Where.parse(str(where)).to_json() == where.to_json()
    assert str(Where.parse(str(where))) == str(where)


@given(FILTERS)
def test_a_filter_is_read_back_from_its_json(where: Where) -> None:
    stored = json.loads(json.dumps(where.to_json()))
    assert Where.from_json(stored) == where
    assert json.dumps(Where.from_json(stored).to_json()) == json.dumps(where.to_json())


@given(st.lists(CONDITIONS, max_size=6, unique_by=lambda c: (c.key, c.operator)), st.randoms(use_true_random=False))
def test_the_order_of_conditions_does_not_matter(conditions: list[Condition], shuffling: random.Random) -> None:
    shuffled = conditions.copy()
    shuffling.shuffle(shuffled)
    assert json.dumps(Where.of(shuffled).to_json()) == json.dumps(Where.of(conditions).to_json())


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        where = Where.parse(text)
    except FilterError:
        return
    assert Where.parse(str(where)) == where


_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
)
_TESTS = st.dictionaries(st.sampled_from(["eq", "in", "gt", "prefix", "like"]), _JSON, max_size=3)


@given(st.one_of(_JSON, st.dictionaries(st.text(max_size=6), st.one_of(_JSON, _TESTS), max_size=4)))
def test_any_json_is_read_or_refused(value: object) -> None:
    try:
        where = Where.from_json(value)
    except FilterError:
        return
    assert Where.from_json(where.to_json()) == where


def test_the_forms_of_the_command_line_and_of_the_api_are_equal() -> None:
    written = Where.parse("team=legal and year>=2024 and year < 2026 AND region in (us, 'eu') and path^=hr/")
    assert written == Where.from_json(
        {
            "path": {"prefix": "hr/"},
            "region": {"in": ["eu", "us"]},
            "team": "legal",
            "year": {"gte": 2024, "lt": 2026.0},
        }
    )
    assert str(written) == "path^=hr/ and region in (eu, us) and team=legal and year>=2024 and year<2026"


def test_text_and_number_and_boolean_are_different_values() -> None:
    forms = [Where.parse(text) for text in ("x=1", 'x="1"', "x=true", 'x="true"')]
    assert len({json.dumps(where.to_json()) for where in forms}) == 4


@pytest.mark.parametrize(
    ("written", "value"),
    [("2024", 2024), ("-1.5", -1.5), ("007", "007"), ("true", True), ("True", "True"), ("2024-05-01", "2024-05-01"),
     ("9007199254740993", "9007199254740993"), ("1e-05", 1e-05), ("1.0", 1)],
)  # fmt: skip
def test_what_looks_like_a_number_is_one(written: str, value: object) -> None:
    assert read_value(written) == value
    assert type(read_value(written)) is type(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "at its end, a condition such as team=legal is expected"),
        ("team", "at its end, an operator is expected after 'team': =, in, >, >=, <, <= or ^="),
        ("team ~ legal", "at character 6 ('~ legal'), an operator is expected after 'team'"),
        ("team=", "at its end, a value is expected"),
        ("team=legal or team=hr", "at character 12 ('or team=hr'), `and` is expected. For one of several values"),
        ("team=legal affairs", "at character 12 ('affairs'), `and` is expected. A value with spaces"),
        ("team=legal and", "at its end, a condition such as team=legal is expected"),
        ("team in legal", "at character 9 ('legal'), '(' is expected"),
        ("team in (legal hr)", "at character 16 ('hr)'), a comma or a closing bracket is expected"),
        ("team in (legal", "at its end, a comma or a closing bracket is expected"),
        ("team in ()", "a value is expected"),
        ('team="legal', "the quote that begins here has no end"),
        (r'team="\q"', "unknown escape"),
        ("team=legal and team=hr", "it tests 'team' twice in the same way. For one of several values use `in`"),
        ("x=1 and x=true", "it tests 'x' twice"),
        ("year>=true", "a range over true and false"),
        ("path^=1", "a prefix that is not text"),
        (" and ".join(f"k{n}=1" for n in range(MAX_CONDITIONS + 1)), f"more than {MAX_CONDITIONS} conditions"),
        (f"x in ({','.join(map(str, range(MAX_CHOICES + 1)))})", f"more than {MAX_CHOICES} values"),
        (f"{'k' * (MAX_KEY + 1)}=1", "is no metadata key"),
        (f"k={'v' * (MAX_VALUE + 1)}", f"longer than {MAX_VALUE} characters"),
        ("x" * (MAX_WRITTEN + 1), f"longer than {MAX_WRITTEN:,} characters"),
    ],
)
def test_a_wrong_filter_is_refused_with_what_is_wrong_and_where(text: str, problem: str) -> None:
    with pytest.raises(FilterError) as refused:
        Where.parse(text)
    assert problem in refused.value.message


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "it has to be an object"),
        ({"team": None}, "'team' has a value that is neither text, a number, true nor false"),
        ({"team": ["legal"]}, "'team' has a value that is neither"),
        ({"team": {}}, "'team' has no test"),
        ({"team": {"like": "x"}}, "'team' has the test 'like', which does not exist. Use eq, in"),
        ({"team": {"in": "legal"}}, "'team' needs a list of at least one value"),
        ({"team": {"gte": [1]}}, "'team' has a list of values, which only `in` takes"),
        ({"team": {"in": [["x"]]}}, "'team' has a value that is neither"),
        ({"year": {"gte": float("nan")}}, "'year' has a number that is too large"),
        ({"year": 2**60}, "'year' has a number that is too large"),
        ({"a\0b": 1}, "is no metadata key"),
        ({"a": "\ud800"}, "'a' has a value that is not text"),
        ({" a": 1}, "is no metadata key"),
    ],
)
def test_wrong_json_is_refused_with_the_key_that_is_wrong(value: object, problem: str) -> None:
    with pytest.raises(FilterError) as refused:
        Where.from_json(value)
    assert problem in refused.value.message
