"""The answer machine. Read it beside the diagram in the README, which is drawn from it."""

from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import RetryPolicy, TimeoutPolicy

from domain.errors import Unavailable
from domain.state import AnswerState, TurnInput
from graphs.decisions import (
    decide_retry,
    decide_route,
    decide_sufficiency,
    decide_support,
    decide_verification,
)
from graphs.instrumentation import instrument
from nodes.abstain import abstain
from nodes.context import Context
from nodes.converse import converse
from nodes.decline import decline
from nodes.generate import generate
from nodes.grade import grade
from nodes.reconcile import reconcile
from nodes.reformulate import reformulate
from nodes.rerank import rerank
from nodes.retrieve import retrieve
from nodes.route import route
from nodes.verify import verify

AnswerGraph = CompiledStateGraph[AnswerState, Context, TurnInput, AnswerState]

JUDGES = TimeoutPolicy(run_timeout=60)
SEARCHES = TimeoutPolicy(run_timeout=15)
WRITES = TimeoutPolicy(run_timeout=300, idle_timeout=90)
"""A model may write for minutes, but not be silent for long."""

# LangGraph's default policy retries our own input errors and not timeouts, so what is retried is said here. Nodes
# that write to the reader are not retried: the reader would see the beginning twice.
AGAIN = RetryPolicy(max_attempts=2, initial_interval=0.1, retry_on=(Unavailable, NodeTimeoutError))
ONCE = RetryPolicy(max_attempts=1)


def build_answer_graph(checkpointer: BaseCheckpointSaver[Any] | None = None) -> AnswerGraph:
    """The compiled graph. Pass the context on every call, on resume too: it is not checkpointed."""
    graph = StateGraph(AnswerState, context_schema=Context, input_schema=TurnInput)

    def add(name: str, node: Any, timeout: TimeoutPolicy, retry: RetryPolicy) -> None:
        graph.add_node(name, instrument(name, node), input_schema=AnswerState, timeout=timeout, retry_policy=retry)

    add("route", route, JUDGES, AGAIN)
    add("converse", converse, WRITES, ONCE)
    add("decline", decline, SEARCHES, ONCE)
    add("retrieve", retrieve, SEARCHES, AGAIN)
    add("rerank", rerank, SEARCHES, AGAIN)
    add("grade", grade, JUDGES, AGAIN)
    add("reformulate", reformulate, JUDGES, AGAIN)
    add("generate", generate, WRITES, ONCE)
    add("verify", verify, JUDGES, ONCE)
    add("reconcile", reconcile, JUDGES, ONCE)
    add("abstain", abstain, SEARCHES, ONCE)

    graph.add_edge(START, "route")
    graph.add_conditional_edges(
        "route",
        decide_route,
        {"conversational": "converse", "out_of_scope": "decline", "needs_retrieval": "retrieve"},
    )
    graph.add_edge("retrieve", "rerank")
    graph.add_edge("rerank", "grade")
    graph.add_conditional_edges(
        "grade",
        decide_sufficiency,
        {"sufficient": "generate", "poor, retries left": "reformulate", "poor, none left": "abstain"},
    )
    graph.add_conditional_edges(
        "reformulate",
        decide_retry,
        {"new query": "retrieve", "nothing new, partly answerable": "generate", "nothing new": "abstain"},
    )
    graph.add_conditional_edges("generate", decide_verification, {"mode verifies": "verify", "mode does not": END})
    graph.add_conditional_edges("verify", decide_support, {"supported": END, "unsupported claims": "reconcile"})
    for last in ("converse", "decline", "abstain", "reconcile"):
        graph.add_edge(last, END)
    return graph.compile(checkpointer=checkpointer, name="answer")
