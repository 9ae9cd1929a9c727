from domain.text.surrogates import replace_surrogates


def test_halves_of_surrogate_pairs_become_question_marks() -> None:
    assert replace_surrogates("a\ud800b\udfffc") == "a?b?c"
    assert replace_surrogates("Zoë 東京 😀") == "Zoë 東京 😀"
