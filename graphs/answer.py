"""The answer graph. The diagram in the README is drawn from it."""

from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy

from domain.errors import Unavailable
from domain.state import STATE_VERSION, AnswerState, TurnInput
from graphs.decisions import (
    Router,
    decide_answer,
    decide_description,
    decide_next_round,
    decide_remedy,
    decide_repair,
    decide_retry,
    decide_route,
    decide_sufficiency,
    decide_support,
    decide_work,
)
from graphs.instrumentation import instrument
from graphs.node import Node
from nodes.abstain.step import STEP as ABSTAIN
from nodes.ask_back.step import STEP as ASK_BACK
from nodes.context import Context
from nodes.converse.step import STEP as CONVERSE
from nodes.decline.step import STEP as DECLINE
from nodes.degrade.step import STEP as DEGRADE
from nodes.describe.step import STEP as DESCRIBE
from nodes.generate.step import STEP as GENERATE
from nodes.grade.step import STEP as GRADE
from nodes.reconcile.step import STEP as RECONCILE
from nodes.reformulate.step import STEP as REFORMULATE
from nodes.rerank.step import STEP as RERANK
from nodes.retrieve.step import STEP as RETRIEVE
from nodes.route.step import STEP as ROUTE
from nodes.step import Step
from nodes.use_tool.step import STEP as USE_TOOL
from nodes.verify.step import STEP as VERIFY
from nodes.work.step import STEP as WORK

AnswerGraph = CompiledStateGraph[AnswerState, Context, TurnInput, AnswerState]

STEP_SECONDS = 15.0
"""Seconds for a step's own work: a search, or the local judgement that replaces a model's."""
WRITING_SECONDS = 600.0
"""The most seconds that a profile may give a model to write an answer."""

RECURSION_LIMIT = 200
"""The most steps of a run; more would be a loop. Each of at most five retries takes four steps. A failed answerer takes
two. Sources that are too long are halved, at most six times, which takes two steps each."""

FINAL_NODE = "abstain"
"""Node name under which we write a complete state ourselves; its only edge leads to END."""

# LangGraph's default policy retries our input errors but no timeouts.
RETRY_ONCE = RetryPolicy(max_attempts=2, initial_interval=0.1, retry_on=(Unavailable, NodeTimeoutError))
NO_RETRY = RetryPolicy(max_attempts=1)


STEPS: Mapping[str, Step] = {
    step.name: step
    for step in (
        ROUTE,
        CONVERSE,
        DECLINE,
        DESCRIBE,
        ASK_BACK,
        RETRIEVE,
        RERANK,
        GRADE,
        REFORMULATE,
        GENERATE,
        WORK,
        USE_TOOL,
        DEGRADE,
        VERIFY,
        RECONCILE,
        ABSTAIN,
    )
}

EDGES: Mapping[str, str | tuple[Router, dict[Hashable, str]]] = {
    START: "route",
    "route": (
        decide_route,
        {
            "conversational": "converse",
            "out_of_scope": "decline",
            "about_library": "describe",
            "needs_retrieval": "retrieve",
        },
    ),
    "converse": END,
    "decline": END,
    "describe": (
        decide_description,
        {"described": END, "ambiguous": "ask_back", "a model writes": "generate"},
    ),
    "ask_back": END,
    "retrieve": "rerank",
    "rerank": "grade",
    "grade": (
        decide_sufficiency,
        {"sufficient": "generate", "poor": "abstain", "over budget": "degrade", "ambiguous": "ask_back"},
    ),
    "reformulate": (
        decide_retry,
        {"new query": "retrieve", "nothing new": "generate", "over budget": "degrade"},
    ),
    "generate": (
        decide_answer,
        {
            "mode verifies": "verify",
            "mode does not": END,
            "needs searches": "reformulate",
            "needs tools": "work",
            "answerer failed": "degrade",
        },
    ),
    "work": (decide_work, {"uses tools": "use_tool", "has enough": "grade"}),
    "use_tool": (decide_next_round, {"rounds left": "work", "none left": "grade"}),
    "degrade": (
        decide_remedy,
        {"answer otherwise": "generate", "quote the document": "describe", "nothing to answer from": "abstain"},
    ),
    "verify": (decide_support, {"supported": END, "unsupported claims": "reconcile"}),
    "reconcile": (decide_repair, {"reconciled": END, "nothing is left": "degrade"}),
    "abstain": END,
}
"""What follows each step: a step, or a router and the steps that its answers lead to."""


def find_router(name: str) -> Router | None:
    """Return what chooses the edge after a step; None where only one leads on."""
    edge = EDGES.get(name, END)
    return None if isinstance(edge, str) else edge[0]


def build_answer_graph(checkpointer: BaseCheckpointSaver[Any] | None = None, model_timeout: float = 60) -> AnswerGraph:
    """Compile the graph. Pass the context on every call, on resume too: it is not checkpointed.

    A step waits `model_timeout` seconds for a language model's judgement, or for its next word. The step's own time
    limit is `STEP_SECONDS` later, so that it can go on without the model.
    """
    graph = StateGraph(AnswerState, context_schema=Context, input_schema=TurnInput)
    for name, step in STEPS.items():
        seconds = max(WRITING_SECONDS, model_timeout) if step.streams else model_timeout if step.asks else 0
        graph.add_node(
            name,
            instrument(Node(step, seconds)),
            input_schema=AnswerState,
            timeout=TimeoutPolicy(run_timeout=seconds + STEP_SECONDS),
            retry_policy=RETRY_ONCE if step.retry else NO_RETRY,
        )
    for source, edge in EDGES.items():
        if isinstance(edge, str):
            graph.add_edge(source, edge)
        else:
            graph.add_conditional_edges(source, _choose_by(edge[0]), edge[1])
    compiled = graph.compile(checkpointer=checkpointer, name="answer")
    # Every checkpoint's metadata then holds the version of the state's types, whoever runs the graph.
    return compiled.with_config(metadata={"state_version": STATE_VERSION})


def _choose_by(router: Router) -> Callable[[AnswerState], Awaitable[str]]:
    # LangGraph would run a plain function in a thread, which costs more than the decision.
    async def choose(state: AnswerState) -> str:
        return router(state)

    choose.__name__ = router.decide.__name__
    return choose
