"""What a document's metadata may hold."""

from typing import Any

import pytest

from domain.errors import MetadataError
from domain.library.metadata import MAX_KEYS, check_metadata, read_pairs, select_metadata
from domain.library.where import MAX_CHOICES, MAX_KEY, MAX_VALUE


def test_metadata_is_made_flat() -> None:
    given = {"team": "legal", "year": 2024.0, "done": True, "author": {"name": "Lindqvist"}, "tags": ["a", "b"]}
    deep = {"a": {"b": {"c": {"d": 1}}}}
    flat = {"team": "legal", "year": 2024, "done": True, "author.name": "Lindqvist", "tags": ["a", "b"]}
    assert check_metadata(given) == flat
    assert select_metadata(given) == flat
    assert check_metadata({}) == {}
    assert check_metadata(deep) == {"a.b.c.d": 1}
    with pytest.raises(MetadataError):
        check_metadata({"e": deep})


@pytest.mark.parametrize(
    "given",
    [
        None,
        ["team"],
        {"": 1},
        {"k" * (MAX_KEY + 1): 1},
        {"a": "v" * (MAX_VALUE + 1)},
        {"a": None},
        {"a": float("nan")},
        {"a": ["x", None]},
        {"a": []},
        {"a": ["x"] * (MAX_CHOICES + 1)},
        {str(number): number for number in range(MAX_KEYS + 1)},
    ],
)
def test_what_cannot_be_stored_is_refused(given: object) -> None:
    with pytest.raises(MetadataError):
        check_metadata(given)


def test_what_cannot_be_stored_of_a_file_is_left_out() -> None:
    found: dict[str, Any] = {"ok": 1, "": 2, "none": None, "long": "v" * (MAX_VALUE + 1)}
    assert select_metadata(found) == {"ok": 1}
    many = {str(number): number for number in range(MAX_KEYS + 5)}
    assert select_metadata(many) == dict(list(many.items())[:MAX_KEYS])
    assert len(check_metadata(dict(list(many.items())[:MAX_KEYS]))) == MAX_KEYS


def test_pairs_are_read() -> None:
    assert read_pairs(["team=legal", " year = 2024 ", "tag=a", "tag=b", "x=a=b", "done=true"]) == {
        "team": "legal", "year": 2024, "tag": ["a", "b"], "x": "a=b", "done": True,
    }  # fmt: skip
    assert read_pairs([]) == {}
    with pytest.raises(MetadataError, match="'team' is no metadata"):
        read_pairs(["team"])


def test_the_longest_that_can_be_stored_is() -> None:
    longest = {"k" * MAX_KEY: "v" * MAX_VALUE, "many": [str(number) for number in range(MAX_CHOICES)]}
    assert check_metadata(longest) == longest
