"""Version 4 of the state: a turn knows the documents and sections that it cites."""

from typing import Any

from app.history.state_upgrades import UPGRADES
from domain.state import STATE_VERSION, read_turns


def make_turn(run_id: str) -> dict[str, Any]:
    return {
        "run_id": run_id, "question": "How long?", "standalone_question": "How long?", "route": "needs_retrieval",
        "answer": "36 months. [1]", "documents": ["Handbook"], "outcome": "answered",
    }  # fmt: skip


def upgrade(values: dict[str, Any]) -> dict[str, Any]:
    for step in UPGRADES[3]:
        values = step(values)
    return values


def test_the_last_turn_learns_what_it_cites_and_turns_before_it_stay() -> None:
    citations = [
        {"document_id": "a", "heading_path": ["Handbook", "Warranty"]},
        {"document_id": "b", "heading_path": []},
        {"document_id": "a", "heading_path": ["Handbook", "Warranty"]},
    ]
    old = {"run_id": "2", "turns": [make_turn("1"), make_turn("2")], "citations": citations}
    first, last = upgrade(old)["turns"]
    assert first == make_turn("1")
    assert (last["document_ids"], last["headings"]) == (["a", "b"], [["Handbook", "Warranty"], []])
    assert len(read_turns([first, last])) == 2
    assert STATE_VERSION == 4


def test_a_state_in_the_middle_of_its_run_stays_as_it_is() -> None:
    old = {"run_id": "2", "turns": [make_turn("1")], "citations": []}
    assert upgrade(old) == old
    assert upgrade({"run_id": "2"}) == {"run_id": "2"}
