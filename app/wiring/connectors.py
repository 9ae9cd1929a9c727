"""The places that `askgraph sync` keeps a workspace in step with. To add a kind of place, write a connector in
`app/adapters/connectors/` and add its scheme to `CONNECTORS`; what LangChain has a loader for is named in a file."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from app.ingest.folder import Folder
from app.settings import Settings, reveal
from domain.errors import ConfigurationError, InputError
from domain.ports.connectors import Connector, Opening

if TYPE_CHECKING:
    from app.adapters.connectors.loaders import Source

CONNECTORS = {
    "http": "website:open_website",
    "https": "website:open_website",
    "s3": "objects:open_bucket",
    "webdav": "webdav:open_webdav",
    "webdavs": "webdav:open_webdav",
}
"""`module:function` in `app.adapters.connectors`, by the scheme of addresses. Imported on first use, because some need
optional packages."""


def find_source(place: str, settings: Settings) -> "Source | None":
    """Return what the file of sources has under this name. Raises `ConfigurationError`."""
    if settings.sources is None:
        return None
    from app.adapters.connectors.loaders import read_source

    return read_source(settings.sources, place)


@asynccontextmanager
async def open_connector(
    place: str, settings: Settings, *, max_pages: int, source: "Source | None" = None
) -> AsyncIterator[Connector]:
    """Open a source, a folder, or what the address names. Raises `InputError` and `ConfigurationError`."""
    max_bytes = settings.max_document_mb * 1_000_000
    if source is not None:
        from app.adapters.connectors.loaders import open_loader

        async with open_loader(place, source, Opening(max_bytes=max_bytes)) as loader:
            yield loader
        return
    if not (scheme := re.match(r"([a-z][a-z0-9+.-]*)://([^/?#]*)", place)):
        yield Folder(Path(place), max_bytes)
        return
    host = scheme[2]
    if "@" in host:
        raise InputError("An address holds no password. Set ASKGRAPH_SYNC_LOGIN or, for a bucket, AWS_*.")
    if scheme[1] not in CONNECTORS:
        raise InputError(
            f"{scheme[1]}:// is no kind of place that is known. Name a folder, or one of {', '.join(CONNECTORS)}."
        )
    login, _, asked_by = reveal(settings.sync_login).rpartition("@")
    user, _, password = login.partition(":")
    module, _, function = CONNECTORS[scheme[1]].partition(":")
    try:
        found = import_module(f"app.adapters.connectors.{module}")
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{scheme[1]}:// needs the package {error.name}. Install askgraph[s3].") from error
    opening = Opening((user, password) if asked_by == host else None, max_bytes, max_pages)
    async with getattr(found, function)(place, opening) as connector:
        yield connector
