"""The one form that a scope travels in."""

from domain.library.where import EVERYTHING, Where
from domain.scope import Scope


def test_documents_are_in_order_and_each_once() -> None:
    assert Scope.within("w", ["b", "a", "b"]).document_ids == ("a", "b")
    assert Scope("w", ("b", "a")) == Scope("w", ("a", "b"))
    assert Scope.within("w").document_ids is None
    assert Scope.within("w", []).document_ids == ()


def test_a_scope_survives_json() -> None:
    for scope in (
        Scope("w"),
        Scope("w", ()),
        Scope("w", ("a", "b")),
        Scope("w", None, Where.parse("year>=2024")),
        Scope("w", ("a",), Where.parse("team=legal")),
        Scope.within("w", groups=["b", "a"]),
        Scope.within("w", groups=[]),
    ):
        assert Scope.from_json(scope.to_json()) == scope


def test_a_filter_is_absent_where_there_is_none() -> None:
    assert Scope("w").to_json() == {"workspace_id": "w", "document_ids": None}
    assert Scope.from_json({"workspace_id": "w"}) == Scope("w", None, EVERYTHING)
    assert Scope.from_json({"workspace_id": "w", "where": {}}).where is EVERYTHING
