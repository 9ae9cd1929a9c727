"""LangChain's own tests of retrievers, and a LangGraph graph with our node, against a service that is served."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from app.settings import Settings
from app.wiring.services import open_services
from askgraph import AsyncClient, Client
from askgraph.langchain import AskgraphRetriever, AskNode
from tests.asking import QUESTION
from tests.conftest import HANDBOOK, MANUAL
from tests.http_client import serve_services
from tests.protocols.examples import read_example


@pytest.fixture
def address(settings: Settings) -> Iterator[str]:
    """The service on a loop of its own, so that clients may block theirs."""
    found: list[str] = []
    ready = threading.Event()
    loop = asyncio.new_event_loop()
    ending = asyncio.Event()

    async def work() -> None:
        async with open_services(settings) as services:
            for name, content in (("handbook.md", HANDBOOK), ("manual.md", MANUAL)):
                await services.library.ingestion.add("default", name, content)
            async with serve_services(services) as served:
                found.append(served)
                ready.set()
                await ending.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(work(),))
    thread.start()
    assert ready.wait(60)
    yield found[0]
    loop.call_soon_threadsafe(ending.set)
    thread.join()
    loop.close()


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def open_client(self, address: str) -> Iterator[None]:
        with Client(address) as client:
            self.client = client
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return AskgraphRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


async def test_a_retriever_that_awaits_finds_the_same(address: str) -> None:
    async with AsyncClient(address) as client:
        with Client(address) as blocking:
            both = AskgraphRetriever(client=blocking, async_client=client, k=2, where="title = none")
            assert await both.ainvoke(QUESTION) == both.invoke(QUESTION) == []
        awaiting = AskgraphRetriever(async_client=client, k=2)
        found = await awaiting.ainvoke(QUESTION)
        assert "36 months" in found[0].page_content
        assert (found[0].metadata["title"], found[0].metadata["source"]) == ("Station handbook", "handbook.md")
        with pytest.raises(ValueError, match="no `client`"):
            awaiting.invoke(QUESTION)


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    thread_id: str


def build(node: AskNode) -> Any:
    graph = StateGraph(State)
    graph.add_node("ask", node)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile()


async def test_a_graph_asks_and_its_conversation_goes_on(address: str) -> None:
    async with AsyncClient(address) as client:
        graph = build(AskNode(client, mode="fast"))
        state = await graph.ainvoke({"messages": [HumanMessage(QUESTION)]})
        told = state["messages"][-1]
        assert isinstance(told, AIMessage)
        assert "36 months" in told.text
        assert (told.response_metadata["mode"], told.response_metadata["outcome"]) == ("fast", "answered")
        thread_id = state["thread_id"]
        state["messages"].append(HumanMessage("And who handles claims?"))
        state = await graph.ainvoke(state)
        assert ("Petra Lindqvist" in state["messages"][-1].text, state["thread_id"]) == (True, thread_id)
        with pytest.raises(TypeError, match="ainvoke"):
            graph.invoke(state)
    with Client(address) as blocking:
        graph = build(AskNode(blocking))
        assert "36 months" in graph.invoke({"messages": [HumanMessage(QUESTION)]})["messages"][-1].text
        assert "36 months" in (await graph.ainvoke({"messages": [HumanMessage(QUESTION)]}))["messages"][-1].text


def test_the_example_of_the_page_runs(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(read_example("LangChain and LangGraph").replace("http://127.0.0.1:8000", address), {})
    said = capsys.readouterr().out
    assert "Station handbook" in said
    assert "36 months" in said
