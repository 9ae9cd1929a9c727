"""Traces to an OpenTelemetry collector by OTLP over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` names one.

One trace leads from the request through the run and its nodes, which have the names that LangSmith shows, to the SQL
statements. The SDK reads its other variables (`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, …) itself.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from app.adapters.tracing.conventions import CAPTURE, CAPTURING, describe
from app.support.spans import send_spans
from domain.errors import ConfigurationError
from domain.execution.spans import Facts, Note, ignore

TIMEOUT_SECONDS = 2
"""Time limit of one export, and of sending what is left at the end."""

_MOST_ATTRIBUTES, _LONGEST_ATTRIBUTE = 1000, 100_000
"""Limits of a span, the second in characters. Chosen: fifty documents before and after a ranking, with their texts, and
the longest prompt of the modes that ship."""


@contextmanager
def open_otlp() -> Iterator[bool]:
    """Send spans while the context is open; yields False where no collector is named.

    A full queue drops spans, so a collector that does not answer costs bounded memory. Raises `ConfigurationError` if
    the package is missing.
    """
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        yield False
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import SpanLimits, TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import StatusCode, get_current_span
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError as error:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set and OpenTelemetry is missing. Install it: pip install 'askgraph[otel]'"
        ) from error
    name = os.environ.get("OTEL_SERVICE_NAME", "askgraph")
    limits = SpanLimits(max_span_attributes=_MOST_ATTRIBUTES, max_span_attribute_length=_LONGEST_ATTRIBUTE)
    resource = Resource.create({"service.name": name})
    provider = TracerProvider(resource=resource, span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=TIMEOUT_SECONDS)))
    tracer, propagator = provider.get_tracer("askgraph"), TraceContextTextMapPropagator()

    texts = os.environ.get(CAPTURE, "").lower() in CAPTURING

    @contextmanager
    def open_span(name: str, attributes: Mapping[str, Any], parent: str | None, *, leaf: bool) -> Iterator[Note]:
        context = propagator.extract({"traceparent": parent}) if parent else None
        above = get_current_span(context)
        if leaf and not above.get_span_context().is_valid:
            # A process asks its queue all day; a trace of each statement would hide the runs.
            yield ignore
            return
        start = tracer.start_span if leaf else tracer.start_as_current_span
        is_run = False
        # What an error says may repeat the question, or what a provider was sent.
        with start(
            name, context, attributes=attributes, record_exception=texts, set_status_on_exception=texts
        ) as opened:

            def note(facts: Facts) -> None:
                nonlocal is_run
                opened.set_attributes(describe(facts, texts=texts))
                is_run = is_run or facts.get("kind") == "agent"
                # Lists of traces show what their first span says, which is the request's. A run may outlive it.
                if is_run and above.is_recording():
                    above.set_attributes(describe({**facts, "kind": "chain"}, texts=texts))

            try:
                yield note
            except Exception as error:
                opened.set_attribute("error.type", type(error).__name__)
                if not texts:
                    opened.set_status(StatusCode.ERROR)
                raise

    send_spans(open_span)
    try:
        yield True
    finally:
        send_spans(None)
        # The SDK tries for half a minute to send what is left.
        closing = threading.Thread(target=provider.shutdown, daemon=True)
        closing.start()
        closing.join(TIMEOUT_SECONDS)
