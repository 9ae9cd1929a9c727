"""rerank: sources of several queries and several searches."""

from langgraph.runtime import Runtime

from app.wiring.services import Services
from domain.state import Task
from nodes.reading.scoring import choose_sources
from nodes.rerank.step import RerankUpdate, rerank
from nodes.retrieve.step import retrieve
from tests.asking import QUESTION
from tests.nodes.nodes_alone import make_state

GUIDE = "# Guide\n\n" + "\n\n".join(
    f"## Part {number}\n\n{' '.join([f'Part {number} of the guide is about the colour {colour} and its uses.'] * 30)}"
    for number, colour in enumerate(("red", "green", "blue", "white", "black", "brown", "pink", "grey", "gold"), 1)
)


async def search(
    services: Services, query: str, *queries: str, task: Task = "look_up", **state: object
) -> RerankUpdate:
    runtime = Runtime(context=services.make_context())
    given = make_state(query, services.modes["standard"], query=query, queries=list(queries), task=task, **state)
    given |= await retrieve(given, runtime)
    return await rerank(given, runtime)


async def test_each_further_query_brings_sources_of_its_own(services: Services) -> None:
    await services.library.ingestion.add("default", "guide.md", GUIDE.encode())
    alone = await search(services, "What is red used for?")
    update = await search(services, "What is red used for?", "colour gold", "colour grey")
    texts = [source["text"] for source in update["sources"]]
    assert [source["number"] for source in update["sources"]] == list(range(1, len(texts) + 1))
    first = update["sources"][0]
    assert [span for span in first["found"] if "query" not in span] == alone["sources"][0]["found"]
    assert {**first, "found": []} == {**alone["sources"][0], "found": []}
    gold = choose_sources("colour gold", update["sources"])
    assert "the colour gold" in gold[0]["text"]
    assert {span.get("query") for source in gold for span in source["found"]} == {"colour gold"}
    for colour in ("gold", "grey"):
        assert any(f"the colour {colour}" in text for text in texts)
    assert {candidate.get("query") for candidate in update["candidates"]} == {None, "colour gold", "colour grey"}


async def test_what_was_found_stays_and_keeps_its_number(services: Services) -> None:
    await services.library.ingestion.add("default", "guide.md", GUIDE.encode())
    first = await search(services, "What is red used for?")
    again = await search(services, "colour gold", sources=first["sources"][:2], retries=1)
    assert [source["chunk_id"] for source in again["sources"][:2]] == [
        source["chunk_id"] for source in first["sources"][:2]
    ]
    assert "the colour gold" in again["sources"][2]["text"]
    # Three of a further search, as of any query that looks for one thing.
    assert len(again["sources"]) <= 5


async def test_a_search_that_finds_what_is_known_changes_nothing(services: Services, library: dict[str, str]) -> None:
    first = await search(services, QUESTION)
    again = await search(services, QUESTION, sources=first["sources"], retries=1)
    assert again["sources"] == first["sources"]


async def test_questions_that_compare_or_list_read_more(services: Services) -> None:
    await services.library.ingestion.add("default", "guide.md", GUIDE.encode())
    narrow, broad = [await search(services, "What is red used for?", task=task) for task in ("look_up", "list")]
    assert sum(len(source["text"]) for source in broad["sources"]) > sum(len(s["text"]) for s in narrow["sources"])
