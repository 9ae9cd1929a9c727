"""Traces to an OpenTelemetry collector, here a loopback server that keeps what it receives."""

import asyncio

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.serving.application import make_app
from app.settings import Settings
from app.wiring.services import open_services
from tests.conftest import HANDBOOK
from tests.http_client import open_client
from tests.wire.serving import serve_app

CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_one_trace_leads_from_the_request_to_the_database(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans: list[Span] = []

    async def collect(request: Request) -> Response:
        received = ExportTraceServiceRequest.FromString(await request.body())
        spans.extend(span for part in received.resource_spans for each in part.scope_spans for span in each.spans)
        return Response(media_type="application/x-protobuf")

    async with serve_app(Starlette(routes=[Route("/v1/traces", collect, methods=["POST"])])) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        async with open_services(settings) as services, open_client(make_app(services)) as client:
            assert services.parts["tracing"] == "OpenTelemetry"
            await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
            response = await client.post(
                "/api/chat?stream=false",
                json={"question": "How long is the warranty of the Falke?", "mode": "fast"},
                headers={"traceparent": f"00-{CALLER}-00f067aa0ba902b7-01"},
            )
            run_id = response.json()["run_id"]
            await wait_for(spans, "POST /api/chat")
    ours = [span for span in spans if span.trace_id.hex() == CALLER]
    by_id = {span.span_id: span for span in ours}
    names = {span.name for span in ours}
    assert {"POST /api/chat", "answer", "route", "retrieve", "rerank", "grade", "generate", "SELECT"} <= names
    answer = next(span for span in ours if span.name == "answer")
    assert run_id in {each.value.string_value for each in answer.attributes}
    # The way up from a statement of a search.
    paths = set()
    for span in ours:
        path = [span.name]
        while (parent := by_id.get(span.parent_span_id)) is not None:
            path.append(parent.name)
            span = parent
        paths.add(tuple(path))
    assert any(path[-3:] == ("retrieve", "answer", "POST /api/chat") and len(path) == 4 for path in paths), paths


async def wait_for(spans: list[Span], name: str) -> None:
    async with asyncio.timeout(10):
        while name not in {span.name for span in spans}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
