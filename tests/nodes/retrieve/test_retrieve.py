"""What retrieve makes of a query that adds something to the question."""

from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from langgraph.runtime import Runtime

from app.wiring.services import Services
from domain.documents import Candidate
from nodes.retrieve.step import retrieve
from tests.nodes.nodes_alone import make_state


class Counting:
    """Counts the calls of a library by method."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.calls = Counter[str]()

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self._library, name)


QUESTION = "How long does the battery last?"
BACKGROUND = "(Falke warranty)"


async def search(services: Services, query: str, question: str, standalone: str = "") -> list[Candidate]:
    changes = {"standalone_question": standalone or question, "query": query}
    state = make_state(question, services.modes["standard"], **changes)
    return (await retrieve(state, Runtime(context=services.make_context())))["candidates"]


async def test_what_is_added_counts_half(services: Services, library: dict[str, str]) -> None:
    halved = await search(services, f"{QUESTION} {BACKGROUND}", QUESTION)
    whole = await search(services, f"{QUESTION} {BACKGROUND}", "Something else?")
    without = await search(services, QUESTION, QUESTION)
    by_words = [{c["chunk_id"]: c["lexical"] or 0.0 for c in found} for found in (halved, whole, without)]
    shared = set.intersection(*map(set, by_words))
    # The question's own words are searched for twice, those that are added once.
    assert any(by_words[1][i] > by_words[2][i] for i in shared)
    for chunk_id in shared:
        assert by_words[0][chunk_id] == pytest.approx(by_words[1][chunk_id] + by_words[2][chunk_id], abs=1e-4)


@pytest.mark.parametrize(
    ("query", "question", "standalone"),
    [
        (f"{QUESTION} (Falke waranty)", QUESTION, QUESTION),
        (f"{QUESTION} {BACKGROUND}", "How long does the batery last?", QUESTION),
    ],
    ids=["misspelt in what is added", "a retry of a question that was corrected"],
)
async def test_it_counts_half_whatever_was_misspelt(
    services: Services, library: dict[str, str], query: str, question: str, standalone: str
) -> None:
    wanted = await search(services, f"{QUESTION} {BACKGROUND}", QUESTION)
    assert await search(services, query, question, standalone) == wanted


async def test_a_query_that_only_begins_with_the_same_letters_adds_nothing(
    services: Services, library: dict[str, str]
) -> None:
    query = "Which battery does the Falke take"
    assert await search(services, query, "Which battery does the") != await search(services, query, query)
    assert await search(services, query, query[:-2]) == await search(services, query, query)


async def test_a_retry_does_not_ask_again_for_what_is_indexed(services: Services) -> None:
    context = services.make_context()
    first, second = Counting(context.library), Counting(context.library)
    state = make_state("What is it?", services.modes["standard"], query="What is it?")
    found = await retrieve(state, Runtime(context=replace(context, library=cast(Any, first))))
    again = state | {"retries": 1, "queries_tried": found["queries_tried"]}
    await retrieve(again, Runtime(context=replace(context, library=cast(Any, second))))
    assert (first.calls["count_unembedded"], second.calls["count_unembedded"]) == (1, 0)
