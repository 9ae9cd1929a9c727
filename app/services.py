"""Opens, wires and closes what the service uses. The only module that knows every adapter."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from pydantic import SecretStr

from app.adapters.chat.providers import Access, split_name
from app.adapters.chat.tokens import O200kCounter
from app.adapters.embedded import open_servers
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.pgvectorstore import (
    PgVectorStoreDocuments,
    PgVectorStoreLibrary,
    open_table,
    read_mapping,
)
from app.adapters.postgres.checkpoints.saved_states import PostgresSavedStates
from app.adapters.postgres.checkpoints.saver import open_saver
from app.adapters.postgres.conversations.run_log import PostgresRunLog
from app.adapters.postgres.conversations.threads import PostgresThreadStore
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.migrations import upgrade
from app.adapters.postgres.pool import open_pool, ping, read_identity, translated_errors
from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.adapters.postgres.queue.jobs import Job, Task
from app.adapters.postgres.queue.runs import PostgresRunQueue
from app.adapters.postgres.retention.store import PostgresRetention
from app.adapters.postgres.vectors.embedding_model import find_problem, pin_embedder
from app.adapters.postgres.vectors.reembedding import Reembedding, open_reembedding
from app.adapters.prices import PriceTable, read_prices
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer
from app.adapters.redis.streams import RedisRunStreams
from app.adapters.rerankers.cross_encoder import OnnxCrossEncoder
from app.adapters.rerankers.late_interaction import LateInteractionEncoder, LateInteractionReranker, TokenVectors
from app.adapters.tracing.langsmith import open_tracing
from app.ingest.encoding import TwoModelEncoder
from app.ingest.pipeline import Ingestion, PassageEncoder
from app.runs.retention import prune, read_policy
from app.runs.states import rename_fields
from app.settings import Settings, read_modes
from domain.errors import ConfigurationError, EmbedderUnavailable, UnknownMode
from domain.ports.answers import AnswerCache
from domain.ports.documents import DocumentStore
from domain.ports.embedding import Embedder
from domain.ports.ingestions import IngestionQueue
from domain.ports.library import Library
from domain.ports.models import TokenCounter
from domain.ports.reranking import Reranker
from domain.ports.retention import Retention, SavedStates
from domain.ports.runs import RunLog, RunQueue, ThreadStore
from domain.ports.streams import RunStreams
from domain.profile import Profile
from graphs.answer import AnswerGraph, build_answer_graph
from nodes.context import TIERS, Context, Models, Tier

if TYPE_CHECKING:
    from app.adapters.embeddings.openai import OpenAIEmbedder

logger = logging.getLogger("askgraph.services")


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that a request may need, open."""

    settings: Settings
    modes: dict[str, Profile]
    graph: AnswerGraph
    documents: DocumentStore
    library: Library
    embedder: Embedder
    sentences: Embedder
    embeddings_problem: str | None
    """What is wrong with `embedder`, found at start; None where it answered."""
    find_embeddings_problem: Callable[[], Awaitable[str | None]]
    """The same now; and what to do where the documents have been embedded anew, with another model."""
    rerankers: dict[str, Reranker]
    tokens: TokenCounter
    models: Models
    answers: AnswerCache
    streams: RunStreams
    queue: RunQueue
    runs: RunLog
    threads: ThreadStore
    states: SavedStates
    retention: Retention
    ingestion: Ingestion
    ingestions: IngestionQueue
    fingerprint: str
    """Of the machine's code and models: answers of another machine are not this one's."""
    trace_url: Callable[[str], str | None]
    translating_errors: Callable[[], AbstractContextManager[None]]
    """Around calls to the graph: the checkpointer's driver errors become ours."""
    flush_states: Callable[[str], Awaitable[None]]
    """Returns once a thread's states are stored, whatever process reads them then. Raises what storing them failed
    with."""
    parts: dict[str, str]
    """How each part runs, in words, for people who start the service."""
    rerank_problem: str | None
    """What is wrong with the reranker that is asked elsewhere, found at start."""
    find_rerank_problem: Callable[[], str | None]
    """What is wrong with it now, as its last call says."""
    models_problem: str | None
    """What is wrong with the language models, found at start; None where they answered or none are used."""
    find_models_problem: Callable[[], Awaitable[str | None]]
    """What is wrong with them now, as their last calls say. Costs nothing."""
    describe_models: Callable[[], dict[str, str]]
    """How each language model answers now, in words."""
    tend_indexes: Callable[[], None]
    wait_for_indexes: Callable[[], Awaitable[None]]
    """For who has brought in many documents, and would end the build of their vector index by closing, or measures
    searches."""
    ping: Callable[[], Awaitable[None]]
    """Raises `DatabaseUnavailable` where the database does not answer."""

    def find_mode(self, name: str) -> Profile:
        """The mode of that name. Raises `UnknownMode`."""
        if mode := self.modes.get(name):
            return mode
        raise UnknownMode(f"There is no mode {name!r}. There are: {', '.join(self.modes)}.")

    def make_context(self) -> Context:
        """The context of one run. Every call of the graph takes one: it is not checkpointed."""
        return Context(
            library=self.library,
            embedder=self.embedder,
            sentences=self.sentences,
            tokens=self.tokens,
            rerankers=self.rerankers,
            models=self.models,
        )


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Everything open, and closed again in reverse order.

    Raises `ConfigurationError` and `DatabaseUnavailable`, with what to do.
    """
    modes = read_modes(settings)
    prices = read_prices(settings.prices)
    async with AsyncExitStack() as stack:
        database_url, redis_url, parts = await _open_servers(settings, stack)
        pool = await stack.enter_async_context(open_pool(database_url))
        local = await asyncio.to_thread(OnnxEmbedder.load)
        stack.callback(local.close)
        encoder: PassageEncoder = LateInteractionEncoder(local)
        embedder = await _open_embedder(settings.embeddings, local, settings, prices, stack)
        if embedder is not local:
            encoder = TwoModelEncoder(embedder, encoder)
        if settings.pgvectorstore is None:
            await pin_embedder(pool, embedder)

        async def find_embeddings_problem() -> str | None:
            replaced = None if settings.pgvectorstore else await find_problem(pool, embedder)
            return replaced or embedder.problem

        redis = RedisServer(redis_url)
        stack.push_async_callback(redis.close)
        answers = RedisAnswerCache(
            redis, namespace=await read_identity(pool), ttl=timedelta(hours=settings.answer_ttl_hours)
        )
        own_documents = PostgresDocumentStore(pool, embedder, answers.changing)
        stack.push_async_callback(own_documents.close)
        library: PostgresLibrary | PgVectorStoreLibrary = PostgresLibrary(pool, embedder)
        documents: DocumentStore = own_documents
        if settings.pgvectorstore is not None:
            mapping = read_mapping(settings.pgvectorstore)
            url = _reveal(settings.pgvectorstore_url) or database_url
            table = await stack.enter_async_context(open_table(url, mapping, embedder.dimension))
            library, documents = PgVectorStoreLibrary(table), PgVectorStoreDocuments(table)
            parts["library"] = f"the table {mapping.schema_name}.{mapping.table}, which another application fills"
        ingestion = Ingestion(documents, encoder, answers, max_bytes=settings.max_document_mb * 1_000_000)
        ingestions = PostgresIngestionQueue(pool)
        retention = PostgresRetention(pool)

        async def keep_house(job: Job) -> None:
            try:
                await prune(retention, read_policy(settings))
            except Exception:
                # It would be done again at once, and fail again. The next hour is soon enough.
                logger.exception("What is kept no longer could not be deleted.")

        housekeeping = Task("housekeeping", "prune", 1, keep_house, cron="17 * * * *")
        queue = PostgresRunQueue(pool, database_url, [ingestions.task(ingestion.add), housekeeping])
        stack.push_async_callback(queue.close)
        streams = RedisRunStreams(redis, redis_url)
        stack.push_async_callback(streams.close)
        rerankers, find_rerank_problem = await _open_rerankers(settings, modes, prices, local, library, stack)
        opened = await _open_models(settings, modes, prices, stack)
        tracing = stack.enter_context(open_tracing())
        parts |= opened.parts
        parts |= {
            "embeddings": f"local {embedder.name}" if embedder is local else embedder.name,
            "tracing": "LangSmith" if tracing else "off",
        }
        names = [*name_models(opened.models, settings), *(reranker.name for reranker in rerankers.values())]
        saver = await stack.enter_async_context(open_saver(pool, rename_fields))
        yield Services(
            settings=settings,
            modes=modes,
            graph=build_answer_graph(saver, settings.model_timeout),
            documents=documents,
            library=library,
            embedder=embedder,
            sentences=local,
            embeddings_problem=embedder.problem,
            find_embeddings_problem=find_embeddings_problem,
            rerankers=rerankers,
            tokens=O200kCounter(),
            models=opened.models,
            answers=answers,
            streams=streams,
            queue=queue,
            runs=PostgresRunLog(pool),
            threads=PostgresThreadStore(pool),
            states=PostgresSavedStates(pool, saver),
            retention=retention,
            ingestion=ingestion,
            ingestions=ingestions,
            fingerprint=await asyncio.to_thread(fingerprint_machine, embedder.name, *names),
            trace_url=lambda run_id: tracing.trace_url(UUID(run_id)) if tracing else None,
            translating_errors=translated_errors,
            flush_states=saver.flush,
            parts=parts,
            models_problem=opened.problem,
            find_models_problem=opened.find_problem,
            rerank_problem=find_rerank_problem(),
            find_rerank_problem=find_rerank_problem,
            describe_models=opened.describe,
            tend_indexes=own_documents.tend_indexes,
            wait_for_indexes=own_documents.wait_for_indexes,
            ping=lambda: ping(pool),
        )


@asynccontextmanager
async def open_reindexing(settings: Settings, embeddings: str) -> AsyncIterator[tuple[Reembedding, Embedder]]:
    """What embeds all documents anew: the index that is made, and the model that it is made with, as
    `Settings.embeddings` names one. Services that are open go on meanwhile.

    Raises `ConfigurationError`, `DatabaseUnavailable` and `EmbedderUnavailable`, with what to do.
    """
    async with AsyncExitStack() as stack:
        database_url, redis_url, _ = await _open_servers(settings, stack)
        pool = await stack.enter_async_context(open_pool(database_url))
        redis = RedisServer(redis_url)
        stack.push_async_callback(redis.close)
        answers = RedisAnswerCache(redis, namespace=await read_identity(pool))
        local = await asyncio.to_thread(OnnxEmbedder.load)
        stack.callback(local.close)
        embedder = await _open_embedder(embeddings, local, settings, read_prices(settings.prices), stack)
        if embedder.problem:
            raise EmbedderUnavailable(embedder.problem)
        yield await stack.enter_async_context(open_reembedding(pool, embedder, answers.changing)), embedder


async def _open_servers(settings: Settings, stack: AsyncExitStack) -> tuple[str, str, dict[str, str]]:
    """The addresses of the database, with its schema, and of the cache; and how each runs, in words."""
    database_url = settings.database_url and settings.database_url.get_secret_value()
    redis_url = settings.redis_url and settings.redis_url.get_secret_value()
    parts = {"database": "external Postgres", "cache": "external Redis"}
    if not (database_url and redis_url):
        servers = await stack.enter_async_context(
            open_servers(settings.home, postgres=not database_url, redis=not redis_url)
        )
        if servers.database_url:
            database_url, parts["database"] = servers.database_url, f"embedded Postgres in {settings.home}"
        if servers.redis_url:
            redis_url, parts["cache"] = servers.redis_url, f"embedded Valkey in {settings.home}"
    assert database_url
    assert redis_url
    await upgrade(database_url)
    return database_url, redis_url, parts


async def _open_embedder(
    embeddings: str, local: OnnxEmbedder, settings: Settings, prices: PriceTable, stack: AsyncExitStack
) -> "OnnxEmbedder | OpenAIEmbedder":
    """The model that `Settings.embeddings` names. Searches do without one that does not answer.

    Raises `ConfigurationError` where there can be no such model, or no server of it is known.
    """
    if embeddings == "local":
        return local
    # Importing the SDK takes longer than starting everything else, so only a deployment that uses it pays.
    from app.adapters.embeddings.openai import OpenAIEmbedder

    key, address = settings.embeddings_api_key, settings.embeddings_base_url
    if address is None:
        key, address = key or settings.openai_api_key, settings.openai_base_url
    if key is None and address is None:
        raise ConfigurationError(
            f"The embeddings are {embeddings!r}, and no server of them is known. Set OPENAI_API_KEY, or "
            "ASKGRAPH_EMBEDDINGS_BASE_URL for a server that wants no key."
        )
    embedder = OpenAIEmbedder(
        embeddings,
        api_key=_reveal(key),
        base_url=address,
        prices=prices,
    )
    stack.push_async_callback(embedder.aclose)
    if problem := await embedder.check():
        logger.error("%s", problem)
    return embedder


async def _open_rerankers(
    settings: Settings,
    modes: dict[str, Profile],
    prices: PriceTable,
    embedder: OnnxEmbedder,
    library: TokenVectors,
    stack: AsyncExitStack,
) -> tuple[dict[str, Reranker], Callable[[], str | None]]:
    """The rerankers by the name that `rerank.method` has for each, and how to find what is wrong with one that is asked
    elsewhere.

    Raises `ConfigurationError` for a reranker that cannot be used, and for a mode that needs one that is not set.
    """
    find_problem: Callable[[], str | None] = _find_nothing
    rerankers: dict[str, Reranker] = {"local": LateInteractionReranker(embedder, library)}
    if settings.cross_encoder is not None:
        cross_encoder = await asyncio.to_thread(OnnxCrossEncoder.load, settings.cross_encoder)
        stack.callback(cross_encoder.close)
        rerankers["cross_encoder"] = cross_encoder
    if any(mode.rerank.method == "cohere" for mode in modes.values()) and (
        settings.cohere_api_key or settings.cohere_base_url
    ):
        # Importing the SDK takes as long as starting everything else, so only a deployment that uses it pays.
        from app.adapters.rerankers.cohere import CohereReranker

        cohere = CohereReranker(
            settings.rerank_model,
            api_key=_reveal(settings.cohere_api_key),
            base_url=settings.cohere_base_url,
            prices=prices,
        )
        stack.push_async_callback(cohere.aclose)
        rerankers["cohere"] = cohere
        cohere.circuit.problem = await cohere.check()
        find_problem = cohere.circuit.find_problem
        if problem := find_problem():
            logger.error("%s", problem)
    needs = {
        "cross_encoder": "a cross-encoder and none is set. Set ASKGRAPH_CROSS_ENCODER to a folder that holds "
        "model.onnx and tokenizer.json",
        "cohere": "Cohere and no key is set. Set COHERE_API_KEY, or COHERE_BASE_URL for a server that wants none",
    }
    for mode in modes.values():
        if mode.rerank.method in needs and mode.rerank.method not in rerankers:
            raise ConfigurationError(
                f"The mode {mode.name!r} reranks with {needs[mode.rerank.method]}, or change the mode's rerank.method."
            )
    return rerankers, find_problem


def _find_nothing() -> None:
    return None


async def _find_no_problem() -> None:
    return None


@dataclass(frozen=True, slots=True)
class _OpenModels:
    models: Models
    parts: dict[str, str]
    problem: str | None = None
    find_problem: Callable[[], Awaitable[str | None]] = _find_no_problem
    describe: Callable[[], dict[str, str]] = dict


async def _open_models(
    settings: Settings, modes: dict[str, Profile], prices: PriceTable, stack: AsyncExitStack
) -> _OpenModels:
    """The language models, and what is wrong with them. Local judgement stands in for one that does not answer."""
    access = {
        "openai": Access(_reveal(settings.openai_api_key), settings.openai_base_url),
        "anthropic": Access(_reveal(settings.anthropic_api_key), settings.anthropic_base_url),
        "google_genai": Access(_reveal(settings.google_api_key), settings.google_base_url),
    }
    tiers: dict[Tier, str] = {
        "small": settings.model_small,
        "large": settings.model_large,
        "judge": settings.model_judge,
    }
    named = [*tiers.values(), *settings.model_fallbacks]
    if not access["openai"] and all(split_name(name)[0] == "openai" for name in named):
        local = "local (quotes the documents; set OPENAI_API_KEY or OPENAI_BASE_URL for written answers)"
        return _OpenModels(Models(), {"answerer": local})
    # Importing the SDK takes longer than starting everything else, so only a deployment that uses it pays.
    from app.adapters.chat.connections import Connections

    connections = Connections(access, timeout=settings.model_timeout, prices=prices)
    stack.push_async_callback(connections.close)
    knobs = {name: mode.models for name, mode in modes.items()}
    models = connections.connect(tiers, settings.model_fallbacks, knobs)
    await connections.check()
    problem = await connections.find_problem()
    if problem:
        logger.error("%s", problem)
    writers = [models.large.name] if models.large else []
    answerer = ", then ".join([*writers, *(model.name for model in models.fallbacks), "local"])
    parts = {"answerer": f"{answerer}{f' ({settings.openai_base_url})' if settings.openai_base_url else ''}"}
    if unpriced := connections.unpriced():
        parts["prices"] = f"not known of {', '.join(unpriced)}: tokens are counted, ASKGRAPH_PRICES adds prices"
    return _OpenModels(models, parts, problem, connections.find_problem, connections.describe)


def _reveal(secret: SecretStr | None) -> str:
    return secret.get_secret_value() if secret else ""


def name_models(models: Models, settings: Settings) -> list[str]:
    """What of the models decides how answers come out, for the fingerprint. What modes name is in their profile."""
    tiers = [f"{tier}={model.name if (model := getattr(models, tier)) else ''}" for tier in TIERS]
    fallbacks = [f"fallback={model.name}" for model in models.fallbacks]
    addresses = (settings.openai_base_url, settings.anthropic_base_url, settings.google_base_url)
    return [*tiers, *fallbacks, *(address or "" for address in addresses)]


def fingerprint_machine(*names: str) -> str:
    """A digest of the code that decides what an answer says and how it is stored (prompts among it) and of the names
    of the models in use."""
    digest = hashlib.sha256("\0".join(names).encode())
    here = Path(__file__).parent
    for folder in (
        here.parent / "domain",
        here.parent / "nodes",
        here.parent / "graphs",
        here / "adapters",
        here / "runs",
    ):
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
