"""Where each edge leads, and that steps, routers and edges are complete."""

from importlib import import_module
from typing import Any, get_args, get_type_hints

import pytest
from langgraph.graph import END, START

from domain.execution.budget import Budget
from domain.outcome import ANSWERS
from graphs import decisions
from graphs.answer import EDGES, STEPS, build_answer_graph
from graphs.decisions import Router
from tests.graphs.test_decisions import FAILURE, make_state

SURE, POOR = 0.9, 0.1
SPENT = Budget(tokens=0)
TWO = [{"document_id": each, "title": each, "heading_path": [], "text": "It runs on Linux."} for each in "ab"]
UNSUPPORTED = {"status": "unsupported"}
CALLING, ENOUGH = {"text": "", "calls": [{"id": "1"}]}, {"text": "DONE", "calls": []}
CHOICES = [{"label": "A", "document_id": "a"}]

WAYS: list[tuple[str, dict[str, Any], str]] = [
    (START, {}, "route"),
    ("route", {"route": "conversational"}, "converse"),
    ("route", {"route": "out_of_scope"}, "decline"),
    ("route", {"route": "about_library"}, "describe"),
    ("route", {"route": "needs_retrieval"}, "retrieve"),
    ("converse", {}, END),
    ("decline", {}, END),
    ("describe", {"outcome": "answered"}, END),
    ("describe", {}, "generate"),
    ("describe", {"choices": CHOICES}, "ask_back"),
    ("ask_back", {}, END),
    ("retrieve", {}, "rerank"),
    ("rerank", {}, "grade"),
    ("work", {"work": [CALLING]}, "use_tool"),
    ("work", {"work": [ENOUGH]}, "grade"),
    ("use_tool", {"work": [CALLING], "research": 2}, "work"),
    ("use_tool", {"work": [CALLING, CALLING], "research": 2}, "grade"),
    ("grade", {"confidence": SURE}, "generate"),
    ("grade", {"confidence": SURE, "unclear": True, "sources": TWO, "corrected_question": "does it run?"}, "ask_back"),
    # Documents that say nothing of it are none to choose from.
    ("grade", {"confidence": SURE, "unclear": True, "sources": TWO, "corrected_question": "is it red?"}, "abstain"),
    # One document leaves nothing to choose from.
    ("grade", {"confidence": SURE, "unclear": True, "sources": TWO[:1] * 2}, "generate"),
    ("grade", {"confidence": SURE, "sources": TWO}, "generate"),
    ("grade", {"confidence": POOR}, "abstain"),
    ("grade", {"confidence": SURE, "budget": SPENT}, "degrade"),
    ("reformulate", {"query": "other"}, "retrieve"),
    ("reformulate", {"query": "tried"}, "generate"),
    ("reformulate", {"query": "other", "budget": SPENT}, "degrade"),
    *(("generate", {"verify": True, "outcome": outcome}, "verify") for outcome in (*ANSWERS, "showed_passages", None)),
    # An abstention claims nothing, unless it cites.
    ("generate", {"verify": True, "outcome": "abstained"}, END),
    ("generate", {"verify": True, "outcome": "abstained", "citations": [{}]}, "verify"),
    ("generate", {"verify": False, "outcome": "answered"}, END),
    ("generate", {"failure": FAILURE}, "degrade"),
    ("generate", {"lacks": "searches", "verify": True}, "reformulate"),
    ("generate", {"lacks": "tools"}, "work"),
    ("generate", {"verify": True, "outcome": "answered", "failure": FAILURE}, "degrade"),
    ("degrade", {"confidence": SURE}, "generate"),
    ("degrade", {"confidence": SURE, "outline": ["Warranty"], "answerer": "local"}, "describe"),
    ("degrade", {"confidence": POOR}, "abstain"),
    *(("verify", {"verification": {"status": status}}, END) for status in ("supported", "skipped", "reconciled")),
    ("verify", {"verification": UNSUPPORTED}, "reconcile"),
    ("reconcile", {}, END),
    ("reconcile", {"failure": FAILURE}, "degrade"),
    ("abstain", {}, END),
]


@pytest.mark.parametrize(("step", "fields", "target"), WAYS)
def test_the_graph_leads_from_each_step_to_the_next(step: str, fields: dict[str, Any], target: str) -> None:
    edge, state = EDGES[step], make_state(**{"queries_tried": ["tried"], **fields})
    assert (edge if isinstance(edge, str) else edge[1][edge[0](state)]) == target


def test_every_edge_of_the_compiled_graph_is_tried() -> None:
    drawn = {(edge.source, edge.target) for edge in build_answer_graph().get_graph().edges}
    assert drawn == {(source, target) for source, _, target in WAYS}


@pytest.mark.parametrize("name", [name for name, edge in EDGES.items() if not isinstance(edge, str)])
def test_every_answer_of_a_router_leads_somewhere(name: str) -> None:
    edge = EDGES[name]
    assert not isinstance(edge, str)
    assert set(get_args(get_type_hints(edge[0].decide)["return"])) == edge[1].keys()


def test_every_router_decides_at_one_edge() -> None:
    known = [router.decide.__name__ for router in vars(decisions).values() if isinstance(router, Router)]
    assert sorted(edge[0].decide.__name__ for edge in EDGES.values() if not isinstance(edge, str)) == sorted(known)


def test_every_step_is_described_in_its_own_folder() -> None:
    assert {START, *STEPS} == EDGES.keys()
    for name, step in STEPS.items():
        assert import_module(f"nodes.{name}.step").STEP is step
        assert step.label
