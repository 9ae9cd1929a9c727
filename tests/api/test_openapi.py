"""The OpenAPI document: every response has a type, and real responses are of that type."""

from collections.abc import Iterator
from typing import Any

import httpx
from pydantic import BaseModel, TypeAdapter

from app.api.schema.openapi import list_of
from app.api.schema.responses import (
    AcceptedIngestBody,
    BlocksBody,
    CacheCountsBody,
    CostsBody,
    ErrorBody,
    FoundWordsBody,
    HealthBody,
    HistoryBody,
    IngestBody,
)
from app.drawing.diagram import Layout
from app.workbench.api.debug import StateBody, WhyBody
from app.workbench.compare.difference import RunDifference
from app.workbench.explain.failures import Failures
from app.workbench.explain.trace import Trace
from app.workbench.explain.whatif import WhatIf
from askgraph import models
from domain.ports.workspaces import WorkspaceSize
from tests.asking import QUESTION
from tests.http_client import describe_api

DOCUMENT = describe_api()


def list_responses() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            for status, response in operation["responses"].items():
                yield f"{method} {path} {status}", response


def test_every_response_has_a_type() -> None:
    for name, response in list_responses():
        assert response["description"], name
        if name.endswith((" 204", " 303")):
            assert "content" not in response, name
        else:
            assert response["content"], name
            assert all(is_typed(content["schema"]) for content in response["content"].values()), name


def is_typed(schema: dict[str, Any]) -> bool:
    """False for an empty schema, and for an object of which nothing is said."""
    if "$ref" in schema:
        return is_typed(DOCUMENT["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]])
    if "anyOf" in schema:
        return all(map(is_typed, schema["anyOf"]))
    return bool(schema.get("properties")) if schema.get("type") == "object" else "type" in schema


def test_every_operation_parameter_and_field_is_described() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    fields = {
        f"{kind}.{name}": field for kind in schemas for name, field in schemas[kind].get("properties", {}).items()
    }
    assert len(fields) > 600
    assert [name for name, field in fields.items() if not field.get("description")] == []
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            named = f"{method} {path}"
            assert " ".join(operation["description"].split()).startswith(operation["summary"] or "?"), named
            assert all(parameter.get("description") for parameter in operation.get("parameters", ())), named
    # A docstring of a base, one of the class itself, and the words that all share.
    described = {name: field.get("description") for name, field in schemas["Citation"]["properties"].items()}
    assert described["marker"] == "The number in the answer, as in `[1]`."
    assert described["content_hash"] == "SHA-256, in hex, of the file that is cited."
    assert described["chunk_id"] == "The passage's id."


def check(model: Any, body: Any) -> None:
    """The body is of the type, and has no field that the type lacks."""
    adapter = TypeAdapter(model)
    validated = adapter.validate_python(body)
    assert adapter.dump_python(validated, mode="json", exclude_unset=True).keys() == body.keys()
    assert list(list_unknown(validated)) == []


def list_unknown(value: Any) -> Iterator[str]:
    """Yield the fields of models that they do not declare, but keep for the sake of newer servers."""
    if isinstance(value, BaseModel):
        yield from value.model_extra or ()
        value = dict(value)
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from list_unknown(part)


async def test_real_responses_are_of_their_types(client: httpx.AsyncClient, library: dict[str, str]) -> None:
    chat = "/api/chat?stream=false"
    answer = (await client.post(chat, json={"question": QUESTION})).json()
    check(models.Answer, answer)
    check(models.Answer, (await client.post(chat, json={"question": QUESTION})).json())
    replay = f"/api/threads/{answer['thread_id']}/replay?stream=false"
    check(models.Answer, (await client.post(replay, json={"run_id": answer["run_id"], "tape": "strict"})).json())
    run = f"/api/runs/{answer['run_id']}"
    check(models.Answer, (await client.get(f"{run}/events?stream=false")).json())
    check(models.Run, (await client.get(run)).json())
    check(list_of("workspaces", WorkspaceSize), (await client.get("/api/workspaces")).json())
    check(models.Feedback, (await client.put(f"{run}/feedback", json={"rating": "up"})).json())
    check(Trace, (await client.get(f"{run}/trace")).json())
    check(WhyBody, (await client.get(f"{run}/why")).json())
    check(StateBody, (await client.get(f"{run}/states/rerank")).json())
    check(Layout, (await client.get("/api/graph?format=json")).json())
    check(WhatIf, (await client.post(f"{run}/whatif", json={})).json())
    check(RunDifference, (await client.get(f"{run}/diff/{answer['run_id']}")).json())
    check(Failures, (await client.get("/api/failures")).json())
    check(models.RunList, (await client.get("/api/runs")).json())
    check(models.Run, (await client.post(f"{run}/cancel")).json())
    check(models.ThreadList, (await client.get("/api/threads")).json())
    thread = f"/api/threads/{answer['thread_id']}"
    check(models.Thread, (await client.get(thread)).json())
    check(models.ThreadSummary, (await client.patch(thread, json={"title": "Warranty"})).json())
    check(HistoryBody, (await client.get(f"/api/threads/{answer['thread_id']}/history")).json())
    check(list_of("documents", models.Document), (await client.get("/api/documents")).json())
    check(models.Document, (await client.get(f"/api/documents/{library['Station handbook']}")).json())
    check(BlocksBody, (await client.get(f"/api/documents/{library['Station handbook']}/text")).json())
    found = await client.get(f"/api/documents/{library['Station handbook']}/find", params={"words": "warranty"})
    check(list_of("found", FoundWordsBody), found.json())
    files = {"files": ("notes.md", b"# Notes\n\nThe Falke is grey.\n")}
    check(IngestBody, (await client.post("/api/documents", files=files)).json())
    check(IngestBody, (await client.post("/api/documents", files={"files": ("empty.md", b"")})).json())
    accepted = await client.post("/api/documents?wait=false", files=files)
    check(AcceptedIngestBody, accepted.json())
    check(models.Ingestion, (await client.get(accepted.headers["location"])).json())
    check(list_of("ingestions", models.Ingestion), (await client.get("/api/ingestions")).json())
    desk = (await client.post("/api/assistants", json={"name": "desk", "models": {}})).json()
    check(models.Assistant, desk)
    check(models.Assistant, (await client.get(f"/api/assistants/{desk['assistant_id']}")).json())
    check(list_of("assistants", models.Assistant), (await client.get("/api/assistants")).json())
    check(CostsBody, (await client.get("/api/costs")).json())
    check(CacheCountsBody, (await client.get("/api/cache")).json())
    check(HealthBody, (await client.get("/readyz")).json())
    check(ErrorBody, (await client.get("/api/runs/none")).json())
    check(ErrorBody, (await client.post("/api/chat", json={})).json())
