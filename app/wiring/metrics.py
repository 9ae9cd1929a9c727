"""The gauges of a process, measured when somebody asks. Counters and histograms are in `app/support/metrics.py`."""

from app.adapters.postgres.monitoring import measure_feedback, measure_queues
from app.answering.admission import Admission
from app.support.metrics import Gauge
from app.wiring.database import Database
from domain.errors import AskgraphError
from domain.ports.documents import EmbeddingBacklog


async def measure(admission: Admission, database: Database, backlog: EmbeddingBacklog) -> list[Gauge]:
    """Measure how busy this process is, and how full the queues of all processes are."""
    gauges = [
        Gauge("runs_running", "Runs of this process.", admission.running),
        Gauge("runs_waiting", "Runs of this process that wait for their turn.", admission.waiting),
        Gauge("runs_limit", "Runs that this process takes on.", admission.most),
        Gauge("connection_waiters", "Who waits for a connection to the database.", database.pool.waiting),
    ]
    try:
        queues = await measure_queues(database.url)
        ratings = await measure_feedback(database.url)
        to_embed = await backlog.count_all()
    except AskgraphError:
        return [*gauges, Gauge("database_up", "1 while the database answers.", 0)]
    waiting = {queue: depth.waiting for queue, depth in queues.items()}
    running = {queue: depth.running for queue, depth in queues.items()}
    oldest = {queue: depth.oldest_seconds for queue, depth in queues.items()}
    return [
        *gauges,
        Gauge("database_up", "1 while the database answers.", 1),
        Gauge("chunks_to_embed", "Chunks that only words find so far.", to_embed),
        Gauge("feedback", "Ratings of the last 24 hours, of all processes.", ratings, label="rating"),
        Gauge("queue_waiting", "What waits in the queues.", waiting, label="queue"),
        Gauge("queue_running", "What is taken from the queues.", running, label="queue"),
        Gauge("queue_oldest_seconds", "Age of what waits longest.", oldest, label="queue"),
    ]
