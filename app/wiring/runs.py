"""Runs: the graph and its saved states, the queue, event streams, the log, the answer cache, and retention."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from uuid import UUID

from app.adapters.embedded.leftovers import Leftovers
from app.adapters.postgres.assistants import PostgresAssistantStore
from app.adapters.postgres.checkpoints.saved_states import PostgresSavedStates
from app.adapters.postgres.checkpoints.saver import open_saver
from app.adapters.postgres.conversations.client_threads import PostgresClientThreads
from app.adapters.postgres.conversations.threads import PostgresThreadStore
from app.adapters.postgres.erasure.store import PostgresEraser
from app.adapters.postgres.pool import Pool, read_identity, translated_errors
from app.adapters.postgres.queue.housekeeping import take_turn
from app.adapters.postgres.queue.runs import PostgresRunQueue
from app.adapters.postgres.queue.worker import Perform, Task
from app.adapters.postgres.retention import PostgresRetention
from app.adapters.postgres.vectors.backlog import TASK as EMBEDDING
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.conversations import RedisConversations
from app.adapters.redis.erasure import RedisEraser
from app.adapters.redis.limits import RedisUsageCounter
from app.adapters.redis.streams import RedisRunStreams
from app.adapters.tracing.langsmith import open_tracing
from app.adapters.tracing.otlp import open_otlp
from app.history.retention import prune, read_policy
from app.history.thread_states import ThreadStates
from app.history.threads import Threads
from app.ingest.embedding import embed_backlog
from app.settings import Settings
from app.wiring.fingerprint import fingerprint_installation, name_models
from app.wiring.library import LibraryServices
from app.wiring.models import ModelServices
from app.wiring.servers import Servers
from app.wiring.stores import Stores
from domain.history.erasure import CacheEraser, Eraser, FileEraser
from domain.people.audit import AuditLog
from domain.ports.answers import AnswerCache
from domain.ports.assistants import AssistantStore
from domain.ports.conversations import ClientThreads, ConversationIndex
from domain.ports.feedback import FeedbackStore
from domain.ports.keys import UsageCounter
from domain.ports.retention import Retention, SavedStates
from domain.ports.runs import RunLog, RunQueue, ThreadStore
from domain.ports.streams import RunStreams
from graphs.answer import AnswerGraph, build_answer_graph


@dataclass(frozen=True, slots=True)
class RunServices:
    """Everything that runs are executed with and recorded in."""

    states: ThreadStates
    saved_states: SavedStates
    threads: Threads
    thread_store: ThreadStore
    client_threads: ClientThreads
    queue: RunQueue
    streams: RunStreams
    log: RunLog
    answers: AnswerCache
    retention: Retention
    eraser: Eraser
    cache_eraser: CacheEraser
    files: FileEraser
    conversations: ConversationIndex
    assistants: AssistantStore
    feedback: FeedbackStore
    usage: UsageCounter
    fingerprint: str
    """Identifies this installation's code and models; cached answers of another are not reused."""
    trace_url: Callable[[str], str | None]
    parts: Mapping[str, str]
    """A description of each part for people."""

    @property
    def graph(self) -> AnswerGraph:
        """The graph that answers questions, with its checkpointer."""
        return self.states.graph


async def connect_answers(settings: Settings, servers: Servers) -> AnswerCache:
    """Return the answer cache of this database.

    Raises `DatabaseUnavailable`.
    """
    namespace = await read_identity(servers.database.pool)
    return RedisAnswerCache(servers.redis, namespace=namespace, ttl=timedelta(hours=settings.answer_ttl_hours))


@asynccontextmanager
async def open_runs(
    settings: Settings,
    servers: Servers,
    stores: Stores,
    answers: AnswerCache,
    library: LibraryServices,
    models: ModelServices,
) -> AsyncIterator[RunServices]:
    """Open what runs need, on top of the other parts.

    Raises `DatabaseUnavailable`.
    """
    pool = servers.database.pool
    namespace = await read_identity(pool)
    async with AsyncExitStack() as stack:
        retention = PostgresRetention(pool, library.originals)
        tasks = [
            library.ingestions.task(partial(library.ingestion.add, later=True)),
            _make_embedding(library),
            _make_housekeeping(settings, pool, retention, stores.audit),
        ]
        queue = PostgresRunQueue(pool, servers.database.url, tasks)
        stack.push_async_callback(queue.close)
        streams = RedisRunStreams(servers.redis, servers.redis_url)
        stack.push_async_callback(streams.close)
        tracing = stack.enter_context(open_tracing())
        has_collector = stack.enter_context(open_otlp())
        saver = await stack.enter_async_context(open_saver(pool))
        graph = build_answer_graph(saver, settings.model_timeout)
        states = ThreadStates(graph, saver.flush, translated_errors)
        thread_store = PostgresThreadStore(pool)
        names = [
            *name_models(models.chat, settings),
            *(reranker.name for reranker in models.rerankers.values()),
        ]
        yield RunServices(
            states=states,
            saved_states=PostgresSavedStates(pool, saver),
            threads=Threads(thread_store, queue),
            thread_store=thread_store,
            client_threads=PostgresClientThreads(pool),
            queue=queue,
            streams=streams,
            log=stores.runs,
            answers=answers,
            retention=retention,
            eraser=PostgresEraser(pool),
            cache_eraser=RedisEraser(servers.redis, answers),
            files=Leftovers(
                None if settings.database_url and settings.redis_url else settings.home,
                pool,
                has_database=not settings.database_url,
                has_cache=not settings.redis_url,
            ),
            conversations=RedisConversations(servers.redis, namespace),
            usage=RedisUsageCounter(servers.redis, namespace),
            feedback=stores.feedback,
            assistants=PostgresAssistantStore(pool),
            fingerprint=await asyncio.to_thread(fingerprint_installation, library.embedder.name, *names),
            trace_url=lambda trace_id: tracing.trace_url(UUID(trace_id)) if tracing else None,
            parts={"tracing": ", ".join(["LangSmith"] * bool(tracing) + ["OpenTelemetry"] * has_collector) or "off"},
        )


def _make_embedding(library: LibraryServices) -> Task:
    """Make the task that embeds what was stored first."""
    resting_until = 0.0

    async def take(_: bool) -> Perform | None:
        if monotonic() < resting_until or await library.backlog.is_empty():
            return None
        return embed

    async def embed() -> None:
        nonlocal resting_until
        resting_until = monotonic() + (await embed_backlog(library.backlog, library.encoder) or 0.0)

    return Task(EMBEDDING, 1, take)


def _make_housekeeping(settings: Settings, pool: Pool, retention: Retention, audit: AuditLog) -> Task:
    """Make the hourly task that deletes what the retention policy no longer keeps, and old entries of the audit log."""

    async def take(_: bool) -> Perform | None:
        return keep_house if await take_turn(pool) else None

    async def keep_house() -> None:
        await prune(retention, await read_policy(settings, retention))
        await audit.delete_before(datetime.now(UTC) - timedelta(days=settings.audit_days))

    return Task("housekeeping", 1, take, poll_seconds=60.0)
