"""The contract of `OriginalStore`, together with the stores of documents and of retention that change what it holds. An
adapter's tests inherit from the class and provide the fixtures `documents`, `originals` and `pool`, over the same empty
store."""

import asyncio
import os

import pytest

from app.adapters.postgres.documents.originals import PART_BYTES
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow
from app.adapters.postgres.retention import PostgresRetention
from domain.errors import Superseded
from domain.history.retention import Cuts
from domain.ports.documents import DocumentContent, DocumentStore
from domain.ports.originals import OriginalStore
from tests.contracts.corpus import content_of, digest, store

FILE = os.urandom(2 * PART_BYTES + 17)
TEXTS = ["Alpha comes first."]
HASH = digest(TEXTS[0])


async def read(originals: OriginalStore, workspace_id: str = "a", content_hash: str = HASH) -> bytes:
    return b"".join([part async for part in originals.read(workspace_id, content_hash)])


class OriginalStoreContract:
    async def test_a_file_is_kept_in_its_workspace_alone(
        self, documents: DocumentStore, originals: OriginalStore
    ) -> None:
        await store(documents, "a", "greek.md", TEXTS, original=FILE)
        assert await originals.measure("a", HASH) == len(FILE)
        assert await read(originals) == FILE
        assert await originals.measure("b", HASH) is None
        assert await read(originals, "b") == b""

    async def test_a_file_goes_with_the_last_document_that_needs_it(
        self, documents: DocumentStore, originals: OriginalStore
    ) -> None:
        first = await store(documents, "a", "one.md", TEXTS, original=FILE)
        second = await store(documents, "a", "two.md", TEXTS, original=FILE)
        await documents.delete("a", first.id)
        assert await read(originals) == FILE
        await documents.delete("a", second.id)
        assert await originals.measure("a", HASH) is None

    async def test_the_file_of_a_revision_stays_as_long_as_the_revision(
        self, documents: DocumentStore, originals: OriginalStore, pool: Pool
    ) -> None:
        await store(documents, "a", "one.md", TEXTS, original=FILE)
        document = await store(documents, "a", "one.md", ["Beta."], original=b"beta")
        assert await read(originals) == FILE
        assert await read(originals, content_hash=digest("Beta.")) == b"beta"
        retention = PostgresRetention(pool, originals)
        await retention.delete_revisions(Cuts(None, {}), dry_run=False)
        assert await read(originals) == FILE, "the revision is young"
        async with borrow(pool, ALL_WORKSPACES) as connection:
            await connection.execute("UPDATE document_revisions SET superseded_at = now() - interval '1 day'")
        await retention.delete_revisions(Cuts(None, {}), dry_run=True)
        assert await read(originals) == FILE
        await retention.delete_revisions(Cuts(None, {}), dry_run=False)
        assert await originals.measure("a", HASH) is None
        assert await read(originals, content_hash=digest("Beta.")) == b"beta"
        await documents.delete("a", document.id)
        assert await originals.measure("a", digest("Beta.")) is None

    async def test_the_files_of_all_revisions_go_with_their_document(
        self, documents: DocumentStore, originals: OriginalStore
    ) -> None:
        await store(documents, "a", "one.md", TEXTS, original=FILE)
        document = await store(documents, "a", "one.md", ["Beta."], original=b"beta")
        await documents.delete("a", document.id)
        assert await originals.measure("a", HASH) is None
        assert await originals.measure("a", digest("Beta.")) is None

    async def test_files_go_with_their_workspace(self, documents: DocumentStore, originals: OriginalStore) -> None:
        await store(documents, "a", "one.md", TEXTS, original=FILE)
        await store(documents, "b", "one.md", TEXTS, original=FILE)
        await documents.clear("a")
        assert await originals.measure("a", HASH) is None
        assert await originals.measure("b", HASH) == len(FILE)

    async def test_a_file_that_was_lost_is_kept_when_it_comes_again(
        self, documents: DocumentStore, originals: OriginalStore
    ) -> None:
        await documents.keep_original("a", HASH, FILE)
        assert await originals.measure("a", HASH) is None, "no document needs it"
        await store(documents, "a", "one.md", TEXTS)
        await documents.keep_original("a", HASH, FILE)
        await documents.keep_original("a", HASH, FILE)
        assert await read(originals) == FILE

    async def test_a_file_that_is_dropped_and_needed_at_the_same_time_stays(
        self, documents: DocumentStore, originals: OriginalStore
    ) -> None:
        def content(source: str) -> DocumentContent:
            made = content_of(source, TEXTS)
            return DocumentContent(source, HASH, made.parsed, made.chunks, made.embeddings, original=b"file")

        for turn in range(10):
            going, _ = await documents.replace("a", content(f"going-{turn}.md"))
            await asyncio.gather(documents.delete("a", going.id), documents.replace("a", content(f"staying-{turn}.md")))
            assert await read(originals) == b"file"
            [staying] = await documents.list("a")
            await documents.delete("a", staying.id)
            assert await originals.measure("a", HASH) is None

    async def test_a_file_whose_document_is_refused_is_not_kept(
        self, documents: DocumentStore, originals: OriginalStore
    ) -> None:
        arrival = await documents.number_arrival("a")
        await store(documents, "a", "one.md", TEXTS)
        made = content_of("one.md", ["Beta."])
        late = DocumentContent(
            "one.md", digest("Beta."), made.parsed, made.chunks, made.embeddings, arrival, original=FILE
        )
        with pytest.raises(Superseded):
            await documents.replace("a", late)
        assert await originals.measure("a", digest("Beta.")) is None
        assert await originals.erase_dropped("a") == 0
