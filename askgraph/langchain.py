"""LangChain's retriever, on the client.

`langchain-core` is imported here and nowhere else in this package.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from askgraph.async_client import AsyncClient
from askgraph.client import Client
from askgraph.models import Passage


class AskgraphRetriever(BaseRetriever):
    """Finds passages of the library, best first.

    ::

        retriever = AskgraphRetriever(client=Client("https://ask.example.com"), k=4)
        documents = retriever.invoke("How long is the warranty?")

    A document's text is `page_content`; its `metadata` has `document_id`, `title`, `source`, `heading_path`, `page`,
    `start`, `end` and `score`. One of `client` and `async_client` is enough: without an `async_client`, `ainvoke` uses
    the other one on a thread.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    client: Client | None = None
    async_client: AsyncClient | None = None
    k: int = Field(4, ge=1, le=50)
    """Passages to return."""
    where: str | None = None
    """Search only documents whose metadata fits, such as `team=legal and year>=2024`."""
    document_ids: Sequence[str] | None = None
    """Search these documents only."""
    workspace: str | None = None
    """Unset: that of the client."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        if self.client is None:
            raise ValueError("This retriever has no `client`. Give it one, or await `ainvoke`.")
        return [_as_document(passage) for passage in self.client.search(query, **self._options(options))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        if self.async_client is None:
            return await super()._aget_relevant_documents(query, run_manager=run_manager, **options)
        return [_as_document(passage) for passage in await self.async_client.search(query, **self._options(options))]

    def _options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of `search`; those of `invoke`, `k` among them, win."""
        mine = {"k": self.k, "where": self.where, "document_ids": self.document_ids, "workspace": self.workspace}
        chosen = {**mine, **given}
        return {"limit": chosen.pop("k"), **chosen}


def _as_document(passage: Passage) -> Document:
    return Document(passage.text, metadata=passage.model_dump(exclude={"text"}))
