"""Which documents and turns a run is filed under."""

import psycopg
from psycopg.rows import dict_row

from app.wiring.services import Services
from tests.asking import ask
from tests.conftest import HANDBOOK


async def read(database_url: str, run_id: str) -> tuple[dict[str, tuple[int, bool]], dict[str, bool]]:
    """The run's documents, each with its revision and whether it was shown, and its turns, and whether it drew on
    them."""
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        documents = await connection.execute("SELECT * FROM run_documents WHERE run_id = %s", [run_id])
        turns = await connection.execute("SELECT * FROM run_turns WHERE run_id = %s", [run_id])
        return (
            {row["document_id"]: (row["revision"], row["shown"]) async for row in documents},
            {row["earlier_run_id"]: row["drawn_on"] async for row in turns},
        )


async def test_a_run_is_filed_under_the_revisions_that_it_showed(
    services: Services, database_url: str, library: dict[str, str]
) -> None:
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK.replace(b"36", b"48"))
    handbook = library["Station handbook"]
    first = await ask(services, "How long is the warranty of the Falke?")
    again = await ask(services, "How long is the warranty of the Falke?")
    assert again["cached"]
    for run in (first, again):
        documents, turns = await read(database_url, run["run_id"])
        assert documents[handbook] == (2, True)
        assert turns == {}
        assert {(cited["document_id"], cited["revision"], True) for cited in run["citations"]} <= {
            (name, *used) for name, used in documents.items()
        }
        assert documents.keys() == set(library.values()), "those that were only found"


async def test_a_reply_that_names_documents_is_filed_under_them(
    services: Services, database_url: str, library: dict[str, str]
) -> None:
    for question in ("Which documents do you have?", "Hello!"):
        run = await ask(services, question)
        documents, _ = await read(database_url, run["run_id"])
        assert documents.keys() == {name for title, name in library.items() if title in run["answer"]}


async def test_what_draws_on_a_turn_is_filed_under_its_documents_and_what_does_not_is_not(
    services: Services, database_url: str, library: dict[str, str]
) -> None:
    await services.library.ingestion.add("default", "pool.md", b"# Pool\n\nThe pool opens at 9 and closes at 17.")
    first = await ask(services, "How long is the warranty of the Falke?")
    thread = first["thread_id"]
    follow_up = await ask(services, "And the battery?", thread_id=thread)
    assert "Falke" in follow_up["standalone_question"]
    other = await ask(services, "When does the pool open?", thread_id=thread)
    assert other["standalone_question"] == "When does the pool open?"
    documents, turns = await read(database_url, follow_up["run_id"])
    assert turns == {first["run_id"]: True}
    assert (await read(database_url, first["run_id"]))[0].keys() <= documents.keys()
    _, turns = await read(database_url, other["run_id"])
    assert turns == {first["run_id"]: False, follow_up["run_id"]: False}


async def test_the_lineage_goes_with_the_thread(services: Services, database_url: str, library: dict[str, str]) -> None:
    first = await ask(services, "How long is the warranty of the Falke?")
    second = await ask(services, "And the battery?", thread_id=first["thread_id"])
    await services.make_forgetting().forget_thread("default", first["thread_id"])
    for run in (first, second):
        assert await read(database_url, run["run_id"]) == ({}, {})
