"""The library: documents, search, the embedding models, and ingestion."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from app.adapters.calculation.calculator import SqliteCalculator
from app.adapters.embeddings.onnx import OnnxEmbedder
from app.adapters.embeddings.registry import open_embedder
from app.adapters.pgvectorstore.documents import PgVectorStoreDocuments
from app.adapters.pgvectorstore.library import PgVectorStoreLibrary
from app.adapters.pgvectorstore.mapping import read_mapping
from app.adapters.pgvectorstore.opening import open_table
from app.adapters.postgres.documents.originals import PostgresOriginals
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.documents.synced import PostgresSyncedFiles
from app.adapters.postgres.keys import PostgresKeyStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.queue.ingestions import PostgresIngestionQueue
from app.adapters.postgres.vectors.backlog import PostgresEmbeddingBacklog
from app.adapters.postgres.vectors.choosing import choose_embedder
from app.adapters.postgres.vectors.embedding_model import find_problem
from app.adapters.postgres.vectors.vector_index import VectorIndexes
from app.adapters.prices import PriceTable, read_prices
from app.adapters.rerankers.late_interaction import LateInteractionEncoder
from app.ingest.encoding import TwoModelEncoder
from app.ingest.parser_workers import ParserWorkers
from app.ingest.pipeline import Ingestion
from app.settings import Settings, reveal
from app.wiring.object_storage import open_object_storage
from app.wiring.servers import Servers, open_servers
from domain.errors import AskgraphError, EmbedderUnavailable, StorageUnavailable
from domain.health import Check
from domain.library.synced import SyncedFiles
from domain.ports.answers import AnswerCache
from domain.ports.documents import DocumentStore, EmbeddingBacklog, PassageEncoder
from domain.ports.embedding import Embedder, ServedEmbedder
from domain.ports.originals import ObjectStorage, OriginalStore

logger = logging.getLogger("askgraph.wiring")


@dataclass(frozen=True, slots=True)
class LibraryServices:
    """Documents and everything that reads or writes them."""

    documents: DocumentStore
    search: PostgresLibrary | PgVectorStoreLibrary
    calculator: SqliteCalculator
    embedder: ServedEmbedder
    """Embeds documents and queries."""
    local_embedder: OnnxEmbedder
    """The model that ships, for local judgement and late interaction; the same object as `embedder` by default."""
    ingestion: Ingestion
    parsers: ParserWorkers
    ingestions: PostgresIngestionQueue
    backlog: EmbeddingBacklog
    encoder: PassageEncoder
    """Computes the vectors of chunks."""
    originals: OriginalStore
    synced: SyncedFiles
    tend_indexes: Callable[[], None]
    """Resumes the index builds that a crash has interrupted, in the background."""
    wait_for_indexes: Callable[[], Awaitable[None]]
    """Returns once no vector index is being built."""
    checks: Mapping[str, Check]
    parts: Mapping[str, str]
    """A description of each part for people."""


@asynccontextmanager
async def open_library(
    settings: Settings, servers: Servers, prices: PriceTable, answers: AnswerCache
) -> AsyncIterator[LibraryServices]:
    """Open the library on running servers.

    Raises `ConfigurationError` and `DatabaseUnavailable`.
    """
    pool = servers.database.pool
    parts = {}
    async with AsyncExitStack() as stack:
        local, embedder, encoder = await stack.enter_async_context(_open_models(settings, prices))
        if settings.pgvectorstore is None:
            await choose_embedder(pool, embedder)

        async def check_embeddings() -> str | None:
            replaced = None
            # A database that does not answer is reported by its own check.
            with suppress(AskgraphError):
                replaced = None if settings.pgvectorstore else await find_problem(pool, embedder)
            return replaced or embedder.problem

        storage = open_object_storage(settings)
        if storage is not None:
            await _check_storage(storage)
            parts["originals"] = settings.originals
        originals = PostgresOriginals(pool, storage)
        own_documents = PostgresDocumentStore(pool, embedder, originals)
        stack.push_async_callback(own_documents.close)
        backlog = PostgresEmbeddingBacklog(pool, embedder, own_documents.tend_indexes)
        search: PostgresLibrary | PgVectorStoreLibrary = PostgresLibrary(pool, embedder)
        documents: DocumentStore = own_documents
        if settings.pgvectorstore is not None:
            mapping = read_mapping(settings.pgvectorstore)
            url = reveal(settings.pgvectorstore_url) or servers.database.url
            table = await stack.enter_async_context(open_table(url, mapping, embedder.dimension))
            search, documents = PgVectorStoreLibrary(table), PgVectorStoreDocuments(table)
            parts["library"] = f"the table {mapping.schema_name}.{mapping.table}, which another application fills"
        parsers = await stack.enter_async_context(
            ParserWorkers(seconds=settings.parser_seconds, memory_mb=settings.parser_memory_mb)
        )
        calculator = SqliteCalculator(search)
        stack.push_async_callback(calculator.aclose)
        parts["embeddings"] = f"local {embedder.name}" if embedder is local else embedder.name
        yield LibraryServices(
            documents=documents,
            search=search,
            calculator=calculator,
            embedder=embedder,
            local_embedder=local,
            ingestion=Ingestion(
                documents,
                encoder,
                answers,
                parsers,
                backlog=backlog,
                max_bytes=settings.max_document_mb * 1_000_000,
                limit=settings.storage_limit,
                keys=PostgresKeyStore(pool),
            ),
            parsers=parsers,
            ingestions=PostgresIngestionQueue(pool),
            backlog=backlog,
            encoder=encoder,
            originals=originals,
            synced=PostgresSyncedFiles(pool),
            tend_indexes=own_documents.tend_indexes,
            wait_for_indexes=own_documents.wait_for_indexes,
            checks={"embeddings": check_embeddings} | ({"originals": storage.find_problem} if storage else {}),
            parts=parts,
        )


async def _check_storage(storage: ObjectStorage) -> None:
    """Raise `ConfigurationError` where files can never be kept there. Storage that does not answer is logged: questions
    are answered without it."""
    try:
        await storage.check_access()
    except StorageUnavailable as error:
        logger.error("%s Until it does, no document can be added.", error.message)


@asynccontextmanager
async def open_embedding_again(settings: Settings) -> AsyncIterator[tuple[EmbeddingBacklog, PassageEncoder, Embedder]]:
    """Make the model of the settings that of all documents, and open what embeds them: words find them meanwhile.

    Raises `ConfigurationError`, `DatabaseUnavailable`, and `EmbedderUnavailable` where the model does not answer.
    """
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(open_servers(settings))
        pool = servers.database.pool
        prices = read_prices(settings.prices)
        _, embedder, encoder = await stack.enter_async_context(_open_models(settings, prices))
        if embedder.problem:
            raise EmbedderUnavailable(embedder.problem)
        await choose_embedder(pool, embedder, again=True)
        indexes = VectorIndexes(pool)
        yield PostgresEmbeddingBacklog(pool, embedder, indexes.tend), encoder, embedder
        await indexes.wait()


@asynccontextmanager
async def _open_models(
    settings: Settings, prices: PriceTable
) -> AsyncIterator[tuple[OnnxEmbedder, ServedEmbedder, PassageEncoder]]:
    """Open the model that ships, the embedder that the settings name, and what computes the vectors of chunks."""
    local = await asyncio.to_thread(OnnxEmbedder.load)
    try:
        encoder: PassageEncoder = LateInteractionEncoder(local)
        if settings.embeddings == "local":
            yield local, local, encoder
            return
        async with open_embedder(settings, prices) as embedder:
            if embedder.problem:
                logger.error("%s", embedder.problem)
            yield local, embedder, TwoModelEncoder(embedder, encoder)
    finally:
        local.close()
