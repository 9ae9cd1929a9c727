"""The answer graph. The diagram in the README is drawn from it."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy

from domain.errors import Unavailable
from domain.state import STATE_VERSION, AnswerState, TurnInput
from graphs.decisions import (
    decide_answer,
    decide_description,
    decide_remedy,
    decide_repair,
    decide_retry,
    decide_route,
    decide_sufficiency,
    decide_support,
)
from graphs.instrumentation import instrument
from graphs.node import Node
from nodes.abstain.step import abstain
from nodes.ask_back.step import ask_back
from nodes.context import Context
from nodes.converse.step import converse
from nodes.decline.step import decline
from nodes.degrade.step import degrade
from nodes.describe.step import describe
from nodes.generate.step import generate
from nodes.grade.step import grade
from nodes.reconcile.step import reconcile
from nodes.reformulate.step import reformulate
from nodes.rerank.step import rerank
from nodes.retrieve.step import retrieve
from nodes.route.step import route
from nodes.verify.step import verify

AnswerGraph = CompiledStateGraph[AnswerState, Context, TurnInput, AnswerState]

STEP_SECONDS = 15.0
"""Seconds for a step's own work: a search, or the local judgement that replaces a model's."""
WRITING_SECONDS = 300.0
"""Seconds that a model may take to write an answer, as long as it is not silent."""

RECURSION_LIMIT = 200
"""The most steps of a run; more would be a loop. Each of at most five retries takes four steps. A failed answerer takes
two. Sources that are too long are halved, at most six times, which takes two steps each."""

FINAL_NODE = "abstain"
"""Node name under which we write a complete state ourselves; its only edge leads to END."""

# LangGraph's default policy retries our input errors but no timeouts. Nodes that write to the reader are not retried,
# because the reader would see the beginning twice.
RETRY_ONCE = RetryPolicy(max_attempts=2, initial_interval=0.1, retry_on=(Unavailable, NodeTimeoutError))
NO_RETRY = RetryPolicy(max_attempts=1)


def build_answer_graph(checkpointer: BaseCheckpointSaver[Any] | None = None, model_timeout: float = 60) -> AnswerGraph:
    """Compile the graph. Pass the context on every call, on resume too: it is not checkpointed.

    A step waits `model_timeout` seconds for a language model's judgement, or for its next word. The step's own time
    limit is `STEP_SECONDS` later, so that it can go on without the model.
    """
    graph = StateGraph(AnswerState, context_schema=Context, input_schema=TurnInput)

    nodes: dict[str, Node] = {}

    def branch(source: str, decide: Callable[[AnswerState], str], ways: dict[Hashable, str]) -> None:
        @wraps(decide)
        async def choose(state: AnswerState) -> str:
            return decide(state)

        # LangGraph would run a plain function in a thread, which costs more than the decision.
        graph.add_conditional_edges(source, choose, ways)

    def add(name: str, node: Any, retry: RetryPolicy, model_seconds: float = 0, idle: float | None = None) -> None:
        nodes[name] = Node(name, node, model_seconds, writes=idle is not None)
        graph.add_node(
            name,
            instrument(nodes[name], nodes),
            input_schema=AnswerState,
            timeout=TimeoutPolicy(run_timeout=model_seconds + STEP_SECONDS, idle_timeout=idle),
            retry_policy=retry,
        )

    writing, idle = max(WRITING_SECONDS, model_timeout), model_timeout + STEP_SECONDS
    add("route", route, RETRY_ONCE, model_timeout)
    add("converse", converse, NO_RETRY, writing, idle)
    add("decline", decline, NO_RETRY)
    add("describe", describe, NO_RETRY)
    add("ask_back", ask_back, NO_RETRY)
    add("retrieve", retrieve, RETRY_ONCE, model_timeout)
    add("rerank", rerank, RETRY_ONCE, model_timeout)
    add("grade", grade, RETRY_ONCE, model_timeout)
    add("reformulate", reformulate, RETRY_ONCE, model_timeout)
    add("generate", generate, NO_RETRY, writing, idle)
    add("degrade", degrade, RETRY_ONCE)
    add("verify", verify, NO_RETRY, model_timeout)
    add("reconcile", reconcile, NO_RETRY, model_timeout)
    add("abstain", abstain, NO_RETRY)

    graph.add_edge(START, "route")
    branch(
        "route",
        decide_route,
        {
            "conversational": "converse",
            "out_of_scope": "decline",
            "about_library": "describe",
            "needs_retrieval": "retrieve",
        },
    )
    graph.add_edge("retrieve", "rerank")
    graph.add_edge("rerank", "grade")
    branch(
        "grade",
        decide_sufficiency,
        {
            "sufficient": "generate",
            "poor, retries left": "reformulate",
            "poor, none left": "abstain",
            "over budget": "degrade",
            "ambiguous": "ask_back",
        },
    )
    branch("describe", decide_description, {"described": END, "ambiguous": "ask_back"})
    branch(
        "reformulate",
        decide_retry,
        {
            "new query": "retrieve",
            "nothing new, partly answerable": "generate",
            "nothing new": "abstain",
            "over budget": "degrade",
        },
    )
    branch(
        "generate",
        decide_answer,
        {"mode verifies": "verify", "mode does not": END, "answerer failed": "degrade"},
    )
    branch("degrade", decide_remedy, {"answer otherwise": "generate", "nothing to answer from": "abstain"})
    branch("verify", decide_support, {"supported": END, "unsupported claims": "reconcile"})
    branch("reconcile", decide_repair, {"reconciled": END, "nothing is left": "degrade"})
    for last in ("converse", "decline", "ask_back", "abstain"):
        graph.add_edge(last, END)
    compiled = graph.compile(checkpointer=checkpointer, name="answer")
    # Every checkpoint's metadata then holds the version of the state's types, whoever runs the graph.
    return compiled.with_config(metadata={"state_version": STATE_VERSION})
