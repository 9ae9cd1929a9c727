"""Retrieval metrics compared with those of trec_eval, which ir-measures wraps."""

import random

import ir_measures
import pytest
from ir_measures import RR, R, nDCG

from app.evaluation.ranking import find_ndcg, find_recall, find_reciprocal_rank

OURS = {R: find_recall, RR: find_reciprocal_rank, nDCG: find_ndcg}


@pytest.mark.parametrize("depth", [1, 5, 10])
def test_metrics_equal_those_of_trec_eval(depth: int) -> None:
    chance = random.Random(depth)
    documents = [f"d{number}" for number in range(40)]
    for _ in range(100):
        grades = {doc: chance.randint(0, 4) for doc in chance.sample(documents, chance.choice((1, 2, 5, 14)))}
        grades[chance.choice(documents)] = 2
        ranking = chance.sample(documents, chance.choice((1, 3, 20, 40)))
        run = {"q": {doc: -float(rank) for rank, doc in enumerate(ranking)}}
        for value in ir_measures.iter_calc([measure @ depth for measure in OURS], {"q": grades}, run):
            ours = next(find for measure, find in OURS.items() if value.measure == measure @ depth)
            assert ours(grades, ranking, depth) == pytest.approx(value.value, abs=1e-12)


def test_an_empty_ranking_scores_zero() -> None:
    assert [find({"a": 1}, [], 10) for find in OURS.values()] == [0, 0, 0]
