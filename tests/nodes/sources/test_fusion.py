import pytest

from domain.documents import Candidate, Match
from domain.profile import RetrievalKnobs
from nodes.sources.fusion import EXAMPLES, blend, choose_examples, favour, fuse, prefer, reorder, weigh_by_rank


def leg(**scores: float) -> list[Match]:
    return [Match(chunk_id, f"document of {chunk_id}", score) for chunk_id, score in scores.items()]


def ids(candidates: list[Candidate]) -> list[str]:
    return [candidate["chunk_id"] for candidate in candidates]


DENSE = leg(a=0.9, b=0.5, c=0.4, d=0.39)
LEXICAL = leg(b=12.0, e=11.0, a=3.0)


@pytest.mark.parametrize("fusion", ["standardised", "rrf", "weighted"])
def test_what_both_legs_rank_high_comes_first(fusion: str) -> None:
    candidates = fuse(DENSE, LEXICAL, RetrievalKnobs.model_validate({"fusion": fusion}))
    assert set(ids(candidates)) == {"a", "b", "c", "d", "e"}
    assert set(ids(candidates)[:2]) == {"a", "b"}
    scores = [candidate["score"] for candidate in candidates]
    assert scores == sorted(scores, reverse=True)


def test_legs_scores_are_kept_beside_the_fused_one() -> None:
    found = {c["chunk_id"]: c for c in fuse(DENSE, LEXICAL, RetrievalKnobs())}
    assert (found["b"]["dense"], found["b"]["lexical"]) == (0.5, 12.0)
    assert (found["c"]["dense"], found["c"]["lexical"]) == (0.4, None)
    assert (found["e"]["dense"], found["e"]["lexical"]) == (None, 11.0)
    assert found["e"]["document_id"] == "document of e"


def test_the_lexical_weight_decides_between_the_legs() -> None:
    dense, lexical = leg(a=0.9, b=0.5, c=0.1), leg(b=9.0, a=5.0, c=1.0)
    assert ids(fuse(dense, lexical, RetrievalKnobs(lexical_weight=0.1)))[0] == "a"
    assert ids(fuse(dense, lexical, RetrievalKnobs(lexical_weight=3)))[0] == "b"
    assert ids(fuse(dense, lexical, RetrievalKnobs(fusion="weighted", dense_weight=0.9)))[0] == "a"
    assert ids(fuse(dense, lexical, RetrievalKnobs(fusion="weighted", dense_weight=0.1)))[0] == "b"


def test_absence_from_a_leg_counts_as_its_lowest_score() -> None:
    found = {c["chunk_id"]: c["score"] for c in fuse(leg(a=0.8, b=0.4), leg(c=5.0), RetrievalKnobs())}
    assert found["b"] == pytest.approx(found["c"])


@pytest.mark.parametrize("fusion", ["standardised", "rrf", "weighted", "dense"])
def test_one_leg_alone_keeps_its_order(fusion: str) -> None:
    knobs = RetrievalKnobs.model_validate({"fusion": fusion})
    assert ids(fuse([], LEXICAL, knobs)) == ["b", "e", "a"]
    assert ids(fuse(DENSE, LEXICAL if fusion == "dense" else [], knobs)) == ["a", "b", "c", "d"]
    assert fuse([], [], knobs) == []


def test_candidates_known_to_be_unlike_are_dropped() -> None:
    assert set(ids(fuse(DENSE, LEXICAL, RetrievalKnobs(similarity_threshold=0.45)))) == {"a", "b", "e"}


def test_relevance_is_a_probability_that_follows_both_scores() -> None:
    candidates = fuse(DENSE, LEXICAL, RetrievalKnobs())
    relevance = blend(candidates, [0.8] * len(candidates))
    assert relevance == sorted(relevance, reverse=True)
    assert all(0 < value < 1 for value in relevance)
    last_is_best = blend(candidates, [*[0.3] * (len(candidates) - 1), 0.95])
    assert max(last_is_best) == last_is_best[-1]


def test_relevance_compares_questions() -> None:
    """Standardising alone would give the best of every list the same score."""
    candidates = fuse(DENSE, LEXICAL, RetrievalKnobs())
    assert blend(candidates, [0.9, 0.6, 0.5, 0.5, 0.5])[0] > blend(candidates, [0.5, 0.2, 0.1, 0.1, 0.1])[0] + 0.3
    near = fuse(leg(a=0.85, b=0.3, c=0.3), [], RetrievalKnobs())
    far = fuse(leg(a=0.25, b=0.1, c=0.1), [], RetrievalKnobs())
    assert blend(near, None)[0] > blend(far, None)[0] + 0.2


def test_relevance_without_a_dense_leg() -> None:
    relevance = blend(fuse([], LEXICAL, RetrievalKnobs()), None)
    assert relevance == sorted(relevance, reverse=True)
    assert blend([], None) == []
    [alone] = blend(fuse(leg(a=0.7), [], RetrievalKnobs()), None)
    assert 0 < alone < 1


def test_a_small_library_is_not_held_against_the_answer() -> None:
    few, many = leg(a=0.8, b=0.3, c=0.2), leg(a=0.8, **{f"other{n}": 0.3 - n / 100 for n in range(19)})
    best_of_few = blend(fuse(few, [], RetrievalKnobs()), [0.65, 0.3, 0.3])[0]
    best_of_many = blend(fuse(many, [], RetrievalKnobs()), [0.65, *[0.3] * 19])[0]
    assert best_of_few == pytest.approx(best_of_many, abs=0.1)


def test_examples_are_the_most_relevant_by_their_odds() -> None:
    examples = choose_examples(list("abcdefg"), [0.1, 0.75, 0.2, 0.5, 0.3, 0.25, 0.05])
    assert list(examples) == ["b", "d", "e", "f", "c"]
    assert len(examples) == EXAMPLES
    assert sum(examples.values()) == pytest.approx(1)
    assert examples["b"] / examples["d"] == pytest.approx(3)
    assert choose_examples(["a"], [0.01]) == {"a": 1}


def test_what_is_related_moves_up_and_no_value_changes() -> None:
    relevance = [0.5, 0.45, 0.1, 0.08]
    moved = reorder(relevance, [0.0, 9.0, 0.0, 0.1])
    assert moved == pytest.approx([0.45, 0.5, 0.1, 0.08])
    assert reorder(relevance, [1.0, 1.0, 1.0, 1.0]) == pytest.approx(relevance)
    assert reorder([0.9, 0.1], [0.0, 1.0]) == pytest.approx([0.9, 0.1])


def test_candidates_far_down_do_not_change_the_relevance_of_the_best() -> None:
    scores = {f"c{n}": 0.8 - n / 50 for n in range(40)}
    candidates = fuse(leg(**scores), [], RetrievalKnobs())
    rerank = [0.6 - n / 100 for n in range(40)]
    assert blend(candidates, rerank)[:20] == pytest.approx(blend(candidates[:20], rerank[:20]))


def test_a_score_at_the_threshold_is_kept() -> None:
    fused = fuse(leg(a=0.5, b=0.25), [], RetrievalKnobs(similarity_threshold=0.5))
    assert ids(fused) == ["a"]
    assert fused[0]["relevance"] is None


def test_of_equals_the_first_stays_first() -> None:
    many = [0.5] * 40
    assert reorder(many, many) == many
    ranked = reorder([0.9, *[0.5] * 40], [0.0, *[0.0] * 40])
    assert ranked == [0.9, *[0.5] * 40]


@pytest.mark.parametrize(
    ("scores", "mean"), [([0.6], 0.6), ([0.9, 0.3], 0.7), ([1.0, 0.5, 0.25], (1 + 0.25 + 0.25 / 3) / (11 / 6))]
)
def test_scores_are_weighed_by_the_inverse_of_their_rank(scores: list[float], mean: float) -> None:
    assert weigh_by_rank(scores) == pytest.approx(mean)


def test_what_the_conversation_is_about_is_among_the_candidates_and_loses_nothing_else() -> None:
    found = [make_candidate(name) for name in "abcd"]
    merged = prefer(found, [make_candidate(name) for name in "xby"])
    assert [candidate["chunk_id"] for candidate in merged] == ["a", "x", "b", "y", "c", "d"]
    assert prefer(found, []) == found
    assert [candidate["chunk_id"] for candidate in prefer([], found)] == ["a", "b", "c", "d"]


def test_a_document_in_focus_is_favoured_and_not_required() -> None:
    assert favour([0.5, 0.45, 0.3], ["a", "b", "b"], ["b"]) == pytest.approx([0.5, 0.53, 0.38])
    assert favour([0.5, 0.45], ["a", "b"], []) == [0.5, 0.45]


def make_candidate(name: str) -> Candidate:
    return Candidate(chunk_id=name, document_id=name, score=0.0, dense=None, lexical=None, relevance=None)
