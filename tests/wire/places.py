"""Servers on loopback of places that documents come from: a website, and a folder behind WebDAV."""

import hashlib
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from wsgidav.wsgidav_app import WsgiDAVApp

from tests.wire.serving import serve_app

USER, PASSWORD = "reader", "secret-of-reader"


@dataclass
class Site:
    """A website, whose answers are what `pages` says."""

    address: str = ""
    pages: dict[str, Response] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The paths that were asked for, with the status that they were answered with."""

    def write(self, path: str, body: str, media_type: str = "text/html", **headers: str) -> None:
        etag = f'"{hashlib.sha256(body.encode()).hexdigest()}"'
        self.pages[path] = Response(body, media_type=media_type, headers={"ETag": etag} | headers)

    def write_sitemap(self, *paths: str, path: str = "/sitemap.xml") -> None:
        """Each of the paths may be followed by a space and a time."""
        urls = [each.partition(" ") for each in paths]
        listed = "".join(
            f"<url><loc>{self.address}{url}</loc>{f'<lastmod>{day}</lastmod>' if day else ''}</url>"
            for url, _, day in urls
        )
        namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
        self.write(path, f'<?xml version="1.0"?><urlset xmlns="{namespace}">{listed}</urlset>', "application/xml")

    def list_folder(self, path: str, *entries: str) -> None:
        """Answer a client of WebDAV; entries that end with a slash are folders."""
        said = "".join(
            f"<D:response><D:href>{each}</D:href><D:propstat><D:prop>"
            f"<D:resourcetype>{'<D:collection/>' if each.endswith('/') else ''}</D:resourcetype></D:prop>"
            "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
            for each in (path, *entries)
        )
        self.pages[path] = Response(f'<D:multistatus xmlns:D="DAV:">{said}</D:multistatus>', 207)

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        found = self.pages.get(path, Response("Not here.", 404))
        if request.headers.get("if-none-match") == found.headers.get("etag", ""):
            found = Response(status_code=304)
        self.asked.append(f"{path} {found.status_code}")
        return found


@asynccontextmanager
async def serve_site() -> AsyncIterator[Site]:
    site = Site()
    async with serve_app(
        Starlette(routes=[Route("/{path:path}", site.answer, methods=["GET", "PROPFIND"])])
    ) as address:
        site.address = address
        yield site


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None: ...


@contextmanager
def serve_webdav(folder: Path) -> Iterator[str]:
    """Serve a folder to `USER`, and give its host and port."""
    options = {
        "provider_mapping": {"/": str(folder)},
        "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
        "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
        "verbose": 0,
    }
    with make_server("127.0.0.1", 0, WsgiDAVApp(options), _Server, _Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
