"""The connector of buckets in S3-compatible storage.

Region, keys and address come from the `AWS_*` variables that S3 tools share.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from app.adapters.connectors.remote_folders import File, RemoteFolder
from app.adapters.s3 import CLIENT, RETRY, shorten
from app.ingest.files import check_size
from domain.errors import ConfigurationError, NotFound, Unavailable
from domain.ports.connectors import Opening


class Bucket(RemoteFolder):
    """The objects under a prefix."""

    def __init__(self, store: S3Store, root: str, prefix: str, max_bytes: int) -> None:
        super().__init__(root, prefix, max_bytes)
        self._store = store

    async def _walk(self, unread: dict[str, str]) -> AsyncIterator[tuple[str, File]]:
        with _translated_errors(self.address):
            async for objects in self._store.list(self._prefix, chunk_size=1000):
                for meta in objects:
                    yield meta["path"], File(meta["last_modified"], meta["size"], meta["e_tag"])

    async def _load(self, name: str, max_bytes: int) -> bytes:
        with _translated_errors(self.address):
            try:
                found = await self._store.get_async(name)
            except FileNotFoundError as error:
                raise NotFound(f"{name} is not there any more.") from error
            check_size(found.meta["size"], max_bytes)
            return bytes(await found.bytes_async())


@asynccontextmanager
async def open_bucket(address: str, opening: Opening) -> AsyncIterator[Bucket]:
    """Open `s3://BUCKET/PREFIX`."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    with _translated_errors(address):
        store = S3Store(bucket, client_options=CLIENT, retry_config=RETRY)  # type: ignore[arg-type]
    yield Bucket(store, f"s3://{bucket}", prefix.strip("/"), opening.max_bytes)


@contextmanager
def _translated_errors(address: str) -> Iterator[None]:
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise ConfigurationError(
            f"{address} may not be read. Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        ) from error
    except (BaseError, FileNotFoundError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{address} cannot be read: {shorten(error)}") from error
