"""Documents that only callers of their groups may read, in the searches of `Library`."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.filters import REMEMBERED_FILTERS, FilteredDocuments
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import Pool, open_session
from domain.errors import UnknownDocument
from domain.scope import Scope
from tests.contracts.corpus import content_of, vector_of

EVERYBODY = Scope("a")
BOARD = Scope("a", groups=frozenset({"board", "press"}))
STAFF = Scope("a", groups=frozenset({"staff"}))

OPEN, HIDDEN = "The canteen opens at noon.", "The canteen closes for good."


@pytest_asyncio.fixture
async def documents(pool: Pool) -> AsyncIterator[PostgresDocumentStore]:
    documents = PostgresDocumentStore(pool)
    await documents.replace("a", content_of("open.md", [OPEN], "Canteen"))
    await documents.replace("a", replace(content_of("hidden.md", [HIDDEN], "Plans"), groups=("board",)))
    yield documents


async def search(library: PostgresLibrary, scope: Scope) -> dict[str, set[str]]:
    """Return the texts or titles that each search finds."""

    async def read(matches: Any) -> set[str]:
        # In the widest scope, so that what a search finds is seen.
        return {p.text for p in await library.read_passages(EVERYBODY, [match.chunk_id for match in matches])}

    everything = await library.search_dense(EVERYBODY, vector_of(HIDDEN), 9)
    chunk_ids = [match.chunk_id for match in everything]
    [hidden] = [p.document_id for p in await library.read_passages(EVERYBODY, chunk_ids) if p.text == HIDDEN]
    return {
        "dense": await read(await library.search_dense(scope, vector_of(HIDDEN), 9)),
        "lexical": await read(await library.search_lexical(scope, "canteen", 9)),
        "titled": await read(await library.search_titled(scope, ["plans", "canteen"], vector_of(HIDDEN))),
        "scores": await read(await library.score_dense(scope, vector_of(HIDDEN), chunk_ids)),
        "impacts": await read(await library.score_lexical(scope, "canteen", chunk_ids)),
        "passages": {p.text for p in await library.read_passages(scope, chunk_ids)},
        "around": {p.text for p in await library.read_around(scope, chunk_ids, 1, 1)},
        "outline": {p.text for p in await library.read_outline(scope, hidden, 9)} | {OPEN},
        "exact": {p.text for p in (await library.find_text(scope, "canteen", 9)).passages},
        "text": {each.text for each in await library.read_texts(scope, [hidden])} | {OPEN},
        "titles": {OPEN if each.title == "Canteen" else HIDDEN for each in await library.list_recent(scope, 9)},
        "list": {OPEN if d.title == "Canteen" else HIDDEN for d in (await library.list_documents(scope, 9)).documents},
    }


async def test_every_search_finds_what_the_asker_may_read(pool: Pool, documents: PostgresDocumentStore) -> None:
    library = PostgresLibrary(pool)
    for scope in (EVERYBODY, BOARD):
        assert set(map(frozenset, (await search(library, scope)).values())) == {frozenset({OPEN, HIDDEN})}
    for scope in (STAFF, Scope("a", groups=frozenset())):
        found = await search(library, scope)
        assert found == {name: {OPEN} for name in found}
    assert await library.suggest_words(EVERYBODY, ["closess"], None, "en")
    assert not await library.suggest_words(STAFF, ["closess"], None, "en")


async def test_texts_are_withheld_even_where_a_search_forgets_the_groups(
    pool: Pool, documents: PostgresDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forget(self: FilteredDocuments, session: Any, scope: Scope) -> None:
        return None

    monkeypatch.setattr(FilteredDocuments, "find", forget)
    found = await search(PostgresLibrary(pool), STAFF)
    assert found["dense"] == {OPEN, HIDDEN}
    for name in ("passages", "around", "outline", "titles", "list"):
        assert found[name] == {OPEN}, name


async def test_a_scope_cannot_name_a_document_that_the_asker_may_not_read(documents: PostgresDocumentStore) -> None:
    known = {document.source: document for document in await documents.list("a")}
    assert known["hidden.md"].groups == ("board",)
    for document_id in (known["hidden.md"].id, "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(UnknownDocument, match=r"There is no document '[0-9a-f-]+' in this workspace"):
            await documents.corpus_fingerprint(replace(STAFF, document_ids=(document_id,)))
    assert await documents.corpus_fingerprint(replace(BOARD, document_ids=(known["hidden.md"].id,)))


async def test_groups_stay_until_they_are_named(pool: Pool, documents: PostgresDocumentStore) -> None:
    library, before = PostgresLibrary(pool), await documents.corpus_fingerprint(EVERYBODY)
    changed, _ = await documents.replace("a", content_of("hidden.md", ["The canteen moves."], "Plans"))
    assert changed.groups == ("board",)
    opened = await documents.set_groups("a", changed.id, [])
    assert opened is not None
    assert opened.groups == ()
    assert await documents.corpus_fingerprint(EVERYBODY) != before
    assert len((await library.list_documents(STAFF, 9)).documents) == 2
    closed, _ = await documents.replace("a", replace(content_of("hidden.md", [HIDDEN], "Plans"), groups=("x", "board")))
    assert closed.groups == ("board", "x")
    assert await documents.set_groups("b", closed.id, []) is None


async def test_a_scope_that_others_push_out_while_it_is_looked_up_is_found(
    pool: Pool, documents: PostgresDocumentStore
) -> None:
    filtered, waiting = FilteredDocuments(), asyncio.Event()
    others = [Scope("a", groups=frozenset([str(number)])) for number in range(REMEMBERED_FILTERS)]
    async with open_session(pool, "a") as session:
        found = await filtered.find(session, STAFF)

        async def fetch_one(*arguments: Any, **values: Any) -> Any:
            await waiting.wait()
            return await session.fetch_one(*arguments, **values)

        slow: Any = SimpleNamespace(fetch_one=fetch_one)
        finding = asyncio.create_task(filtered.find(slow, STAFF))
        await asyncio.sleep(0)
        for other in others:
            await filtered.find(session, other)
        waiting.set()
        assert await finding == found
