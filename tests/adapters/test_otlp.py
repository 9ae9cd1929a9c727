"""Traces to an OpenTelemetry collector, here a loopback server that keeps what it receives."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.adapters.tracing.conventions import CAPTURE
from app.adapters.tracing.otlp import open_otlp
from app.serving.application import make_app
from app.settings import Settings
from app.support import spans as tracing
from app.wiring.services import open_services
from tests.asking import with_models
from tests.conftest import HANDBOOK
from tests.http_client import open_client
from tests.wire.openai import serve_openai
from tests.wire.serving import serve_app

CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
QUESTION = "How long is the warranty of the Falke?"


@asynccontextmanager
async def collect_spans(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Span]]:
    """Yield the spans that a collector gets, which is named to the services that are opened meanwhile."""
    spans: list[Span] = []

    async def collect(request: Request) -> Response:
        received = ExportTraceServiceRequest.FromString(await request.body())
        spans.extend(span for part in received.resource_spans for each in part.scope_spans for span in each.spans)
        return Response(media_type="application/x-protobuf")

    async with serve_app(Starlette(routes=[Route("/v1/traces", collect, methods=["POST"])])) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        yield spans


def read_attributes(span: Span) -> dict[str, Any]:
    return {each.key: getattr(each.value, str(each.value.WhichOneof("value"))) for each in span.attributes}


async def test_one_trace_leads_from_the_request_to_the_database(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        collect_spans(monkeypatch) as spans,
        open_services(settings) as services,
        open_client(make_app(services)) as client,
    ):
        assert services.parts["tracing"] == "OpenTelemetry"
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        response = await client.post(
            "/api/chat?stream=false",
            json={"question": QUESTION, "mode": "fast"},
            headers={"traceparent": f"00-{CALLER}-00f067aa0ba902b7-01"},
        )
        run_id = response.json()["run_id"]
        await wait_for(spans, "POST /api/chat")
    # What the process asks its database by itself is no trace.
    assert not [span.name for span in spans if not span.parent_span_id]
    ours = [span for span in spans if span.trace_id.hex() == CALLER]
    by_id = {span.span_id: span for span in ours}
    names = {span.name for span in ours}
    assert {"POST /api/chat", "answer", "route", "retrieve", "rerank", "grade", "generate", "SELECT"} <= names
    answer = next(span for span in ours if span.name == "answer")
    assert run_id in {each.value.string_value for each in answer.attributes}
    assert "session.id" in read_attributes(answer)
    # Nobody has said that texts may leave.
    assert not [span for span in spans for value in read_attributes(span).values() if "Falke" in str(value)]
    # The way up from a statement of a search.
    paths = set()
    for span in ours:
        path = [span.name]
        while (parent := by_id.get(span.parent_span_id)) is not None:
            path.append(parent.name)
            span = parent
        paths.add(tuple(path))
    assert any(path[-3:] == ("retrieve", "answer", "POST /api/chat") and len(path) == 4 for path in paths), paths


async def test_a_run_is_told_in_the_words_of_the_conventions(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, "span_only")
    async with (
        collect_spans(monkeypatch) as spans,
        serve_openai() as model,
        open_services(with_models(settings, model)) as services,
        open_client(make_app(services)) as client,
    ):
        await services.library.ingestion.add("default", "handbook.md", HANDBOOK)
        searching = {"name": "search", "arguments": {"queries": ["battery of the Falke"]}}
        model.behaviour.replies = ["TOOLS: look further"]
        model.behaviour.tool_calls = [[searching]]
        response = await client.post("/api/chat?stream=false", json={"question": QUESTION, "mode": "research"})
        done = response.json()
        await wait_for(spans, "POST /api/chat")
    told = {span.name: read_attributes(span) for span in spans}
    kinds = {name: attributes.get("openinference.span.kind") for name, attributes in told.items()}
    assert (
        kinds
        | {
            "POST /api/chat": "CHAIN",
            "answer": "AGENT",
            "work": "CHAIN",
            "retrieve": "RETRIEVER",
            "rerank": "RERANKER",
            "execute_tool search": "TOOL",
            "search": "RETRIEVER",
            "chat gpt-4.1-mini": "LLM",
        }
        == kinds
    )
    for name in ("POST /api/chat", "answer"):
        assert told[name]["session.id"] == told[name]["gen_ai.conversation.id"] == done["thread_id"]
        assert (told[name]["input.value"], told[name]["output.value"]) == (QUESTION, done["answer"])

    calls = [read_attributes(span) for span in spans if span.name.startswith("chat ")]
    assert {call["langfuse.observation.type"] for call in calls} == {"generation"}
    assert {call["gen_ai.request.model"] for call in calls} == {used["model"] for used in done["usage"]}
    for way, fact in (("input", "prompt"), ("output", "completion")):
        counted = sum(call[f"gen_ai.usage.{way}_tokens"] for call in calls)
        assert counted == sum(call[f"llm.token_count.{fact}"] for call in calls)
        assert counted == sum(used[f"{way}_tokens"] for used in done["usage"])
    [asked] = [call for call in calls if "tool_call" in call["gen_ai.output.messages"]]
    [part] = [part for part in json.loads(asked["gen_ai.output.messages"])[0]["parts"] if part["type"] == "tool_call"]
    assert (part["name"], part["arguments"]) == (searching["name"], searching["arguments"])
    assert [each["role"] for each in json.loads(asked["gen_ai.input.messages"])] == ["system", "user"]
    assert "search" in {each["name"] for each in json.loads(asked["gen_ai.tool.definitions"])}

    tool = told["execute_tool search"]
    assert (tool["gen_ai.tool.name"], tool["gen_ai.tool.call.id"]) == ("search", part["id"])
    assert json.loads(tool["gen_ai.tool.call.arguments"]) == searching["arguments"]
    assert tool["gen_ai.tool.call.result"]
    for name, query in (("retrieve", QUESTION), ("search", "battery of the Falke")):
        assert told[name]["gen_ai.retrieval.query.text"] == query
        found = json.loads(told[name]["gen_ai.retrieval.documents"])
        assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert any("battery" in each["content"] for each in json.loads(told["search"]["gen_ai.retrieval.documents"]))
    ranked = told["rerank"]
    assert ranked["reranker.output_documents.0.document.id"] in {
        value for name, value in ranked.items() if name.startswith("reranker.input_documents.")
    }
    assert 0 < ranked["reranker.output_documents.0.document.score"] <= 1
    assert "36 months" in ranked["reranker.output_documents.0.document.content"]


@pytest.mark.parametrize("leaf", [False, True])
async def test_what_an_error_says_stays(monkeypatch: pytest.MonkeyPatch, leaf: bool) -> None:
    async with collect_spans(monkeypatch) as spans:
        with open_otlp():
            with pytest.raises(ValueError, match="Falke"), tracing.span("request"), tracing.span("work", leaf=leaf):
                raise ValueError(QUESTION)
            await wait_for(spans, "request")
    assert {each.name: each.status.code for each in spans} == dict.fromkeys(
        ["request", "work"], Status.STATUS_CODE_ERROR
    )
    assert [read_attributes(each)["error.type"] for each in spans] == ["ValueError"] * 2
    assert not [each for each in spans if "Falke" in str(each)]


async def wait_for(spans: list[Span], name: str) -> None:
    async with asyncio.timeout(10):
        while name not in {span.name for span in spans}:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
