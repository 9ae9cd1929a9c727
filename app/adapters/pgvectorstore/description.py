"""The table as langchain-postgres describes it. Importing this module costs 1.4 s: import it where such a table is
configured."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.embeddings import Embeddings
from psycopg import AsyncConnection

from app.adapters.pgvectorstore.mapping import TableMapping
from domain.errors import ConfigurationError

try:
    from langchain_postgres import PGEngine
    from langchain_postgres.v2.async_vectorstore import AsyncPGVectorStore
    from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig
    from sqlalchemy.ext.asyncio import create_async_engine
    from sqlalchemy.pool import NullPool
except ModuleNotFoundError as error:
    raise ConfigurationError(
        "The library is a table of PGVectorStore, and the package langchain-postgres is not installed. Run: "
        "pip install 'askgraph[pgvectorstore]'"
    ) from error


class _NoEmbeddings(Embeddings):
    """Stands in for the embedding model: the store is opened for its description and never asked to embed."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise NotImplementedError

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


async def describe_table(
    address: str, options: Mapping[str, Any], mapping: TableMapping, types: Mapping[str, str]
) -> AsyncPGVectorStore:
    """Open the table as `PGVectorStore` does, and return the store, whose connections are closed again.

    `options` are psycopg's; `types` are the SQL types of the table's columns by name. Raises `ConfigurationError` for a
    table that `PGVectorStore` itself could not open.
    """
    engine = create_async_engine(
        "postgresql+psycopg://", async_creator=partial(AsyncConnection.connect, address, **options), poolclass=NullPool
    )
    words = mapping.words and HybridSearchConfig(tsv_column=mapping.words, tsv_lang=mapping.language)
    try:
        return await AsyncPGVectorStore.create(
            PGEngine.from_engine(engine),
            _NoEmbeddings(),
            mapping.table,
            schema_name=mapping.schema_name,
            id_column=mapping.id,
            content_column=mapping.content,
            embedding_column=mapping.embedding,
            metadata_columns=[name for name in mapping.metadata_names if name in types],
            metadata_json_column=mapping.metadata,
            hybrid_search_config=words or None,
        )
    except ValueError as error:
        raise ConfigurationError(
            f"PGVectorStore cannot open the table {mapping.schema_name}.{mapping.table}: {error}"
        ) from error
    finally:
        await engine.dispose()
