from domain.text.surrogates import join_surrogates, replace_surrogates


def test_halves_of_surrogate_pairs_become_question_marks() -> None:
    assert replace_surrogates("a\ud800b\udfffc") == "a?b?c"
    assert replace_surrogates("Zoë 東京 😀") == "Zoë 東京 😀"


def test_pairs_are_joined_and_lone_halves_are_marked() -> None:
    assert join_surrogates("a\ud83d\ude00b\ud800c") == "a😀b�c"
