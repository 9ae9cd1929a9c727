"""LangChain's retriever and LangGraph's node, both on the client.

`langchain-core` is imported here and nowhere else in this package.
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from pydantic import ConfigDict, Field
from typing_extensions import Unpack

from askgraph.async_client import AsyncClient
from askgraph.calls import Options
from askgraph.client import Client
from askgraph.models import Answer, Passage


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


class AskNode(RunnableLambda[Any, dict[str, Any]]):
    """A step that answers the last message of a human: a node of a LangGraph graph, or a link of a chain.

    ::

        graph.add_node("ask", AskNode(Client("https://ask.example.com"), mode="thorough"))

    It reads `messages` and `thread_id` of the state, and returns an update of it: `messages` with the answer, whose
    `response_metadata` says what the server said of it besides the text, and `thread_id`, by which the conversation
    goes on where the state keeps it. With an `AsyncClient`, run the graph with `ainvoke` or `astream`.
    """

    def __init__(self, client: Client | AsyncClient, **options: Unpack[Options]) -> None:
        """`options` are those of `Client.ask`."""

        def choose(state: dict[str, Any]) -> Options:
            thread_id = state.get("thread_id")
            return {**options, "thread_id": thread_id} if thread_id else options

        if isinstance(client, AsyncClient):

            async def ask(state: dict[str, Any]) -> dict[str, Any]:
                return _as_update(await client.ask(_read_question(state), **choose(state)))

            super().__init__(ask, name="AskNode")
        else:
            super().__init__(
                lambda state: _as_update(client.ask(_read_question(state), **choose(state))), name="AskNode"
            )


def _read_question(state: dict[str, Any]) -> str:
    messages: Sequence[BaseMessage] = state["messages"]
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return message.text
    raise ValueError("There is no message of a human in `messages` to answer.")


def _as_update(answer: Answer) -> dict[str, Any]:
    said = answer.model_dump(mode="json", exclude={"answer", "type"})
    return {"messages": [AIMessage(answer.answer, response_metadata=said)], "thread_id": answer.thread_id}


def _as_document(passage: Passage) -> Document:
    return Document(passage.text, metadata=passage.model_dump(exclude={"text"}))
