import pytest

from domain.outcome import find_claimed, judge_answer
from domain.state import REMEMBERED_TURNS, add_costs, blank_question, read_turns, remember
from tests.sources import make_turn


def test_a_run_that_answers_again_replaces_its_own_turn() -> None:
    turns = remember(
        [make_turn(run_id="a", answer="cut"), make_turn(run_id="b")], make_turn(run_id="a", answer="whole")
    )
    assert [(turn["run_id"], turn["answer"]) for turn in turns] == [("b", "24 months."), ("a", "whole")]


def test_the_oldest_turns_are_forgotten() -> None:
    turns = [make_turn(run_id=str(number)) for number in range(REMEMBERED_TURNS)]
    kept = remember(turns, make_turn(run_id="new"))
    assert len(kept) == REMEMBERED_TURNS == 12
    assert (kept[0]["run_id"], kept[-1]["run_id"]) == ("1", "new")


def test_turns_of_another_shape_are_forgotten_and_the_others_read() -> None:
    turn = make_turn(run_id="a")
    damaged = {**turn, "documents": "Handbook"}
    stopped = {**turn, "run_id": "b", "stopped": True}
    assert read_turns([turn, damaged, "text", None, stopped]) == [turn, stopped]
    # Nothing is made to fit: a tuple is no list.
    assert read_turns([{**turn, "documents": ("Handbook",)}]) == []


@pytest.mark.parametrize("value", [None, "turns", {"a": 1}, 7])
def test_turns_that_are_no_list_are_none(value: object) -> None:
    assert read_turns(value) == []


@pytest.mark.parametrize(
    ("costs", "total"), [([], 0), ([0.25, 0.5], 0.75), ([0.25, None], None), ([None], None), ([0.0], 0.0)]
)
def test_a_sum_with_an_unknown_price_is_unknown(costs: list[float | None], total: float | None) -> None:
    assert add_costs(costs) == total


def test_blank_questions_share_nothing() -> None:
    one, other = blank_question(), blank_question()
    for name, value in dict(one).items():
        if isinstance(value, list | dict):
            assert value is not dict(other)[name]


def test_reservations_make_a_caveat() -> None:
    assert judge_answer([]) == "answered"
    assert judge_answer([{"code": "uncited"}]) == "answered_with_caveat"
    assert find_claimed("0123456789", {"opening": 2, "closing": 3}) == (2, 7)
