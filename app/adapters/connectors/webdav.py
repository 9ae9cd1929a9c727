"""The connector of folders behind WebDAV: only what lies in the folder that was named, on its host."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urljoin, urlsplit

from lxml import etree

from app.adapters.connectors.remote_folders import MOST_FILES, File, RemoteFolder
from app.adapters.fetching import GONE, MOST_FAILURES, Answer, Fetcher, is_within, new_client, normalise
from app.ingest.readers.archives import parse_xml
from domain.errors import ConfigurationError, DocumentError, InputError, NotFound, Unavailable, UnreadableDocument
from domain.ports.connectors import Opening

LISTING_BYTES = 50_000_000
_ASKED = {
    "method": "PROPFIND",
    "headers": {"Depth": "1", "Content-Type": "application/xml"},
    "content": b'<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/><getetag/></prop>'
    b"</propfind>",
    "reads": lambda answer: answer.status == 207,
}


class WebdavFolder(RemoteFolder):
    """The files in a folder and in the folders in it."""

    quotes = True

    def __init__(self, root: str, folder: str, fetcher: Fetcher, max_bytes: int) -> None:
        """`root` is the address of the host."""
        super().__init__(root, folder, max_bytes)
        self._fetcher = fetcher

    async def _walk(self, unread: dict[str, str]) -> AsyncIterator[tuple[str, File]]:
        # Folder by folder: many servers refuse to list all at once, or cut such a list off.
        folders = dict.fromkeys([self._prefix])
        for folder in (waiting := [*folders]):
            address = self._address_of(folder)
            try:
                answer = await self._ask(f"{address}/", LISTING_BYTES, **_ASKED)
                if answer.status != 207:
                    raise UnreadableDocument(f"{address} answers {answer.status} to a client of WebDAV.")
                listed = [*_read_listing(answer)]
            except (DocumentError, ConfigurationError) as error:
                if folder == self._prefix and isinstance(error, DocumentError):
                    raise Unavailable(f"{address} cannot be listed. {error.message}") from error
                if folder == self._prefix or len(unread) == MOST_FAILURES:
                    raise
                unread[address] = error.message
                continue
            for href, file in listed:
                name = self._find_name(href, answer.url)
                if name is None:
                    unread[href] = "It leads out of the folder, and is not read."
                elif file is not None:
                    yield name, file
                elif name not in folders and len(folders) < MOST_FILES:
                    folders[name] = None
                    waiting.append(name)

    def _find_name(self, href: str, base: str) -> str | None:
        """Return the name of what a server has listed; None where it lies elsewhere."""
        # Servers behind a proxy may name another scheme, but no other host.
        host = urlsplit(href).netloc
        url = normalise(urlsplit(urljoin(base, href)).path, self._root)
        name = url and self._name_of(url).strip("/")
        if name is None or host not in ("", urlsplit(self._root).netloc):
            return None
        return name if is_within(self._address_of(name), f"{self.address}/") else None

    async def _load(self, name: str, max_bytes: int) -> bytes:
        answer = await self._ask(self._address_of(name), max_bytes)
        if answer.status in GONE:
            raise NotFound(f"{name} is not there any more.")
        if answer.status != 200:
            raise UnreadableDocument(f"The server answers {answer.status}.")
        return answer.body

    async def _ask(self, address: str, most: int, **options: object) -> Answer:
        within = f"{self.address}/"
        answer = await self._fetcher.fetch(address, most, within=within, **options)
        if answer.status in (401, 403):
            raise ConfigurationError(f"{address} may not be read. Check ASKGRAPH_SYNC_LOGIN.")
        if not is_within(answer.url, within):
            raise UnreadableDocument(f"It leads out of the folder, to {answer.url}, which is not followed.")
        return answer


@asynccontextmanager
async def open_webdav(address: str, opening: Opening) -> AsyncIterator[WebdavFolder]:
    """Open `webdavs://HOST/FOLDER`, which is https, or `webdav://HOST/FOLDER`, which is http. Raises `InputError`."""
    scheme, _, place = address.partition("://")
    url = normalise(f"{'https' if scheme == 'webdavs' else 'http'}://{place}")
    if url is None or "?" in url:
        raise InputError(f"{address} is no address of a folder.")
    root = urljoin(url, "/").rstrip("/")
    async with new_client(opening.login) as client:
        yield WebdavFolder(root, unquote(urlsplit(url).path).strip("/"), Fetcher(client), opening.max_bytes)


def _read_listing(answer: Answer) -> Iterator[tuple[str, File | None]]:
    """Yield the address of each entry, with what is said of a file; None: it is a folder. Raises
    `UnreadableDocument`."""
    try:
        root = parse_xml(answer.body)
    except etree.XMLSyntaxError as error:
        raise UnreadableDocument(f"A list is damaged: {error}.") from error
    for response in root.iterfind("{DAV:}response"):
        found = [each for each in response.iterfind("{DAV:}propstat") if " 200" in each.findtext("{DAV:}status", "")]
        prop = found[0].find("{DAV:}prop") if found else None
        if prop is not None:
            is_folder = prop.find("{DAV:}resourcetype/{DAV:}collection") is not None
            yield response.findtext("{DAV:}href", "").strip(), None if is_folder else _read_file(prop)


def _read_file(prop: etree._Element) -> File:
    size, changed = prop.findtext("{DAV:}getcontentlength", ""), None
    with suppress(ValueError):
        changed = parsedate_to_datetime(prop.findtext("{DAV:}getlastmodified", ""))
    return File(changed, int(size) if size.isdecimal() else 0, prop.findtext("{DAV:}getetag"))
