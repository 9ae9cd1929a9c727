"""A loopback server that records what the LangSmith SDK sends.

It takes the ingestion protocol that our client speaks, `/runs/multipart`; `/sessions` answers as the service does. In a
test::

    async with serve_langsmith() as recorder:
        ...  # recorder.url, recorder.runs, recorder.tree()

The SDK sends from threads; wait for it with ``await asyncio.to_thread(client.flush)``.
"""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from email.parser import BytesParser
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.wire.serving import serve_app

Json = dict[str, Any]

PROJECT_ID = "11111111-1111-4111-8111-111111111111"
TENANT_ID = "22222222-2222-4222-8222-222222222222"


class LangSmithRecorder:
    """The running server. `runs` holds each run once, in the order in which they arrived, with what later updates
    added."""

    def __init__(self) -> None:
        self.url = ""
        self._runs: dict[str, Json] = {}
        self.app = Starlette(
            routes=[
                Route("/sessions", self._list_projects, methods=["GET"]),
                Route("/runs/multipart", self._take_parts, methods=["POST"]),
            ]
        )

    @property
    def runs(self) -> list[Json]:
        return list(self._runs.values())

    def tree(self) -> list[Any]:
        """The names of the runs as nested lists: ``["answer", ["route"], ["generate", ["ChatOpenAI"]]]`` for each
        root, siblings in the order in which they started."""
        roots = [run for run in self.runs if not run.get("parent_run_id")]
        return [self._subtree(run) for run in _in_order(roots)]

    def _subtree(self, run: Json) -> list[Any]:
        children = [child for child in self.runs if child.get("parent_run_id") == run["id"]]
        return [run["name"], *(self._subtree(child) for child in _in_order(children))]

    async def _list_projects(self, request: Request) -> Response:
        name = request.query_params.get("name", "default")
        project = {"id": PROJECT_ID, "tenant_id": TENANT_ID, "name": name, "reference_dataset_id": None}
        return JSONResponse([{**project, "start_time": "2026-01-01T00:00:00"}])

    async def _take_parts(self, request: Request) -> Response:
        for name, value in await _read_parts(request):
            # "post.<run id>" or "patch.<run id>", then perhaps ".inputs", ".outputs", …
            operation, run_id, *field = name.split(".")
            if operation in ("post", "patch"):
                self._merge(run_id, {field[0]: value} if field else value)
        return JSONResponse({}, status_code=202)

    def _merge(self, run_id: str, update: Json) -> None:
        run = self._runs.setdefault(run_id, {"id": run_id})
        run.update({key: value for key, value in update.items() if value is not None})


async def _read_parts(request: Request) -> list[tuple[str, Any]]:
    """Name and JSON value of each part of the body."""
    body = await request.body()
    header = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    parts = []
    for part in BytesParser().parsebytes(header + body).walk():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            payload = part.get_payload(decode=True)
            assert isinstance(payload, bytes)
            parts.append((name, json.loads(payload)))
    return parts


def _in_order(runs: Iterable[Json]) -> list[Json]:
    return sorted(runs, key=lambda run: run["dotted_order"])


@asynccontextmanager
async def serve_langsmith() -> AsyncIterator[LangSmithRecorder]:
    """A recorder for one test."""
    recorder = LangSmithRecorder()
    async with serve_app(recorder.app) as address:
        recorder.url = address
        yield recorder
