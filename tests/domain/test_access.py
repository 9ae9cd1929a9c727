import pytest

from domain.errors import Forbidden, UnknownWorkspace
from domain.people.access import OWNER, Caller


def test_the_owner_may_do_everything_everywhere() -> None:
    OWNER.require("admin")
    assert OWNER.enter("anything") == "anything"
    assert OWNER.enter(None) == "default"


def test_a_workspace_that_is_not_the_callers_does_not_exist() -> None:
    caller = Caller("team", frozenset({"legal", "hr"}))
    assert caller.enter("legal") == "legal"
    for workspace in ("sales", None):
        with pytest.raises(UnknownWorkspace):
            caller.enter(workspace)


def test_who_has_one_workspace_need_not_name_it() -> None:
    assert Caller("team", frozenset({"legal"})).enter(None) == "legal"


def test_a_caller_of_no_workspace_enters_none() -> None:
    with pytest.raises(UnknownWorkspace):
        Caller("nobody", frozenset()).enter(None)


def test_a_missing_right_is_named() -> None:
    with pytest.raises(Forbidden, match="'ingest'"):
        Caller("reader", rights=frozenset({"ask"})).require("ingest")
