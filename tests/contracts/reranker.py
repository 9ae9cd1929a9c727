"""Contract of every `Reranker`. An adapter's tests inherit from the class and provide the fixture `reranker`."""

import asyncio

import pytest

from domain.documents import Passage
from domain.ports.reranking import Reranker
from domain.scope import Scope
from nodes.context import Ledger

SCOPE = Scope("default")
QUESTION = "How often are the smoke detectors tested?"
TEXTS = [
    "Bread is baked at dawn.",
    "The smoke detectors are tested every six months.",
    "Detectors were bought in 2019.",
]


def make_passage(text: str, title: str = "Rules", heading: str = "Safety") -> Passage:
    chunk_id = f"{title} {heading} {text}"
    return Passage(chunk_id, 0, "d", title, text, 0, len(text), heading_path=(title, heading))


class RerankerContract:
    async def test_the_passage_that_answers_scores_highest_and_all_in_0_to_1(self, reranker: Reranker) -> None:
        unrelated, answer, related = await reranker.score(SCOPE, QUESTION, [make_passage(t) for t in TEXTS], Ledger())
        assert 0 <= unrelated < related < answer <= 1

    async def test_scores_come_in_the_order_of_the_passages(self, reranker: Reranker) -> None:
        passages = [make_passage(text) for text in TEXTS]
        forwards = await reranker.score(SCOPE, QUESTION, passages, Ledger())
        backwards = await reranker.score(SCOPE, QUESTION, passages[::-1], Ledger())
        assert forwards == pytest.approx(backwards[::-1], abs=0.005)

    async def test_a_score_does_not_depend_on_what_it_is_scored_with(self, reranker: Reranker) -> None:
        together = await reranker.score(SCOPE, QUESTION, [make_passage(text) for text in TEXTS], Ledger())
        alone = [(await reranker.score(SCOPE, QUESTION, [make_passage(text)], Ledger()))[0] for text in TEXTS]
        assert together == pytest.approx(alone, abs=0.005)

    async def test_title_and_heading_are_scored_with_the_text(self, reranker: Reranker) -> None:
        bare, titled, headed = await reranker.score(
            SCOPE,
            QUESTION,
            [
                make_passage("Once a month."),
                make_passage("Once a month.", title="Smoke detectors"),
                make_passage("Once a month.", heading="Smoke detectors"),
            ],
            Ledger(),
        )
        assert bare < titled
        assert bare < headed

    async def test_nothing_scores_nothing(self, reranker: Reranker) -> None:
        ledger = Ledger()
        assert await reranker.score(SCOPE, QUESTION, [], ledger) == []
        assert ledger.usage == []

    async def test_text_that_is_broken_or_too_long_is_scored(self, reranker: Reranker) -> None:
        passages = [make_passage("\udfff"), make_passage("smoke " + "word " * 20_000)]
        scores = await reranker.score(SCOPE, "\ud800 smoke", passages, Ledger())
        assert len(scores) == 2
        assert all(0 <= score <= 1 for score in scores)

    async def test_many_at_once(self, reranker: Reranker) -> None:
        passages = [make_passage(text) for text in TEXTS]
        scored = await asyncio.gather(*(reranker.score(SCOPE, QUESTION, passages, Ledger()) for _ in range(8)))
        assert {max(range(3), key=scores.__getitem__) for scores in scored} == {1}
