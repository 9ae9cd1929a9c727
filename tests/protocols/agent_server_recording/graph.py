"""A graph for `langgraph dev` that takes the steps of ours, says the same events and changes the same fields."""

from typing import Annotated, Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    """The state of a thread, as the protocol shows ours."""

    messages: Annotated[list[AnyMessage], add_messages]
    question: str
    mode: str
    route: str
    standalone_question: str
    outcome: str
    outcome_reasons: list[Any]
    confidence: float
    citations: list[Any]
    verification: dict[str, Any]


def pass_through(step: str) -> Any:
    """Make a step that changes nothing that the protocol shows."""

    async def run(state: State) -> None:
        get_stream_writer()({"type": "thinking", "step": step})

    return run


async def generate(state: State) -> dict[str, Any]:
    """Write an answer of one word."""
    write = get_stream_writer()
    write({"type": "thinking", "step": "generate"})
    write({"type": "sources", "citations": []})
    write({"type": "content", "token": "36"})
    model = GenericFakeChatModel(messages=iter([AIMessage("36", id="answer")]))
    answer = await model.ainvoke(state["messages"])
    write({"type": "citation", "citation": {}})
    return {
        "messages": [answer],
        "route": "needs_retrieval",
        "standalone_question": "How long?",
        "outcome": "answered",
        "outcome_reasons": [],
        "confidence": 0.9,
        "citations": [],
        "verification": {"status": "skipped", "claims": []},
    }


STEPS = ["route", "retrieve", "rerank", "grade", "generate"]
builder = StateGraph(State)
for name in STEPS:
    builder.add_node(name, generate if name == "generate" else pass_through(name))
for before, after in zip([START, *STEPS], [*STEPS, END], strict=True):
    builder.add_edge(before, after)
graph = builder.compile()
