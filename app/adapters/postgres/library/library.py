"""The searchable library in PostgreSQL with pgvector. Each part stands in its own module, with its statements."""

from collections.abc import Sequence

from app.adapters.postgres.conversations.threads import list_groups
from app.adapters.postgres.library.dense import DenseSearch
from app.adapters.postgres.library.lexical import LexicalSearch
from app.adapters.postgres.library.passages import PassageReader
from app.adapters.postgres.library.vocabulary import suggest_words
from app.adapters.postgres.pool import Pool, open_session
from domain.ports.embedding import Embedder
from domain.scope import Scope
from domain.text.languages import Language


class PostgresLibrary(DenseSearch, LexicalSearch, PassageReader):
    """Implements `Library` and `TokenVectors`."""

    def __init__(self, pool: Pool, embedder: Embedder | None = None) -> None:
        """`embedder` is the model that embeds the queries. Without one, any index is accepted."""
        DenseSearch.__init__(self, pool, embedder)
        LexicalSearch.__init__(self, pool)
        PassageReader.__init__(self, pool)

    async def suggest_words(
        self, scope: Scope, words: Sequence[str], unfinished: str | None, language: Language
    ) -> dict[str, str]:
        async with open_session(self._pool, scope) as session:
            document_ids = await self._filtered.find(session, scope)
            return await suggest_words(session, words, unfinished, language, document_ids, list_groups(scope))
