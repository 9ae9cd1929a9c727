"""Connectors of buckets in S3-compatible storage and of folders behind WebDAV, which one library speaks both.

Region, keys and address of a bucket come from the `AWS_*` variables that S3 tools share.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import HTTPStore, S3Store

from app.adapters.s3 import CLIENT, RETRY, shorten
from app.ingest.files import check_size
from app.ingest.formats import is_read_from_folders
from app.ingest.metadata.dates import state_day
from app.ingest.metadata.sidecars import MAX_BYTES, SUFFIX, is_sidecar, read_metadata
from domain.errors import ConfigurationError, NotFound, Unavailable
from domain.ports.connectors import Content, Entry, Listing, Opening

if TYPE_CHECKING:
    from obstore import ObjectMeta

MOST_FILES = 100_000
"""Limit of the files that are looked at."""
LIST_SECONDS = 3600
"""Limit of the time that looking takes."""
MOST_FAILURES = 5
"""Folders that cannot be listed, before the server is left alone."""


class ObjectFolder:
    """Implements `Connector` for the objects under a prefix. Hidden ones are left out, as in folders."""

    def __init__(self, store: S3Store | HTTPStore, root: str, prefix: str, max_bytes: int) -> None:
        """Objects are named `root`/KEY; for a server of WebDAV, KEY is quoted as in addresses."""
        self._store, self._root, self._prefix, self._max_bytes = store, root, prefix, max_bytes
        self._found: dict[str, ObjectMeta] = {}
        """The latest listing, by key."""
        self.address = self._name(prefix)

    async def list(self) -> Listing:
        self._found.clear()
        gap, unread = None, dict[str, str]()
        try:
            with _translated_errors(self.address):
                async with asyncio.timeout(LIST_SECONDS):
                    async for meta in self._walk(unread):
                        if len(self._found) == MOST_FILES:
                            gap = f"Only {MOST_FILES:,} files were looked at."
                            break
                        self._found[meta["path"]] = meta
        except Unavailable as error:
            if not self._found:
                raise
            unread[self.address] = error.message
        inside = len(self._prefix) + 1 if self._prefix else 0
        keys = [key for key in self._found if not is_sidecar(key) and "/." not in f"/{key[inside:]}"]
        entries = [Entry(self._name(key), self._stamp(key)) for key in keys if is_read_from_folders(f"/{key}")]
        return Listing(entries, len(keys) - len(entries), gap, unread)

    async def read(self, entry: Entry, known: str | None) -> Content:
        key = entry.source.removeprefix(f"{self._root}/")
        key = unquote(key) if isinstance(self._store, HTTPStore) else key
        metadata = state_day(self._found[key]["last_modified"].isoformat(), key="file_date")
        if (sidecar := key + SUFFIX) in self._found:
            metadata |= read_metadata(await self._load(sidecar, MAX_BYTES), sidecar)
        return Content(await self._load(key, self._max_bytes), metadata=metadata)

    async def _walk(self, unread: dict[str, str]) -> "AsyncIterator[ObjectMeta]":
        """Yield all objects. Folders that cannot be listed become `unread`."""
        if isinstance(self._store, S3Store):
            async for objects in self._store.list(self._prefix, chunk_size=1000):
                for meta in objects:
                    yield meta
            return
        # Folder by folder: many servers of WebDAV refuse to list all at once, or cut such a list off.
        folders = [self._prefix]
        for folder in folders:
            try:
                with _translated_errors(self._name(folder)):
                    listed = await self._store.list_with_delimiter_async(folder)
            except (ConfigurationError, Unavailable) as error:
                if folder == self._prefix or len(unread) == MOST_FAILURES:
                    raise
                unread[self._name(folder)] = error.message
                continue
            folders += listed["common_prefixes"]
            for meta in listed["objects"]:
                yield meta

    async def _load(self, key: str, max_bytes: int) -> bytes:
        with _translated_errors(self.address):
            try:
                found = await self._store.get_async(key)
            except FileNotFoundError as error:
                raise NotFound(f"{key} is not there any more.") from error
            check_size(found.meta["size"], max_bytes)
            return bytes(await found.bytes_async())

    def _stamp(self, key: str) -> str:
        """Return the version of an object, with its sidecar's."""
        metas = [self._found[name] for name in (key, key + SUFFIX) if name in self._found]
        return " ".join(f"{meta['e_tag'] or meta['last_modified'].isoformat()}:{meta['size']}" for meta in metas)

    def _name(self, key: str) -> str:
        return f"{self._root}/{quote(key) if isinstance(self._store, HTTPStore) else key}"


@asynccontextmanager
async def open_bucket(address: str, opening: Opening) -> AsyncIterator[ObjectFolder]:
    """Open `s3://BUCKET/PREFIX`."""
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    with _translated_errors(address):
        store = S3Store(bucket, client_options=CLIENT, retry_config=RETRY)  # type: ignore[arg-type]
    yield ObjectFolder(store, f"s3://{bucket}", prefix.strip("/"), opening.max_bytes)


@asynccontextmanager
async def open_webdav(address: str, opening: Opening) -> AsyncIterator[ObjectFolder]:
    """Open `webdavs://HOST/FOLDER`, which is https, or `webdav://HOST/FOLDER`, which is http."""
    scheme, _, place = address.partition("://")
    host, _, folder = place.partition("/")
    root = f"{'https' if scheme == 'webdavs' else 'http'}://{host}"
    options = dict(CLIENT)
    if opening.login:
        login = base64.b64encode(":".join(opening.login).encode()).decode()
        options["default_headers"] = {"authorization": f"Basic {login}"}
    with _translated_errors(address):
        store = HTTPStore(root, client_options=options, retry_config=RETRY)  # type: ignore[arg-type]
    yield ObjectFolder(store, root, unquote(folder).strip("/"), opening.max_bytes)


@contextmanager
def _translated_errors(address: str) -> Iterator[None]:
    try:
        yield
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise ConfigurationError(
            f"{address} may not be read. Check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or, for WebDAV, "
            "ASKGRAPH_SYNC_LOGIN."
        ) from error
    except (BaseError, FileNotFoundError, TimeoutError, ValueError) as error:
        raise Unavailable(f"{address} cannot be read: {shorten(error)}") from error
