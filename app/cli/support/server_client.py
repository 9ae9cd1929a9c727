"""Talks to a server: the one that is named by `--server` or `ASKGRAPH_SERVER`, else the one of this home. Where none
runs there, one is started for the command and ends with it; `askgraph serve` saves these seconds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter

import askgraph
from app.ingest.files import load
from app.serving.address import find_server
from app.settings import Settings, reveal
from app.support.terminal import err
from askgraph.calls import Request, join_path
from askgraph.embedded import EmbeddedService
from askgraph.following import Following
from domain.documents import DocumentReport
from domain.errors import OversizedDocument
from domain.events import Event
from domain.library.ingestions import IngestionStatus
from domain.scope import DEFAULT_SCOPE

_MOST_BYTES = 2**32
"""More than a server takes, which says its own limit."""
_STATUS = TypeAdapter(IngestionStatus)


class ServerClient:
    """`askgraph.Client` for commands, in plain JSON. Raises what `askgraph.errors` describes."""

    def __init__(self, url: str, key: str, *, is_local: bool = False, is_started: bool = False) -> None:
        self.is_started = is_started
        """True where the server was started for this command."""
        # No proxy leads to this machine.
        self._client = askgraph.Client(url, key=key, http={"trust_env": not is_local})

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def get(self, *path: str, **query: Any) -> Any:
        """Return what a GET of the path answers. Values that are None are left out of the query."""
        return self._read(Request("GET", join_path(*path), _leave_default(query)))

    def post(self, *path: str, body: dict[str, Any], **query: Any) -> Any:
        """Send a POST, and return what it answers."""
        return self._read(Request("POST", join_path(*path), _leave_default(query), body=body))

    def delete(self, *path: str, **query: Any) -> Any:
        """Send a DELETE, and return what it answers."""
        return self._read(Request("DELETE", join_path(*path), _leave_default(query)))

    def stream(self, *path: str, body: dict[str, Any]) -> Iterator[Event]:
        """Send a POST and yield the events of the run that it starts, as they come."""
        body = _leave_default(body)
        asked = Request("POST", join_path(*path), {"stream": "true"}, body=body)
        for frame in self._client.read_frames(Following(body.get("workspace"), ask=asked)):
            if frame.type != "accepted":
                yield cast(Event, frame.event)

    def download(self, *path: str, **query: Any) -> bytes:
        """Return the content that a GET of the path answers."""
        return self._client.send(Request("GET", join_path(*path), _leave_default(query)))

    def upload(
        self,
        file: Path,
        workspace: str,
        metadata: Mapping[str, Any] | None,
        groups: Sequence[str] | None,
        sidecar: Mapping[str, Any],
    ) -> IngestionStatus | DocumentReport:
        """Send a file, to be read later. Returns its ingestion, or the report of a file that was refused."""
        named = _leave_default({"workspace": workspace})
        content = load(file, _MOST_BYTES)
        try:
            [sent] = self._client.upload(
                (file.name, content), **named, metadata=metadata, groups=groups, sidecar=sidecar, wait=False
            )
        except askgraph.InputError as error:
            if error.status != 413:
                raise
            raise OversizedDocument(error.message) from error
        if sent.ingestion_id is None:
            return DocumentReport(**sent.report.model_dump() if sent.report else {})
        return _read_status(sent.model_dump() | {"workspace": workspace})

    def read_ingestion(self, workspace: str, ingestion_id: str) -> IngestionStatus:
        """Return how far the reading of a file has come."""
        return _read_status(self.get("ingestions", ingestion_id, workspace=workspace))

    def cancel_ingestion(self, workspace: str, ingestion_id: str) -> IngestionStatus:
        """Give up a file that has not been read yet."""
        return _read_status(self.delete("ingestions", ingestion_id, workspace=workspace))

    def read_health(self) -> Any:
        """Return how each part of the server is."""
        return self._read(Request("GET", "/readyz"))

    def _read(self, request: Request) -> Any:
        content = self._client.send(request)
        return json.loads(content) if content else None


@contextmanager
def open_server(settings: Settings) -> Iterator[ServerClient]:
    """Open a client of the server that `find_address` finds."""
    with find_address(settings) as (url, key, is_started):
        is_local = settings.server is None
        with closing(ServerClient(url, key, is_local=is_local, is_started=is_started)) as server:
            yield server


@contextmanager
def find_address(settings: Settings) -> Iterator[tuple[str, str, bool]]:
    """Yield address and key of the server that is named, or runs in the home with these settings, or is started there
    until the end of the block; and whether it was.

    One that is named gets the key of the settings, and never the token of this home.
    """
    key = reveal(settings.api_key)
    if settings.server is not None:
        yield settings.server, key, False
    elif (address := find_server(settings)) is not None:
        yield address.url, key or address.token, False
    else:
        service = EmbeddedService(settings.home)
        with err.status("Starting askgraph"):
            started = service.start()
        try:
            yield *started, True
        finally:
            service.stop()


def _leave_default(named: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without the workspace `default`: the server takes the only one of the key, else this."""
    default = DEFAULT_SCOPE.workspace_id
    return {name: value for name, value in named.items() if (name, value) != ("workspace", default)}


def _read_status(described: dict[str, Any]) -> IngestionStatus:
    return _STATUS.validate_python(described | {"workspace_id": described["workspace"]})
