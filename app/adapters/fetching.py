"""Fetches by HTTP what others name: pages of websites, files behind WebDAV, the keys of identity providers.

No redirect is followed unless it stays within the place that was named, bodies are bounded, and so is time.
"""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import httpx

from domain.errors import OversizedDocument, Unavailable, UnreadableDocument

AGENT = "askgraph"
SECONDS = 3600.0
"""Limit of the time that looking for files takes, and again of the time that fetching them takes."""
REQUEST_SECONDS = 60.0
MOST_REDIRECTS = 5
MOST_FAILURES = 5
"""Failures in a row after which a server is left alone."""
GONE = frozenset({404, 410})

_HEADERS = {
    "User-Agent": f"{AGENT}/{version('askgraph')}",
    "Accept-Encoding": "gzip",  # others make so many bytes of one that a limit would notice too late
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server has answered."""

    url: str
    """The last one that was asked, after redirects, or the first that leads elsewhere."""
    status: int
    """404 where a redirect leads elsewhere."""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


def new_client(
    login: tuple[str, str] | None = None, seconds: float = REQUEST_SECONDS, *, trust_env: bool = True
) -> httpx.AsyncClient:
    """Return a client for `fetch`, which follows no redirect by itself, and asks the proxy of the environment only if
    `trust_env`."""
    return httpx.AsyncClient(headers=_HEADERS, auth=login, timeout=seconds, trust_env=trust_env)


async def fetch(
    client: httpx.AsyncClient,
    url: str,
    most: int,
    *,
    method: str = "GET",
    reads: Callable[[Answer], bool] = lambda answer: answer.status == 200,
    **options: Any,
) -> Answer:
    """Ask once. The body is read where `reads` says so, up to `most` bytes.

    Raises `OversizedDocument`, `UnreadableDocument`, and what httpx raises.
    """
    async with client.stream(method, url, **options) as response:
        answer = Answer(url, response.status_code, response.headers)
        if not reads(answer):
            return answer
        if response.headers.get("content-encoding", "gzip") not in ("gzip", "identity"):
            raise UnreadableDocument(f"{url} is compressed in another way than was asked for.")
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > most:
                raise OversizedDocument(f"{url} has more than {most / 1e6:.1f} MB.")
        return Answer(url, answer.status, answer.headers, bytes(body))


class Fetcher:
    """Fetches what is in one place, one request at a time."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.pause = 0.0
        """Seconds before each request."""
        self.allows: Callable[[str], bool] = lambda url: True
        """Whether a redirect to this address may be followed."""
        self._spent = 0.0
        self._failures = 0

    def begin(self) -> None:
        """Begin to count the time again."""
        self._spent = 0.0

    @property
    def has_time(self) -> bool:
        """True until the time is spent."""
        return self._spent + self.pause <= SECONDS

    async def fetch(self, url: str, most: int, *, within: str, **options: Any) -> Answer:
        """Ask for an address, and follow redirects `within` that one; see `fetch`.

        Raises `OversizedDocument` for more than `most` bytes, `UnreadableDocument` where there is no answer, and
        `Unavailable` where there was none several times, or all takes too long.
        """
        for _ in range(MOST_REDIRECTS):
            if self._failures >= MOST_FAILURES or not self.has_time:
                why = "takes more than an hour" if self._failures < MOST_FAILURES else "does not answer"
                raise Unavailable(f"{within} {why}. Call this again to go on.")
            started = time.monotonic()
            await asyncio.sleep(self.pause)
            try:
                async with asyncio.timeout(REQUEST_SECONDS):
                    answer = await fetch(self._client, url, most, **options)
            except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
                self._failures += 1
                raise UnreadableDocument(f"{url} did not answer: {error or type(error).__name__}.") from error
            finally:
                self._spent += time.monotonic() - started
            self._failures = self._failures + 1 if answer.status == 429 or answer.status >= 500 else 0
            if not 300 < answer.status < 304 and answer.status not in (307, 308):
                return answer
            target = normalise(answer.headers.get("location", ""), url)
            if target is None or not is_within(target, within) or not self.allows(target):
                return Answer(target or url, 404)
            url = target
        raise UnreadableDocument(f"{url} redirects too often.")


def normalise(link: str, base: str = "") -> str | None:
    """Return the address of a page without its fragment; None for anything else."""
    try:
        url = httpx.URL(urljoin(base, link.strip()))
    except (ValueError, httpx.InvalidURL):
        return None
    is_page = url.scheme in ("http", "https") and url.host and not url.userinfo
    return f"{url.scheme}://{url.netloc.decode()}{url.raw_path.decode()}" if is_page else None


def is_within(url: str, folder: str) -> bool:
    """Return True for an address below that of a folder, also for a server that takes `%2e%2e%2f` for `../`."""
    is_way_out = ".." in re.split(r"[/\\]", unquote(urlsplit(url).path))
    return not is_way_out and (url.startswith(folder) or f"{url}/" == folder)
