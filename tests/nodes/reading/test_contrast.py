"""Questions that depart from the sentence that they repeat."""

import pytest

from nodes.reading.contrast import find_contradiction, find_nearest

SENTENCE = "The northern gate of the old harbour opens before sunrise and is guarded by two soldiers."


@pytest.mark.parametrize(
    "question",
    [
        "When does the southern gate of the old harbour open?",
        "Who guards the northern gate of the new harbour?",
        "By whom is the northern gate of the harbour not guarded?",
        "Which gate of the old harbour opens after sunrise?",
    ],
)
def test_the_opposite_of_a_word_is_found(question: str) -> None:
    assert find_contradiction(question, [SENTENCE]) == 1


@pytest.mark.parametrize(
    "question",
    [
        "When does the northern gate of the old harbour open?",
        "Is the northern gate of the old harbour guarded by no soldiers?",
        "Does the southern gate of the old harbour open before sunrise?",
        "Which southern towns had a church and a gate?",
        "Who guarded the gate, which opens before sunrise?",
        "Who starred in Never Cry Wolf at the harbour?",
        "What?",
    ],
)
def test_what_departs_in_nothing_or_is_about_another_matter_is_left_alone(question: str) -> None:
    assert find_contradiction(question, [SENTENCE]) < 1


@pytest.mark.parametrize(
    ("question", "sentence", "departs"),
    [
        ("Which damage is not covered?", "Water damage is not covered.", False),
        ("Which damage is not covered?", "Water damage is covered.", True),
        ("How long is the warranty, and what is not covered?", "The warranty lasts 36 months for stations.", False),
        (
            "How many months does the warranty for stations not last?",
            "The warranty lasts 36 months for stations.",
            True,
        ),
        ("Why can't the readiness probe reach my app?", "Fastify listens on the interface of the probe's host.", False),
    ],
)
def test_a_denial_that_the_sentence_lacks_departs_from_it(question: str, sentence: str, departs: bool) -> None:
    assert find_contradiction(question, [sentence]) == departs
    assert find_contradiction(question, []) == 0


def test_meaningful_words_decide_which_sentence_is_nearest() -> None:
    question = "What is the time of the tide?"
    sentences = ["It is of the kind.", "The tide turns by the hour given.", "Eels swim."]
    assert find_nearest(question, sentences) == sentences[1]
