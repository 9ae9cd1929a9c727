import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ingest.metadata.front_matter import split_front_matter
from domain.errors import MetadataError
from domain.library.metadata import check_metadata, read_pairs


def test_front_matter_is_read_as_flat_metadata() -> None:
    text = """---
title: "Leave policy"
team: hr
year: 2024
version: 1.10
code: "007"
date: 2024-05-01
draft: false
empty:
tags: [leave, people]
regions:
  - eu
  - us
author:
  name: Ms. Keller
summary: >
  Two lines
  become one.
---
# Leave
"""
    metadata, rest = split_front_matter(text)
    assert rest == "# Leave\n"
    assert metadata == {
        "title": "Leave policy",
        "team": "hr",
        "year": 2024,
        "version": 1.1,
        "code": "007",
        "date": "2024-05-01",
        "draft": False,
        "tags": ["leave", "people"],
        "regions": ["eu", "us"],
        "author.name": "Ms. Keller",
        "summary": "Two lines become one.",
    }


def test_a_block_that_is_no_yaml_is_read_line_by_line() -> None:
    metadata, rest = split_front_matter("---\ntitle: SAT-1: Manual\nteam: 'legal'\n---\nText.")
    assert metadata == {"title": "SAT-1: Manual", "team": "legal"}
    assert rest == "Text."


@pytest.mark.parametrize(
    "text",
    [
        "# Title\n\n---\nteam: hr\n---\n",
        "---\nJust a sentence between two lines.\n---\nMore.",
        "---\n- a\n- b\n---\nMore.",
        "---\nteam: hr\nand no end",
        "---",
        "----\nteam: hr\n---\n",
        "",
    ],
)
def test_what_is_no_front_matter_stays_in_the_text(text: str) -> None:
    assert split_front_matter(text) == ({}, text)


def test_values_that_cannot_be_stored_are_left_out() -> None:
    long = "x" * 501
    metadata, _ = split_front_matter(f"---\nteam: hr\nlong: {long}\nhuge: 1{'0' * 40}\ndeep: {{a: {{b: 1}}}}\n---\n")
    assert metadata == {"team": "hr", "huge": "1" + "0" * 40, "deep.a.b": 1}


HOSTILE = {
    "spaces": "---\ntitle: a" + " " * 34_000 + "b\n---",
    "spaces without end": "---\ntitle: a" + " " * 60_000,
    "brackets": "---\na: " + "[" * 60_000 + "\n---\n",
    "dashes": "---\n" + "- " * 30_000 + "\n---\n",
    "keys": "---\n" + "".join(f"k{n}: 1\n" for n in range(6000)) + "---\n",
    "nested": "---\n" + "".join(" " * n + "a:\n" for n in range(300)) + "---\n",
    "aliases": "---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n---\n",
    "colons": "---\n" + ":" * 60_000 + "\n---\n",
    "quotes": "---\na: '" + "'" * 60_000 + "\n---\n",
    "complex keys": "---\n" + "? " * 20_000 + "\n---\n",
    "tags": "---\na: " + "!t " * 20_000 + "\n---\n",
    "newlines": "\n" * 5_000_000 + "---\na: 1\n---\n",
    "long": "---\n" + "a: b\n" * 1_000_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_front_matter_takes_bounded_time(text: str) -> None:
    started = time.process_time()
    split_front_matter(text)
    assert time.process_time() - started < 1.0


@given(st.text("---\n:[]{}'\"&*!|>?,# ab1", max_size=200))
def test_any_text_is_read(text: str) -> None:
    metadata, _ = split_front_matter(f"---\n{text}\n---\nrest")
    assert check_metadata(metadata) == metadata


def test_pairs_of_the_command_line() -> None:
    assert read_pairs(["team=legal", "year=2024", "tag=a", "tag=b", "open=true", "eq=a=b"]) == {
        "team": "legal",
        "year": 2024,
        "tag": ["a", "b"],
        "open": True,
        "eq": "a=b",
    }
    with pytest.raises(MetadataError, match="Write KEY=VALUE"):
        read_pairs(["team"])
    with pytest.raises(MetadataError, match="no metadata key"):
        read_pairs(["=legal"])


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([], "has to be a JSON object"),
        ({"a": None}, "'a' needs text"),
        ({"a": []}, "'a' needs text"),
        ({"a": [1, None]}, "'a' needs text"),
        ({"a": "x" * 501}, "'a' needs text"),
        ({"a": "\0"}, "'a' needs text"),
        ({"a": float("inf")}, "'a' needs text"),
        ({"a" * 65: 1}, "no metadata key"),
        ({f"k{n}": 1 for n in range(65)}, "64 metadata keys"),
        ({"a": {"b": {"c": {"d": {"e": 1}}}}}, "'a.b.c.d' needs text"),
    ],
)
def test_metadata_that_cannot_be_stored_is_refused(value: object, problem: str) -> None:
    with pytest.raises(MetadataError) as refused:
        check_metadata(value)
    assert problem in refused.value.message
