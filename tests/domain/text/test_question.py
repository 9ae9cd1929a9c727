import pytest

from domain.errors import QuestionError
from domain.state import MAX_QUESTION
from domain.text.question import add_carried, clean_question, split_carried


@pytest.mark.parametrize(
    ("typed", "question"),
    [
        ("  How many\n\tdays?  ", "How many days?"),
        ("How\u00a0many\u2003days?", "How many days?"),
        ("a\x00b\x07c", "abc"),
        ("half a pair \ud800here", "half a pair here"),
        ("unassigned \u0378code", "unassigned code"),
        ("Zoë's naïve café, 東京?", "Zoë's naïve café, 東京?"),
        ("soft\u00adhyphen", "soft\u00adhyphen"),
        ("5", "5"),
    ],
)
def test_white_space_is_folded_and_control_characters_go(typed: str, question: str) -> None:
    assert clean_question(typed) == question


@pytest.mark.parametrize(
    ("typed", "problem"),
    [("", "empty"), (" \n\x00 ", "empty"), ("?!… —", "no words"), (None, "must be text"), (7, "must be text")],
)
def test_what_is_no_question_is_refused_with_a_reason(typed: object, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        clean_question(typed)  # type: ignore[arg-type]


def test_a_question_has_a_longest_length_after_cleaning() -> None:
    assert clean_question("a" * MAX_QUESTION + "  ") == "a" * MAX_QUESTION
    with pytest.raises(QuestionError, match=r"2,001 characters; at most 2,000"):
        clean_question("a" * (MAX_QUESTION + 1))


def test_words_of_the_conversation_are_put_behind_a_question_and_taken_off_again() -> None:
    carried = add_carried("How long is it valid?", ["warranty", "Lindenhof"])
    assert carried == "How long is it valid? (warranty Lindenhof)"
    assert split_carried(carried) == ("How long is it valid?", "warranty Lindenhof")
    assert add_carried("How long?", []) == "How long?"
    assert split_carried("How long (in days)") == ("How long (in days)", "")
