"""Files are kept with their documents, once for each content, and go when no document needs them."""

import asyncio
import os

import pytest

from app.adapters.postgres.documents.originals import PART_BYTES, PostgresOriginals
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.pool import Pool
from app.adapters.postgres.retention.store import PostgresRetention
from domain.ports.documents import DocumentContent, DocumentStore
from domain.retention import Cuts
from tests.contracts.corpus import content_of, digest, store

FILE = os.urandom(2 * PART_BYTES + 17)
TEXTS = ["Alpha comes first."]
HASH = digest(TEXTS[0])


@pytest.fixture
def documents(pool: Pool) -> DocumentStore:
    return PostgresDocumentStore(pool)


@pytest.fixture
def originals(pool: Pool) -> PostgresOriginals:
    return PostgresOriginals(pool)


async def read(originals: PostgresOriginals, workspace_id: str = "a", content_hash: str = HASH) -> bytes:
    return b"".join([part async for part in originals.read(workspace_id, content_hash)])


async def test_a_file_is_kept_in_its_workspace_alone(documents: DocumentStore, originals: PostgresOriginals) -> None:
    await store(documents, "a", "greek.md", TEXTS, original=FILE)
    assert await originals.measure("a", HASH) == len(FILE)
    assert await read(originals) == FILE
    assert await originals.measure("b", HASH) is None
    assert await read(originals, "b") == b""


async def test_a_file_goes_with_the_last_document_that_needs_it(
    documents: DocumentStore, originals: PostgresOriginals
) -> None:
    first = await store(documents, "a", "one.md", TEXTS, original=FILE)
    second = await store(documents, "a", "two.md", TEXTS, original=FILE)
    await documents.delete("a", first.id)
    assert await read(originals) == FILE
    await documents.delete("a", second.id)
    assert await originals.measure("a", HASH) is None


async def test_the_file_of_a_revision_stays_as_long_as_the_revision(
    documents: DocumentStore, originals: PostgresOriginals, pool: Pool
) -> None:
    await store(documents, "a", "one.md", TEXTS, original=FILE)
    document = await store(documents, "a", "one.md", ["Beta."], original=b"beta")
    assert await read(originals) == FILE
    assert await read(originals, content_hash=digest("Beta.")) == b"beta"
    retention = PostgresRetention(pool)
    await retention.delete_revisions(Cuts(None, {}), after="", dry_run=False)
    assert await read(originals) == FILE, "the revision is young"
    async with pool.connection() as connection:
        await connection.execute("UPDATE document_revisions SET superseded_at = now() - interval '1 day'")
    await retention.delete_revisions(Cuts(None, {}), after="", dry_run=True)
    assert await read(originals) == FILE
    await retention.delete_revisions(Cuts(None, {}), after="", dry_run=False)
    assert await originals.measure("a", HASH) is None
    assert await read(originals, content_hash=digest("Beta.")) == b"beta"
    await documents.delete("a", document.id)
    assert await originals.measure("a", digest("Beta.")) is None


async def test_the_files_of_all_revisions_go_with_their_document(
    documents: DocumentStore, originals: PostgresOriginals
) -> None:
    await store(documents, "a", "one.md", TEXTS, original=FILE)
    document = await store(documents, "a", "one.md", ["Beta."], original=b"beta")
    await documents.delete("a", document.id)
    assert await originals.measure("a", HASH) is None
    assert await originals.measure("a", digest("Beta.")) is None


async def test_files_go_with_their_workspace(documents: DocumentStore, originals: PostgresOriginals) -> None:
    await store(documents, "a", "one.md", TEXTS, original=FILE)
    await store(documents, "b", "one.md", TEXTS, original=FILE)
    await documents.clear("a")
    assert await originals.measure("a", HASH) is None
    assert await originals.measure("b", HASH) == len(FILE)


async def test_the_file_of_an_older_document_is_kept_when_it_comes_again(
    documents: DocumentStore, originals: PostgresOriginals
) -> None:
    await documents.keep_original("a", HASH, FILE)
    assert await originals.measure("a", HASH) is None, "no document needs it"
    await store(documents, "a", "one.md", TEXTS)
    await documents.keep_original("a", HASH, FILE)
    await documents.keep_original("a", HASH, FILE)
    assert await read(originals) == FILE


async def test_a_file_that_is_dropped_and_needed_at_the_same_time_stays(
    documents: DocumentStore, originals: PostgresOriginals
) -> None:
    def content(source: str) -> DocumentContent:
        made = content_of(source, TEXTS)
        return DocumentContent(source, HASH, made.parsed, made.chunks, made.embeddings, original=b"file")

    for turn in range(10):
        going = await documents.replace("a", content(f"going-{turn}.md"))
        await asyncio.gather(
            documents.delete("a", going.id),
            documents.replace("a", content(f"staying-{turn}.md")),
        )
        assert await read(originals) == b"file"
        [staying] = await documents.list("a")
        await documents.delete("a", staying.id)
        assert await originals.measure("a", HASH) is None
