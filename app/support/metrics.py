"""The metrics of a process, for Prometheus. Gauges are in `app/wiring/metrics.py`.

Counters and histograms of runs are filled from the record of each run, so that they say the same as the table `runs`.
Gauges are read when somebody asks. docs/operations/monitoring.md says what to watch.
"""

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
    start_http_server,
)

from domain.runs import FIRST_TOKEN, RunRecord

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

MEDIA_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 2, 5, 10, 30, 60, 120)
"""Limits of the histograms' buckets. The targets, 0.2 s and 0.5 s, are among them."""

RUNS = Counter("askgraph_runs", "Runs that ended, by how.", ["mode", "outcome", "cached"], registry=REGISTRY)
FAILURES = Counter("askgraph_run_failures", "Runs that failed, by error code.", ["code"], registry=REGISTRY)
RUN_SECONDS = Histogram("askgraph_run_seconds", "Time of a run.", ["cached"], buckets=_SECONDS, registry=REGISTRY)
OWN_SECONDS = Histogram(
    "askgraph_run_own_seconds",
    "Time of a run that was not spent writing the answer.",
    buckets=_SECONDS,
    registry=REGISTRY,
)
STEP_SECONDS = Histogram(
    "askgraph_step_seconds", "Time of all executions of a node in a run.", ["node"], buckets=_SECONDS, registry=REGISTRY
)
TOKENS = Counter("askgraph_tokens", "Tokens of language models.", ["model", "direction"], registry=REGISTRY)
CALLS = Counter("askgraph_model_calls", "Calls of language models.", ["node", "model"], registry=REGISTRY)
DOLLARS = Counter("askgraph_cost_dollars", "Cost of language models with a known price.", ["model"], registry=REGISTRY)
RETRIES = Counter("askgraph_retries", "Searches with a reformulated query.", registry=REGISTRY)
VERDICTS = Counter("askgraph_verdicts", "Runs by the verdict on their answer.", ["verdict"], registry=REGISTRY)
DEGRADATIONS = Counter("askgraph_degradations", "What runs had to do without.", ["node", "code"], registry=REGISTRY)
REFUSED = Counter("askgraph_refused_runs", "Runs that were refused for want of room.", ["code"], registry=REGISTRY)
REFUSED_BY_LIMIT = Counter(
    "askgraph_refused_by_limit", "Requests that a limit of their caller refused.", ["limit"], registry=REGISTRY
)
UNLIMITED = Counter(
    "askgraph_unlimited_requests",
    "Requests and runs of callers with limits that were served without counting them, because Redis did not answer.",
    registry=REGISTRY,
)


def count_run(record: RunRecord) -> None:
    """Count a run that ended."""
    cached = str(record.cached).lower()
    failed = record.error not in (None, "stopped")
    # What teams call theirs is no label: there may be any number of them.
    mode = "assistant" if "@" in record.mode else record.mode
    RUNS.labels(mode, "failed" if failed else record.error or record.outcome, cached).inc()
    if failed:
        FAILURES.labels(record.error).inc()
    total = record.timings.get("total", 0.0) / 1000
    RUN_SECONDS.labels(cached).observe(total)
    if not record.cached:
        OWN_SECONDS.observe(max(0.0, total - record.timings.get("generate", 0.0) / 1000))
        VERDICTS.labels(record.verification).inc()
        RETRIES.inc(record.retries)
    for node, ms in record.timings.items():
        if node not in ("total", FIRST_TOKEN):
            STEP_SECONDS.labels(node).observe(ms / 1000)
    for used in record.usage:
        CALLS.labels(used["node"], used["model"]).inc(used["calls"])
        TOKENS.labels(used["model"], "input").inc(used["input_tokens"])
        TOKENS.labels(used["model"], "output").inc(used["output_tokens"])
        DOLLARS.labels(used["model"]).inc(used["cost"] or 0.0)
    for each in record.degraded:
        DEGRADATIONS.labels(each["node"], each["code"]).inc()


def render(gauges: CollectorRegistry) -> bytes:
    """Return all metrics and these gauges in Prometheus' text format."""
    return generate_latest(REGISTRY) + generate_latest(gauges)


def serve_metrics(port: int) -> None:
    """Serve the metrics of a process without an API on this port, from a thread."""
    start_http_server(port, registry=REGISTRY)
