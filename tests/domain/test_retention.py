from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.history.retention import Policy, parse_age

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("24h", timedelta(hours=24)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(weeks=2)),
        (" 90d ", timedelta(days=90)),
    ],
)
def test_ages_are_given_in_hours_days_or_weeks(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["3m", " 3m ", "soon", "", "7", "-7d", "7d 2h"])
def test_minutes_are_refused_as_an_age_because_they_may_mean_months(text: str) -> None:
    assert parse_age(text) is None


def test_a_policy_has_a_default_and_spans_by_workspace() -> None:
    policy = Policy.parse("90d, acme = 7d ,legal=keep")
    assert policy == Policy(timedelta(days=90), {"acme": timedelta(days=7), "legal": None})


def test_steps_have_an_age_of_their_own_everywhere() -> None:
    policy = replace(Policy.parse("90d,acme=7d,legal=keep"), steps_for=timedelta(days=30))
    assert policy.cut(NOW).steps == NOW - timedelta(days=30)
    assert Policy().cut(NOW).steps is None


def test_an_empty_policy_keeps_everything() -> None:
    assert Policy.parse("") == Policy.parse(" , ") == Policy()
    assert Policy.parse("keep").older_than is None


@pytest.mark.parametrize("text", ["90", "acme=", "7d,acme=3m"])
def test_a_policy_that_names_no_span_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=rf"(?s)'{text.rpartition(',')[2]}'.+(90d).*(acme=7d).*(keep)"):
        Policy.parse(text)


def test_spans_become_times_before_now() -> None:
    cuts = Policy.parse("90d,acme=7d,legal=keep").cut(NOW, "acme")
    assert cuts.default == NOW - timedelta(days=90)
    assert cuts.by_workspace == {"acme": NOW - timedelta(days=7), "legal": None}
    assert cuts.workspace_id == "acme"
    assert Policy().cut(NOW).workspace_id is None


def test_a_span_that_reaches_before_the_calendar_keeps_everything() -> None:
    assert Policy(timedelta(days=2_000_000)).cut(NOW).default is None
