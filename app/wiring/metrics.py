"""The gauges of a process, measured when somebody asks. Counters and histograms are in `app/support/metrics.py`."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

from app.adapters.postgres.monitoring import measure_feedback, measure_queues
from app.answering.admission import Admission
from app.wiring.database import Database
from domain.errors import AskgraphError
from domain.ports.documents import EmbeddingBacklog


async def measure(admission: Admission, database: Database, backlog: EmbeddingBacklog) -> CollectorRegistry:
    """Measure how busy this process is, and how full the queues of all processes are."""
    gauges = CollectorRegistry()

    def show(name: str, description: str, value: float) -> None:
        Gauge(f"askgraph_{name}", description, registry=gauges).set(value)

    def show_each(name: str, description: str, label: str, values: Mapping[str, float]) -> None:
        gauge = Gauge(f"askgraph_{name}", description, [label], registry=gauges)
        for each, value in values.items():
            gauge.labels(each).set(value)

    show("runs_running", "Runs of this process.", admission.running)
    show("runs_waiting", "Runs of this process that wait for their turn.", admission.waiting)
    show("runs_limit", "Runs that this process takes on.", admission.most)
    show("connection_waiters", "Who waits for a connection to the database.", database.pool.waiting)
    try:
        queues = await measure_queues(database.url)
        ratings = await measure_feedback(database.url)
        to_embed = await backlog.count_all()
    except AskgraphError:
        show("database_up", "1 while the database answers.", 0)
        return gauges
    show("database_up", "1 while the database answers.", 1)
    show("chunks_to_embed", "Chunks that only words find so far.", to_embed)
    show_each("feedback", "Ratings of the last 24 hours, of all processes.", "rating", ratings)
    depths = queues.items()
    show_each("queue_waiting", "What waits in the queues.", "queue", {name: each.waiting for name, each in depths})
    show_each("queue_running", "What is taken from the queues.", "queue", {name: each.running for name, each in depths})
    oldest = {name: each.oldest_seconds for name, each in depths}
    show_each("queue_oldest_seconds", "Age of what waits longest.", "queue", oldest)
    return gauges
