"""Talks to the running server, so that a command need not load models and open everything again."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from app.api.sse import read_frames
from app.serving.address import find_server
from app.settings import Settings, reveal
from domain.errors import AskgraphError, InputError, NotFound, Unavailable
from domain.events import Event

SILENCE_SECONDS = 60.0
"""Longest silence of the server. While a run works, it sends a comment every 15 seconds."""

ERRORS: dict[int, type[AskgraphError]] = {404: NotFound, 413: InputError, 422: InputError}
"""The kind of error by the response's status, where it is not just `AskgraphError`."""


class ServerClient:
    """Calls the HTTP API of one server. Each request has its own connection.

    Raises the server's error as `NotFound`, `InputError` or `AskgraphError`, and `Unavailable` if the connection fails.
    """

    def __init__(self, url: str, key: str) -> None:
        address = urlsplit(url)
        self._key = key
        self._host, self._port = address.hostname or "", address.port

    @classmethod
    def find(cls, settings: Settings) -> "ServerClient | None":
        """Return a client of the server that runs in the home with these settings, or None if there is none."""
        address = find_server(settings)
        return None if address is None else cls(address.url, reveal(settings.api_key) or address.token)

    def get(self, *path: str, **query: Any) -> Any:
        """Return what a GET of the path answers. Values that are None are left out of the query."""
        return self._read("GET", path, query)

    def post(self, *path: str, body: dict[str, Any], **query: Any) -> Any:
        """Send a POST, and return what it answers."""
        return self._read("POST", path, query, json.dumps(body))

    def patch(self, *path: str, body: dict[str, Any], **query: Any) -> Any:
        """Send a PATCH, and return what it answers."""
        return self._read("PATCH", path, query, json.dumps(body))

    def delete(self, *path: str, **query: Any) -> Any:
        """Send a DELETE, and return what it answers."""
        return self._read("DELETE", path, query)

    def stream(self, *path: str, body: dict[str, Any]) -> Iterator[Event]:
        """Send a POST and yield the events of the run that it starts, as they come."""
        connection = self._connect()
        try:
            response = self._send(connection, "POST", f"{_join(path)}?stream=true", json.dumps(body))
            for frame in read_frames(line.decode() for line in response):
                yield frame.event
        except (OSError, HTTPException) as error:
            raise Unavailable(f"The connection to the running server broke: {error}.") from error
        finally:
            connection.close()

    def download(self, *path: str, **query: Any) -> bytes:
        """Return the content that a GET of the path answers."""
        return self._fetch("GET", path, query)

    def _read(self, method: str, path: tuple[str, ...], query: dict[str, Any], body: str | None = None) -> Any:
        content = self._fetch(method, path, query, body)
        return json.loads(content) if content else None

    def _fetch(self, method: str, path: tuple[str, ...], query: dict[str, Any], body: str | None = None) -> bytes:
        given = {name: value for name, value in query.items() if value is not None}
        connection = self._connect()
        try:
            return self._send(connection, method, f"{_join(path)}?{urlencode(given, doseq=True)}", body).read()
        except (OSError, HTTPException) as error:
            raise Unavailable(f"The connection to the running server broke: {error}.") from error
        finally:
            connection.close()

    def _connect(self) -> HTTPConnection:
        return HTTPConnection(self._host, self._port, timeout=SILENCE_SECONDS)

    def _send(self, connection: HTTPConnection, method: str, target: str, body: str | None = None) -> HTTPResponse:
        headers = {"Authorization": f"Bearer {self._key}"} | ({"Content-Type": "application/json"} if body else {})
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        if response.status >= 400:
            error = json.loads(response.read())["error"]
            raise ERRORS.get(response.status, AskgraphError)(error["message"])
        return response


def _join(path: tuple[str, ...]) -> str:
    return "/api/" + "/".join(quote(part, safe="") for part in path)
