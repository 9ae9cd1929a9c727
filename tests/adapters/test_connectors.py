"""Places that documents come from, each behind a server of its own."""

import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest
import pytest_asyncio
from obstore.store import S3Store
from starlette.responses import RedirectResponse, Response
from wsgidav.dav_provider import DAVCollection

from app.adapters import fetching
from app.adapters.connectors import website
from app.settings import read_settings
from app.wiring.connectors import open_connector
from app.wiring.services import Services
from domain.errors import ConfigurationError, InputError, Unavailable
from domain.ports.connectors import Connector, Entry
from tests.ingest.synced_library import list_names, sync_into
from tests.wire.places import PASSWORD, USER, Site, serve_site, serve_webdav
from tests.wire.s3 import BUCKET, Bucket


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(website, "PAUSE", 0)


def opened(address: str, max_pages: int = 1000) -> AbstractAsyncContextManager[Connector]:
    return open_connector(address, read_settings(max_document_mb=1), max_pages=max_pages)


class Place(Protocol):
    address: str

    async def write(self, name: str, text: str) -> None: ...
    async def remove(self, name: str) -> None: ...


class ConnectorContract:
    """What every connector does. An adapter's tests inherit from it and provide `place`."""

    async def test_a_workspace_follows_a_place(self, place: Place, services: Services) -> None:
        await place.write("a.md", "The apple is here.")
        await place.write("deep/er/b_u\u0308.md", "The banana is here.")
        await place.write("deep/picture.gif", "not for us")
        async with opened(place.address) as connector:
            assert [action for action, _ in await sync_into(services, connector)] == ["added", "added"]
            [first, second] = await list_names(services, connector)
            assert first == "a.md"
            assert second.startswith("deep/er/b_")
            assert "\u0308" not in second
            assert await sync_into(services, connector, calls=0) == []
            await place.write("a.md", "The apricot is here, and is not an apple.")
            await place.write("c.md", "The cherry is here.")
            assert set(await sync_into(services, connector)) == {("changed", "a.md"), ("added", "c.md")}
            await place.remove("deep/er/b_u\u0308.md")
            assert await sync_into(services, connector) == [("removed", second)]
            assert await list_names(services, connector) == ["a.md", "c.md"]

    async def test_what_is_too_large_is_not_read(self, place: Place, services: Services) -> None:
        await place.write("a.md", "x" * 1_000_001)
        async with opened(place.address) as connector:
            assert await sync_into(services, connector) == [("failed", "a.md")]


class TestBucket(ConnectorContract):
    @pytest.fixture
    def place(self, bucket: Bucket) -> "InBucket":
        return InBucket(S3Store(BUCKET, client_options={"allow_http": True}))

    async def test_a_failed_listing_deletes_nothing(self, place: Place, services: Services, bucket: Bucket) -> None:
        await place.write("a.md", "The apple is here.")
        async with opened(place.address) as connector:
            await sync_into(services, connector)
            await bucket.stop()
            with pytest.raises(Unavailable):
                await sync_into(services, connector, delete=True)
            assert await list_names(services, connector) == ["a.md"]

    async def test_metadata_lie_beside(self, place: Place, services: Services) -> None:
        await place.write("a.md", "The apple is here.")
        async with opened(place.address) as connector:
            await sync_into(services, connector)
            await place.write("a.md.meta.json", '{"team": "fruit"}')
            assert await sync_into(services, connector) == [("changed", "a.md")]
        [document] = await services.library.documents.list("default")
        assert document.metadata["team"] == "fruit"


class InBucket:
    address = f"s3://{BUCKET}/team"

    def __init__(self, store: S3Store) -> None:
        self._store = store

    async def write(self, name: str, text: str) -> None:
        await self._store.put_async(f"team/{name}", text.encode())

    async def remove(self, name: str) -> None:
        await self._store.delete_async(f"team/{name}")


class TestWebdav(ConnectorContract):
    @pytest.fixture
    def place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["InWebdav"]:
        with serve_webdav(tmp_path) as host:
            monkeypatch.setenv("ASKGRAPH_SYNC_LOGIN", f"{USER}:{PASSWORD}@{host}")
            yield InWebdav(f"webdav://{host}/the%20team", tmp_path / "the team")

    async def test_a_folder_that_cannot_be_listed_loses_nothing(
        self, place: Place, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await place.write("deep/a.md", "The apple is here.")
        await place.write("other/b.md", "The banana is here.")
        await place.write("c.md", "The cherry is here.")
        async with opened(place.address) as connector:
            await sync_into(services, connector)
            await place.remove("c.md")
            await place.write("other/new.md", "The nut is here.")
            list_folder = DAVCollection.get_descendants

            def fail(folder: DAVCollection, **options: bool) -> Any:
                if folder.name == "deep":
                    raise OSError(5, "Input/output error")
                return list_folder(folder, **options)

            monkeypatch.setattr(DAVCollection, "get_descendants", fail)
            assert await sync_into(services, connector, delete=True) == [("failed", "deep"), ("added", "other/new.md")]
            assert await list_names(services, connector) == ["c.md", "deep/a.md", "other/b.md", "other/new.md"]

    async def test_a_password_is_for_its_host_alone(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ASKGRAPH_SYNC_LOGIN", f"{USER}:{PASSWORD}@cloud.example.org")
        async with opened(place.address) as connector:
            with pytest.raises(ConfigurationError, match="ASKGRAPH_SYNC_LOGIN"):
                await connector.list()

    async def test_nothing_outside_of_the_folder_is_read(self, site: Site, services: Services) -> None:
        host = site.address.partition("://")[2]
        inside = ["/team/a%20b.md", f"https://{host}/team/c.md", "/team/deep/", "/team/moved.md", "/team/away.md"]
        outside = [
            "/secret.md",
            "/team/../secret.md",
            "/team/%2e%2e/secret.md",
            "/team/..%2fsecret.md",
            "/team/..%5Csecret.md",
            "/team-of-others/secret.md",
            "http://127.0.0.1:1/team/secret.md",
            "//other.example/team/secret.md",
            "/team/deep/../../up/",
            "/",
        ]
        site.list_folder("/team/", *inside, *outside)
        site.list_folder("/team/deep/", "/team/deep/d.md", "/team/", "/team/deep/")
        for name in ("/team/a b.md", "/team/c.md", "/team/deep/d.md", "/secret.md", "/up/secret.md"):
            site.write(name, f"It is {name}.", "text/markdown")
        site.pages["/team/moved.md"] = RedirectResponse("/team/c.md")
        site.pages["/team/away.md"] = RedirectResponse("/secret.md")
        async with opened(f"webdav://{host}/team") as connector:
            listing = await connector.list()
            assert listing.unread.keys() == {*outside}
            said = sorted(await sync_into(services, connector))
        added = [("added", name) for name in ("a%20b.md", "c.md", "deep/d.md", "moved.md")]
        assert [each for each in said if each[0] == "added"] == added
        assert ("failed", "away.md") in said
        assert not any("secret" in each or "up" in each for each in site.asked)
        assert {each.partition(" ")[0] for each in site.asked if "deep" in each} == {"/team/deep/", "/team/deep/d.md"}

    async def test_a_folder_that_leads_elsewhere_is_not_followed(self, site: Site) -> None:
        site.pages["/team/"] = RedirectResponse("/other/")
        site.list_folder("/other/", "/other/a.md")
        async with opened(f"webdav://{site.address.partition('://')[2]}/team") as connector:
            with pytest.raises(Unavailable, match="not followed"):
                await connector.list()
        assert site.asked == ["/team/ 307"]


class InWebdav:
    def __init__(self, address: str, folder: Path) -> None:
        self.address, self._folder = address, folder

    async def write(self, name: str, text: str) -> None:
        (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self._folder / name).write_text(text)

    async def remove(self, name: str) -> None:
        (self._folder / name).unlink()


@pytest_asyncio.fixture
async def site() -> AsyncIterator[Site]:
    async with serve_site() as site:
        yield site


class OnWebsite:
    """Pages that a sitemap lists."""

    def __init__(self, site: Site) -> None:
        self._site, self.address = site, f"{site.address}/docs/"

    async def write(self, name: str, text: str) -> None:
        self._site.write(f"/docs/{name}", text, "text/markdown")
        self._site.write_sitemap(*self._site.pages)

    async def remove(self, name: str) -> None:
        del self._site.pages[f"/docs/{name}"]
        self._site.write_sitemap(*self._site.pages)


class TestWebsite(ConnectorContract):
    @pytest.fixture
    def place(self, site: Site) -> OnWebsite:
        return OnWebsite(site)

    async def test_what_has_not_changed_is_not_sent_again(self, site: Site, services: Services) -> None:
        site.write("/a.html", "<h1>Apple</h1><p>The apple is here.")
        site.write("/b.html", "<h1>Banana</h1><p>The banana is here.")
        site.write_sitemap("/a.html 2024-05-01", "/b.html")
        async with opened(site.address) as connector:
            await sync_into(services, connector)
            [apple, _] = await services.library.documents.list("default")
            assert (apple.title, apple.metadata) == ("Apple", {})
            site.asked.clear()
            assert await sync_into(services, connector, calls=0) == []
            assert [each for each in site.asked if "html" in each] == ["/b.html 304"]

    async def test_a_page_that_is_gone_is_deleted_and_many_are_not(self, site: Site, services: Services) -> None:
        names = ["a.html", "b.html", "c.html"]
        for name in names:
            site.write(f"/{name}", f"<p>The {name} is here.")
        site.write_sitemap(*site.pages)
        async with opened(site.address) as connector:
            await sync_into(services, connector)
            del site.pages["/b.html"]
            assert await sync_into(services, connector) == [("removed", "b.html")]
            site.pages["/c.html"] = Response("Not now.", 503)
            assert await sync_into(services, connector) == [("failed", "c.html")]
            site.pages["/c.html"] = site.pages["/a.html"] = RedirectResponse("https://login.example.org/")
            with pytest.raises(InputError, match="--delete"):
                await sync_into(services, connector)
            site.pages["/sitemap.xml"] = Response("Not now.", 503)
            with pytest.raises(Unavailable, match="503"):
                await sync_into(services, connector, delete=True)
            assert await list_names(services, connector) == ["a.html", "c.html"]

    async def test_links_are_followed_below_the_address(self, site: Site, services: Services) -> None:
        elsewhere = "%2e%2e/secret.html ..%2fsecret.html .%2E\\\\secret.html ..%5csecret.html ../secret.html//h/x http://other.example/docs/x ?page=2 #top javascript:x http://[ picture.png"
        links = "".join(f"<a href='{link}'>" for link in ("b/", "c.pdf", "d", "login", "all", *elsewhere.split()))
        site.write("/docs/", f"<h1>Start</h1><p>The start is here. {links}")
        site.write("/docs/all", "<meta name=robots content=noindex><p>All is here. <a href='b/'>")
        site.write("/docs/b/", "<p>The banana is here. <a href='../e.html'> <a href='/docs/'>")
        site.write("/docs/c.pdf", "no PDF", "application/pdf")
        site.write("/docs/e.html", "<p>The elderberry is here.")
        site.write("/secret.html", "<p>The secret is here.")
        site.pages["/docs/d"] = RedirectResponse("/docs/b/")
        site.pages["/docs/login"] = RedirectResponse("/docs/%2e%2e/secret.html")
        async with opened(f"{site.address}/docs/") as connector:
            said = await sync_into(services, connector)
            assert sorted(said) == [("added", ""), ("added", "b/"), ("added", "e.html"), ("failed", "c.pdf")]
            assert site.asked.count("/docs/e.html 200") == 1
            assert not any("secret" in each or "picture" in each for each in site.asked)
            assert await sync_into(services, connector, calls=0) == []
            site.pages["/docs/b/"] = Response("Not now.", 503)
            assert await sync_into(services, connector) == [("failed", "b/"), ("failed", "d")]
            site.write("/docs/b/", "<p>The banana is here, and leads nowhere.")
            assert await sync_into(services, connector) == [("changed", "b/"), ("removed", "e.html")]

    async def test_a_sitemap_that_cannot_be_read_hides_only_its_own_pages(self, site: Site, services: Services) -> None:
        site.write("/a.html", "<p>The apple is here.")
        site.write("/b.html", "<p>The banana is here.")
        site.write_sitemap("/a.html", path="/1.xml")
        site.write_sitemap("/b.html", path="/2.xml")
        site.write("/robots.txt", f"Sitemap: {site.address}/1.xml\nSitemap: {site.address}/2.xml", "text/plain")
        async with opened(site.address) as connector:
            assert await sync_into(services, connector) == [("added", "a.html"), ("added", "b.html")]
            site.pages["/1.xml"] = Response("Not now.", 503)
            site.write("/b.html", "<p>The banana is not here.")
            assert await sync_into(services, connector, delete=True) == [("failed", "1.xml"), ("changed", "b.html")]
            assert await list_names(services, connector) == ["a.html", "b.html"]

    async def test_robots_are_heeded(self, site: Site, services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
        site.write("/a.html", "<p>The apple is here.")
        site.write("/private/b.html", "<p>The banana is here.")
        site.write_sitemap("/a.html", "/private/b.html", path="/map.xml")
        site.pages["/map.xml.gz"] = Response(gzip.compress(site.pages.pop("/map.xml").body))
        site.write("/maps.xml", f"<sitemapindex><sitemap><loc>{site.address}/map.xml.gz</loc></sitemap></sitemapindex>")
        rules = f"User-agent: askgraph\nDisallow: /priv*\nCrawl-delay: 7\nSitemap: {site.address}/maps.xml"
        site.write("/robots.txt", rules, "text/plain")
        pauses = []

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)

        async with opened(site.address) as connector:
            monkeypatch.setattr("app.adapters.fetching.asyncio.sleep", sleep)
            listing = await connector.list()
            assert (listing.entries, listing.passed_over) == ([Entry(f"{site.address}/a.html", None)], 1)
            assert pauses == [0, 7, 7]
            site.write("/robots.txt", "User-agent: *\nDisallow: /", "text/plain")
            with pytest.raises(InputError, match=r"robots\.txt"):
                await connector.list()
            site.pages["/robots.txt"] = Response("Not now.", 503)
            with pytest.raises(Unavailable):
                await connector.list()

    async def test_limits_are_said_and_delete_nothing(
        self, site: Site, services: Services, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("a", "b", "c"):
            site.write(f"/{name}.html", f"<p>The {name} is here.")
        site.write_sitemap(*site.pages)
        async with opened(site.address) as connector:
            await sync_into(services, connector)
            assert (await connector.list()).gap is None
        async with opened(site.address, max_pages=1) as connector:
            assert "--pages" in ((await connector.list()).gap or "")
            assert await sync_into(services, connector, delete=True) == []
            assert len(await list_names(services, connector)) == 3
            monkeypatch.setattr(fetching, "SECONDS", -1)
            with pytest.raises(Unavailable, match="hour"):
                await connector.list()


@pytest.mark.parametrize("place", ["https://me:secret-word@docs.example.org/", "ftp://docs.example.org/"])
async def test_an_address_that_cannot_be_used_is_refused(place: str) -> None:
    with pytest.raises(InputError) as raised:
        async with opened(place):
            pass
    assert "secret-word" not in raised.value.message
