"""Traces to an OpenTelemetry collector by OTLP over HTTP, where `OTEL_EXPORTER_OTLP_ENDPOINT` names one.

One trace leads from the request through the run and its nodes, which have the names that LangSmith shows, to the SQL
statements. The SDK reads its other variables (`OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, …) itself.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from app.support.spans import send_spans
from domain.errors import ConfigurationError

TIMEOUT_SECONDS = 2
"""Time limit of one export, and of sending what is left at the end."""


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
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError as error:
        raise ConfigurationError(
            "OTEL_EXPORTER_OTLP_ENDPOINT is set and OpenTelemetry is missing. Install it: pip install 'askgraph[otel]'"
        ) from error
    name = os.environ.get("OTEL_SERVICE_NAME", "askgraph")
    provider = TracerProvider(resource=Resource.create({"service.name": name}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=TIMEOUT_SECONDS)))
    tracer, propagator = provider.get_tracer("askgraph"), TraceContextTextMapPropagator()

    def open_span(name: str, attributes: Mapping[str, Any], parent: str | None) -> AbstractContextManager[Any]:
        context = propagator.extract({"traceparent": parent}) if parent else None
        return tracer.start_as_current_span(name, context, attributes=attributes)

    send_spans(open_span)
    try:
        yield True
    finally:
        send_spans(None)
        # The SDK tries for half a minute to send what is left.
        closing = threading.Thread(target=provider.shutdown, daemon=True)
        closing.start()
        closing.join(TIMEOUT_SECONDS)
