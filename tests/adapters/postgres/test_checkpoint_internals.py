"""`PackedSaver` builds on private names of LangGraph's packages. These tests fail, and say why, when a release changes
one of them; conformance and behaviour are tested in `test_checkpoints`."""

import inspect
from importlib.metadata import version
from types import ModuleType

import pytest
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from app.adapters.postgres.checkpoints import saver

ADVICE = "Adapt app/adapters/postgres/checkpoints/saver.py before you raise the pin in pyproject.toml."


def describe_versions() -> str:
    names = ("langgraph-checkpoint", "langgraph-checkpoint-postgres")
    return ", ".join(f"{name} {version(name)}" for name in names)


@pytest.mark.parametrize(
    ("method", "name", "why"),
    [
        ("aget_tuple", "SELECT_SQL", "PackedSaver replaces the statement, to read writes from packs"),
        ("alist", "SELECT_SQL", "PackedSaver replaces the statement, to read writes from packs"),
        ("aget_tuple", "_load_checkpoint_tuple", "PackedSaver overrides the method, to read packs"),
        ("alist", "_load_checkpoint_tuple", "PackedSaver overrides the method, to read packs"),
        ("_cursor", "lock", "PackedSaver replaces the lock, which would let one statement run at a time"),
    ],
)
def test_methods_of_the_base_class_use_what_we_override(method: str, name: str, why: str) -> None:
    body = inspect.unwrap(getattr(AsyncPostgresSaver, method)).__code__
    assert name in body.co_names, (
        f"AsyncPostgresSaver.{method} no longer uses {name} ({describe_versions()}): {why}. {ADVICE}"
    )


def test_an_overridden_method_takes_the_same_arguments() -> None:
    for name in ("aput", "aput_writes", "aget_tuple", "alist", "adelete_thread", "aprune", "_load_checkpoint_tuple"):
        theirs = inspect.signature(getattr(AsyncPostgresSaver, name)).parameters
        ours = inspect.signature(getattr(saver.PackedSaver, name)).parameters
        assert list(theirs) == list(ours), (
            f"AsyncPostgresSaver.{name} takes other arguments ({describe_versions()}). {ADVICE}"
        )


def test_our_statement_returns_the_columns_that_the_base_class_reads() -> None:
    wanted = (
        "thread_id",
        "checkpoint",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "metadata",
        "channel_values",
        "pending_writes",
    )
    for statement in (AsyncPostgresSaver.SELECT_SQL, saver.PackedSaver.SELECT_SQL):
        words = set(statement.replace(",", " ").split())
        assert words >= set(wanted), f"{describe_versions()}: {ADVICE}"
    assert len(AsyncPostgresSaver.MIGRATIONS) == 10, (
        f"LangGraph has migrated its tables ({describe_versions()}). {ADVICE}"
    )


def test_ids_continue_after_the_latest_one_of_a_process_whose_clock_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(ids, ModuleType)
    message = f"Ids of checkpoints are made differently ({describe_versions()}). {ADVICE}"
    assert hasattr(ids, "_last_v6_timestamp"), message
    here = ids.uuid6()
    assert ids._last_v6_timestamp == here.time, message
    monkeypatch.setattr(ids, "_last_v6_timestamp", here.time + 36_000_000_000)
    there = ids.uuid6()
    monkeypatch.setattr(ids, "_last_v6_timestamp", here.time)
    assert ids.uuid6() < there, message
    saver._advance_ids_beyond(str(there))
    assert ids.uuid6() > there, message
