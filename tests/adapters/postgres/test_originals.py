"""Files are kept with their documents, once for each content, and go when no document needs them."""

from collections.abc import AsyncIterator

import pytest

from app.adapters.postgres.documents.originals import PostgresOriginals
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow
from app.adapters.postgres.retention import PostgresRetention
from app.adapters.s3 import S3Storage
from domain.errors import ConfigurationError, MissingOriginal, StorageUnavailable
from domain.history.retention import Cuts
from domain.ports.documents import DocumentStore
from domain.ports.originals import read_whole
from tests.contracts.corpus import store
from tests.contracts.originals import FILE, HASH, TEXTS, OriginalStoreContract, read
from tests.wire.s3 import BUCKET, SECRET_KEY, Bucket


@pytest.fixture
def documents(pool: Pool, originals: PostgresOriginals) -> DocumentStore:
    return PostgresDocumentStore(pool, originals=originals)


class TestInTheDatabase(OriginalStoreContract):
    @pytest.fixture
    def originals(self, pool: Pool) -> PostgresOriginals:
        return PostgresOriginals(pool)

    async def test_a_file_that_is_deleted_while_it_is_read_is_not_half_a_file(
        self, documents: DocumentStore, pool: Pool
    ) -> None:
        document = await store(documents, "a", "one.md", TEXTS, original=FILE)

        class Deleting(PostgresOriginals):
            """Its file is deleted after the first part of it was read."""

            async def read(self, workspace_id: str, content_hash: str) -> AsyncIterator[bytes]:
                async for part in super().read(workspace_id, content_hash):
                    yield part
                    await documents.delete("a", document.id)

        assert await read_whole(PostgresOriginals(pool), "a", HASH) == FILE
        with pytest.raises(MissingOriginal):
            await read_whole(Deleting(pool), "a", HASH)


class TestInABucket(OriginalStoreContract):
    @pytest.fixture
    def originals(self, pool: Pool, bucket: Bucket) -> PostgresOriginals:
        return PostgresOriginals(pool, S3Storage(f"s3://{BUCKET}/files/of-ours"))

    async def test_the_bucket_holds_what_documents_need_and_nothing_else(
        self, documents: DocumentStore, originals: PostgresOriginals, pool: Pool, bucket: Bucket
    ) -> None:
        first = await store(documents, "Team Ö/1", "one.md", TEXTS, original=FILE)
        await store(documents, "Team Ö/1", "two.md", TEXTS, original=FILE)
        [kept] = bucket.list_objects()
        assert kept.read_bytes() == FILE
        assert kept.relative_to(bucket.folder).parts[:3] == (BUCKET, "files", "of-ours")
        assert kept.name.startswith(HASH)
        async with borrow(pool, ALL_WORKSPACES) as connection:
            stored = await connection.execute("SELECT count(*) AS parts FROM originals")
            assert (await stored.fetchone()) == {"parts": 0}
        await documents.delete("Team Ö/1", first.id)
        assert bucket.list_objects() == [kept]
        await documents.clear("Team Ö/1")
        assert bucket.list_objects() == []

    async def test_files_stay_where_they_are_when_the_setting_changes(
        self, originals: PostgresOriginals, documents: DocumentStore, pool: Pool, bucket: Bucket
    ) -> None:
        in_database = PostgresOriginals(pool)
        earlier = await store(PostgresDocumentStore(pool), "a", "one.md", TEXTS, original=FILE)
        assert await read(originals) == FILE
        await documents.delete("a", earlier.id)
        assert await originals.measure("a", HASH) is None
        later = await store(documents, "a", "one.md", TEXTS, original=FILE)
        assert await in_database.measure("a", HASH) == len(FILE)
        with pytest.raises(StorageUnavailable, match="ASKGRAPH_ORIGINALS does not name"):
            await read(in_database)
        await PostgresDocumentStore(pool).delete("a", later.id)
        assert await in_database.erase_dropped("a") == 1
        assert await originals.erase_dropped("a") == 0
        assert bucket.list_objects() == []

    async def test_without_storage_nothing_is_added_and_what_is_deleted_goes_later(
        self, originals: PostgresOriginals, documents: DocumentStore, pool: Pool, bucket: Bucket
    ) -> None:
        document = await store(documents, "a", "one.md", TEXTS, original=FILE)
        await bucket.stop()
        with pytest.raises(StorageUnavailable):
            await read(originals)
        with pytest.raises(StorageUnavailable, match="did not answer"):
            await store(documents, "a", "two.md", ["Beta."], original=b"beta")
        assert await documents.find("a", "two.md") is None
        assert await documents.delete("a", document.id)
        assert await originals.erase_dropped("a") == 2
        assert await originals.erase_dropped("b") == 0
        await bucket.start()
        again = PostgresOriginals(pool, S3Storage(f"s3://{BUCKET}/files/of-ours"))
        retention = PostgresRetention(pool, again)
        await retention.delete_revisions(Cuts(None, {}), dry_run=True)
        assert len(bucket.list_objects()) == 1
        await retention.delete_revisions(Cuts(None, {}), dry_run=False)
        assert bucket.list_objects() == []
        assert await again.erase_dropped() == 0

    async def test_an_object_whose_process_died_is_erased_after_an_hour(
        self, originals: PostgresOriginals, pool: Pool, bucket: Bucket
    ) -> None:
        staging = originals.stage("a", {HASH: FILE})
        await staging.__aenter__()
        assert await originals.erase_dropped() == 0
        assert len(bucket.list_objects()) == 1, "its document may still be stored"
        async with borrow(pool, ALL_WORKSPACES) as connection:
            await connection.execute("UPDATE original_objects SET created_at = now() - interval '61 minutes'")
        assert await originals.erase_dropped() == 0
        assert bucket.list_objects() == []

    async def test_a_file_that_vanished_from_the_bucket_is_empty(
        self, originals: PostgresOriginals, documents: DocumentStore, bucket: Bucket
    ) -> None:
        document = await store(documents, "a", "one.md", TEXTS, original=FILE)
        [kept] = bucket.list_objects()
        kept.unlink()
        assert await read(originals) == b""
        assert await documents.delete("a", document.id)
        assert await originals.erase_dropped() == 0


async def test_a_bucket_that_is_there_has_no_problem(bucket: Bucket) -> None:
    storage = S3Storage(f"s3://{BUCKET}")
    await storage.check_access()
    assert await storage.find_problem() is None
    await bucket.stop()
    problem = await storage.find_problem()
    assert problem is not None
    assert "did not answer" in problem
    with pytest.raises(StorageUnavailable, match="did not answer"):
        await storage.check_access()


@pytest.mark.parametrize(
    ("address", "key", "says"),
    [
        ("s3://nowhere/x", SECRET_KEY, "There is no bucket for s3://nowhere/x. Create it, or correct"),
        (f"s3://{BUCKET}", "another-secret", "is not allowed. Check AWS_ACCESS_KEY_ID"),
    ],
)
async def test_storage_that_can_never_work_says_what_to_do(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, address: str, key: str, says: str
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key)
    with pytest.raises(ConfigurationError, match=says):
        await S3Storage(address).check_access()
