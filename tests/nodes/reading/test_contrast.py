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


def test_what_the_sentence_denies_too_is_no_departure() -> None:
    assert find_contradiction("Which damage is not covered?", ["Water damage is not covered."]) == 0
    assert find_contradiction("Which damage is not covered?", ["Water damage is covered."]) == 1


def test_a_denial_in_another_part_of_the_question_counts_for_nothing() -> None:
    lasts = "The warranty lasts 36 months for stations."
    assert find_contradiction("How long is the warranty, and what is not covered?", [lasts]) == 0
    assert find_contradiction("How many months does the warranty for stations not last?", [lasts]) == 1


def test_a_denial_in_a_question_about_another_matter_counts_for_nothing() -> None:
    listens = "By default, Fastify listens on the loopback interface of the probe's host."
    assert find_contradiction("Why can't the readiness probe reach my app?", [listens]) == 0


def test_meaningful_words_decide_which_sentence_is_nearest() -> None:
    question = "What is the time of the tide?"
    sentences = ["It is of the kind.", "The tide turns by the hour given.", "Eels swim."]
    assert find_nearest(question, sentences) == sentences[1]


def test_without_sentences_nothing_departs() -> None:
    assert find_contradiction("Which gate is open?", []) == 0
