"""Objects in S3-compatible storage. Only a deployment that keeps its originals there imports this module.

Region, keys and, for other providers than Amazon, the address come from the `AWS_*` variables that S3 tools share.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from domain.errors import ConfigurationError, StorageUnavailable

try:
    from obstore.exceptions import BaseError, PermissionDeniedError
    from obstore.store import S3Store
except ModuleNotFoundError as error:
    raise ConfigurationError(
        "Originals in S3 need the package obstore, which is not installed. Install askgraph[s3]."
    ) from error

PROBE = "askgraph"
"""Key of the empty object that is written at start, and looked for by the health check."""

PART_BYTES = 2**20
"""Least size of the parts that a download is passed on in."""

CLIENT = {
    "allow_http": True,  # an address that begins with http:// was given on purpose
    "connect_timeout": timedelta(seconds=5),
    "timeout": timedelta(seconds=30),
}
RETRY = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}


class S3Storage:
    """Implements `ObjectStorage` in a bucket, under an optional prefix."""

    def __init__(self, address: str) -> None:
        """`address` is `s3://BUCKET` or `s3://BUCKET/PREFIX`.

        Raises `ConfigurationError` for `AWS_*` variables that cannot be used.
        """
        self._address = address
        bucket, _, prefix = address.removeprefix("s3://").partition("/")
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options=CLIENT,  # type: ignore[arg-type]
                retry_config=RETRY,  # type: ignore[arg-type]
            )
        except (BaseError, ValueError) as error:
            raise ConfigurationError(f"{address} cannot be opened: {shorten(error)}") from error

    async def check_access(self) -> None:
        try:
            await self._store.put_async(PROBE, b"")
        except FileNotFoundError as error:
            raise ConfigurationError(
                f"There is no bucket for {self._address}. Create it, or correct ASKGRAPH_ORIGINALS or AWS_ENDPOINT_URL."
            ) from error
        except PermissionDeniedError as error:
            raise ConfigurationError(
                f"Writing to {self._address} is not allowed. Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the "
                "permissions of this key: it has to read, write and delete objects."
            ) from error
        except BaseError as error:
            raise StorageUnavailable(f"{self._address} did not answer: {shorten(error)}") from error

    async def find_problem(self) -> str | None:
        try:
            with _translated_errors():
                await self._store.head_async(PROBE)
        except (StorageUnavailable, FileNotFoundError) as error:
            return f"{self._address}: {shorten(error)}"
        return None

    async def put(self, key: str, content: bytes) -> None:
        with _translated_errors():
            try:
                # In one request: an interrupted upload in parts would leave parts behind.
                await self._store.put_async(key, content, use_multipart=False)
            except FileNotFoundError as error:
                raise StorageUnavailable(f"The bucket of {self._address} does not exist any more.") from error

    async def read(self, key: str) -> AsyncIterator[bytes]:
        with _translated_errors():
            try:
                found = await self._store.get_async(key)
            except FileNotFoundError:
                return
            async for part in found.stream(min_chunk_size=PART_BYTES):
                yield bytes(part)

    async def delete(self, keys: Sequence[str]) -> None:
        with _translated_errors():
            for key in keys:  # not every provider knows the request for many
                try:
                    await self._store.delete_async(key)
                except FileNotFoundError:
                    continue


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except BaseError as error:
        raise StorageUnavailable(f"The storage of original files did not answer: {shorten(error)}") from error


def shorten(error: Exception) -> str:
    """Return the first line of the driver's message; it goes on with a dump of its own objects."""
    return str(error).partition("\n")[0][:300]
