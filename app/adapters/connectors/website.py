"""The connector of websites: of the pages that a sitemap lists or, without one, that links lead to.

Only the host that was named is asked, for addresses below the one that was named, as its robots.txt allows, and one at
a time. What leads elsewhere, by a link, a redirect or a sitemap, is not followed.
"""

import gzip
import hashlib
import io
import mimetypes
import re
import zlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import httpx
from lxml import etree
from protego import Protego

from app.adapters.fetching import AGENT, GONE, Answer, Fetcher, is_within, new_client, normalise
from app.ingest.decoding import decode
from app.ingest.formats import find_format, find_format_by_media_type
from app.ingest.readers.archives import parse_xml
from app.ingest.readers.web.markup import parse_html
from domain.errors import DocumentError, InputError, NotFound, Unavailable, UnreadableDocument
from domain.ports.connectors import Content, Entry, Listing, Opening

PAUSE = 0.5
"""Seconds before each request, unless robots.txt asks for more."""
MOST_SITEMAPS = 50
SITEMAP_BYTES = 50_000_000
"""What a sitemap may have by its protocol."""
ROBOTS_BYTES = 500_000
"""What crawlers have to read of it (RFC 9309, section 2.5)."""
KEPT_BYTES = 64_000_000
"""Limit of the pages that are kept from when their links are read until they are stored. Others are fetched again."""

_SITEMAP = re.compile(rb"<(?:\w{1,20}:)?(urlset|sitemapindex)\b")
_OTHER_FILES = mimetypes.MimeTypes()  # without those that this machine has been told of


class Website:
    """Implements `Connector`."""

    def __init__(self, address: str, client: httpx.AsyncClient, opening: Opening) -> None:
        """Raises `InputError` for what is no address of a website."""
        start = normalise(address)
        if start is None:
            raise InputError(f"{address} is no address of a website.")
        self._start, self._origin = start, urljoin(start, "/")
        path = start.partition("?")[0]
        # The name of a file stands for the folder that it is in.
        self.address = urljoin(path, ".") if path.endswith("/") or find_format(path) else f"{path}/"
        self._fetcher, self._opening = Fetcher(client), opening
        self._fetcher.pause = PAUSE
        self._fetcher.allows = lambda url: self._robots.can_fetch(url, AGENT)
        self._robots = Protego.parse("")
        self._kept: dict[str, Answer] = {}
        self._gap: str | None = None
        self._unread: dict[str, str] = {}

    async def list(self) -> Listing:
        self._fetcher.begin()
        self._gap, self._unread = None, {}
        try:
            await self._read_robots()
            found = await self._read_sitemaps() or await self._follow_links()
        except DocumentError as error:
            raise Unavailable(f"{self.address} cannot be listed. {error.message}") from error
        self._fetcher.begin()
        entries = [entry for entry in found if self._robots.can_fetch(entry.source, AGENT)]
        most = self._opening.max_pages
        if len(entries) > most:
            self._gap = f"Only {most:,} pages were looked at; --pages raises this limit."
        gap = self._gap or ("Some pages could not be read." if self._unread else None)
        return Listing(entries[:most], len(found) - len(entries), gap, self._unread)

    async def read(self, entry: Entry, known: str | None) -> Content | None:
        ask, _, value = (known or "").partition(" ")
        is_asked = entry.version is None and ask in ("If-None-Match", "If-Modified-Since")
        answer = self._kept.pop(entry.source, None) or await self._fetcher.fetch(
            entry.source, self._opening.max_bytes, within=self.address, headers={ask: value} if is_asked else None
        )
        if answer.status == 304 and is_asked:
            return None
        if answer.status in GONE:
            raise NotFound(f"{entry.source} is not there any more.")
        if answer.status != 200:
            raise UnreadableDocument(f"The server answers {answer.status}.")
        version = _find_version(answer)
        if entry.version is None and version == known:
            return None
        return Content(answer.body, version, answer.headers.get("content-type"))

    async def _read_robots(self) -> None:
        self._robots = Protego.parse("")
        robots = await self._fetcher.fetch(f"{self._origin}robots.txt", ROBOTS_BYTES, within=self._origin)
        if robots.status == 429 or robots.status >= 500:  # with others there is none (RFC 9309, section 2.3.1)
            raise UnreadableDocument(f"Its robots.txt answers {robots.status}.")
        self._robots = Protego.parse(robots.body.decode("utf-8", "replace"))
        self._fetcher.pause = max(PAUSE, self._robots.crawl_delay(AGENT) or 0)
        if not self._robots.can_fetch(self._start, AGENT):
            raise InputError(f"The robots.txt of {self._origin} asks programs not to read {self._start}.")

    async def _read_sitemaps(self) -> Sequence[Entry]:
        """Return the pages of all sitemaps that robots.txt names, or of those at the usual places."""
        named = [url for each in self._robots.sitemaps if (url := normalise(each)) and url.startswith(self._origin)]
        usual = [] if named else [f"{self.address}sitemap.xml", f"{self._origin}sitemap.xml"]
        waiting = deque(dict.fromkeys(named or usual))
        pages: dict[str, Entry] = {}
        for _ in range(MOST_SITEMAPS):
            if not waiting or len(pages) > self._opening.max_pages:
                break
            url = waiting.popleft()
            try:
                answer = await self._fetcher.fetch(url, SITEMAP_BYTES, within=self._origin)
                if answer.status not in (200, *GONE):
                    raise UnreadableDocument(f"Its sitemap {url} answers {answer.status}.")
                body = _unpack(answer.body)
                if (kind := _SITEMAP.search(body)) is None:
                    if url in usual:
                        continue
                    raise UnreadableDocument("There is no sitemap.")
                listed = _parse_sitemap(body)
            except DocumentError as error:
                self._unread[url] = error.message
                continue
            for place, changed in listed:
                address = normalise(place, url)
                if kind[1] == b"sitemapindex" and address and address.startswith(self._origin):
                    waiting.append(address)
                elif kind[1] == b"urlset" and address and self._is_page(address):
                    pages[address] = Entry(address, changed)
        if waiting:
            self._gap = f"{len(waiting):,} sitemaps were not read."
        if self._unread and not pages:
            raise UnreadableDocument(" ".join(self._unread.values()))
        return [*pages.values()]

    async def _follow_links(self) -> Sequence[Entry]:
        """Return the pages that links lead to, breadth first. Those with a query are left out: they show the same."""
        entries: dict[str, Entry] = {}
        self._kept.clear()
        kept = 0
        seen = {self._start}
        waiting = deque(seen)
        for _ in range(self._opening.max_pages):
            if not waiting or not self._fetcher.has_time:
                break
            url = waiting.popleft()
            known = find_format(url)
            if (known and not known.is_text) or not self._robots.can_fetch(url, AGENT):
                entries[url] = Entry(url, None)  # has no links, or is left out when all are known
                continue
            try:
                answer = await self._fetcher.fetch(url, self._opening.max_bytes, within=self.address, reads=_is_html)
                is_listed, links = _read_links(answer)
            except DocumentError as error:
                self._unread[url] = error.message
                continue
            if answer.status != 200:
                if url == self._start:
                    raise InputError(f"{url} answers {answer.status}. It leads to {answer.url}.")
                if answer.status not in GONE:
                    self._unread[url] = f"The server answers {answer.status}."
            elif is_listed and answer.url not in entries and _find_format(answer):
                seen.add(answer.url)
                entries[answer.url] = Entry(answer.url, None)
                kept += len(answer.body)
                if answer.body and kept <= KEPT_BYTES:
                    self._kept[answer.url] = answer
            fresh = dict.fromkeys(link for link in links if link and "?" not in link and self._is_page(link))
            waiting += [link for link in fresh if link not in seen]
            seen |= fresh.keys()
        if waiting:
            self._gap = f"{len(waiting):,} links were not followed, for want of time or because of --pages."
        return [*entries.values()]

    def _is_page(self, url: str) -> bool:
        """Return True for an address that may be a document's, below the one that was named."""
        known = find_format(url)
        is_other = known is None and _OTHER_FILES.guess_type(url.partition("?")[0])[0] is not None
        is_decoration = known is not None and known.is_picture
        return is_within(url, self.address) and not is_other and not is_decoration


@asynccontextmanager
async def open_website(address: str, opening: Opening) -> AsyncIterator[Website]:
    """Open `http://…` or `https://…`. Raises `InputError`."""
    async with new_client(opening.login) as client:
        yield Website(address, client, opening)


def _find_format(answer: Answer) -> str | None:
    """Return the name of an answer's format; None where we read no such files."""
    found = find_format_by_media_type(answer.headers.get("content-type"))
    return found.name if found else None


def _is_html(answer: Answer) -> bool:
    return answer.status == 200 and _find_format(answer) == "HTML"


def _unpack(sitemap: bytes) -> bytes:
    """Raises `DocumentError`."""
    if not sitemap.startswith(b"\x1f\x8b"):
        return sitemap
    try:
        return gzip.open(io.BytesIO(sitemap)).read(SITEMAP_BYTES)  # cut off, it cannot be parsed
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableDocument(f"A sitemap is damaged: {error}.") from error


def _parse_sitemap(data: bytes) -> Sequence[tuple[str, str | None]]:
    """Return addresses, and when what is there was changed last, if it says so. Raises `DocumentError`."""
    try:
        root = parse_xml(data)
    except etree.XMLSyntaxError as error:
        raise UnreadableDocument(f"A sitemap is damaged: {error}.") from error
    return [(each.findtext("{*}loc", ""), each.findtext("{*}lastmod", "").strip()[:40] or None) for each in root]


def _read_links(answer: Answer) -> tuple[bool, Sequence[str | None]]:
    """Return whether a web page may be listed, and the addresses that it links to. Raises `UnreadableDocument` for one
    that cannot be parsed."""
    tree = parse_html(decode(answer.body))
    is_listed = not any(
        "noindex" in (tag.attributes["content"] or "") for tag in tree.css("meta[name=robots][content]")
    )
    base = tree.css_first("base[href]")
    start = normalise(base.attributes["href"] or "", answer.url) if base else None
    links = [normalise(link.attributes["href"] or "", start or answer.url) for link in tree.css("a[href]")]
    return is_listed, links


def _find_version(answer: Answer) -> str:
    """Return how to ask whether a page is still the same; the hash of its body where the server says nothing."""
    for ask, header in (("If-None-Match", "etag"), ("If-Modified-Since", "last-modified")):
        value = answer.headers.get(header, "")
        if 0 < len(value) < 256 and value.isascii():
            return f"{ask} {value}"
    return f"sha256 {hashlib.sha256(answer.body).hexdigest()}"
