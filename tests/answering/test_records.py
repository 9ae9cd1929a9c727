"""What is kept and said of a finished turn."""

from datetime import UTC, datetime
from typing import Any, cast

from app.answering.records import adopt, make_done, make_record
from domain.ports.models import ModelUsage
from domain.state import blank_question, merge_state
from graphs.prompt_versions import VERSIONS
from tests.sources import make_source

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def used(node: str, cost: float | None = 0.1) -> dict[str, Any]:
    tokens = {"input_tokens": 2, "output_tokens": 3, "estimated": False}
    return {"node": node, "model": "m", "calls": 1, "cost": cost, **tokens}


def step(node: str, ms: float, *usage: dict[str, Any], warnings: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"node": node, "ms": ms, "warnings": list(warnings), "usage": list(usage)}


CITATION: Any = {"marker": 1, "document_id": "d", "title": "Handbook", "heading_path": ["Warranty"]}
DEGRADED: Any = {"node": "grade", "code": "model_failed", "given_up": "m", "instead": "local", "message": "x"}
TURN: Any = {
    "run_id": "r", "question": "How long?", "scope": {"workspace_id": "w", "document_ids": ["d"]}, "mode": "fast",
    "profile": {},
}  # fmt: skip


def make_state(**fields: Any) -> Any:
    return merge_state(
        TURN,
        {
            **blank_question(),
            "standalone_question": "How long is it?",
            "route": "needs_retrieval",
            "queries_tried": ["How long is it?", "long"],
            "retries": 1,
            "candidates": [{}, {}, {}],
            "sources": [make_source("a", score=0.4), make_source("b", score=0.7)],
            "confidence": 0.8,
            "outcome": "answered",
            "outcome_reasons": [{"code": "low_confidence"}],
            "framing": {"opening": 1, "closing": 2},
            "answer": "36 months [1].",
            "citations": [CITATION],
            "verification": {"status": "supported", "claims": []},
            "answered_by": "m",
            "degraded": [DEGRADED],
            "steps": [
                step("route", 1.006, used("route"), warnings=("slow",)),
                step("retrieve", 2.0, warnings=("slow", "other")),
                step("retrieve", 3.0),
                step("generate", 4.0, used("generate", 0.2)),
            ],
            **fields,
        },
    )


USAGE = [used("route"), used("generate", 0.2)]
TIMINGS = {"route": 1.01, "retrieve": 5.0, "generate": 4.0, "total": 12.35}


def test_the_last_event_says_that_a_turn_was_stopped_or_abstained() -> None:
    assert make_done(make_state(), "t", 1.0, None, stopped=True)["stopped"] is True
    assert make_done(make_state(outcome="abstained"), "t", 1.0, None)["abstained"] is True


def record(state: Any = None, ended: Any = None, **more: Any) -> Any:
    state = state or make_state()
    return make_record(state, "t", NOW, 12.345678, ended or make_done(state, "t", 12.345678, None), **more)


def test_a_record_has_all_of_the_turn() -> None:
    made = record(forked_from={"run_id": "before"}, unfinished=[ModelUsage("big", 5, 6, 0.4)])
    assert {name: getattr(made, name) for name in made.__dataclass_fields__} == {
        "run_id": "r",
        "thread_id": "t",
        "workspace_id": "w",
        "mode": "fast",
        "question": "How long?",
        "started_at": NOW,
        "standalone_question": "How long is it?",
        "queries": ["How long is it?", "long"],
        "scope": {"workspace_id": "w", "document_ids": ["d"]},
        "route": "needs_retrieval",
        "retries": 1,
        "candidates": 3,
        "sources": 2,
        "top_score": 0.7,
        "confidence": 0.8,
        "outcome": "answered",
        "outcome_reasons": [{"code": "low_confidence"}],
        "verification": "supported",
        "cached": False,
        "answer": "36 months [1].",
        "citations": [CITATION],
        "usage": [
            *USAGE,
            used("unfinished", 0.4) | {"model": "big", "input_tokens": 5, "output_tokens": 6},
        ],
        "cost": 0.7,
        "timings": TIMINGS,
        "warnings": ["slow", "other"],
        "error": None,
        "forked_from": {"run_id": "before"},
        "answered_by": "m",
        "degraded": [DEGRADED],
        "prompts": {"route": VERSIONS["route"], "generate": VERSIONS["generate"]},
    }


def test_the_last_event_says_what_the_record_says_and_where_the_turn_is_traced() -> None:
    state = make_state()
    done: dict[str, Any] = dict(make_done(state, "t", 12.345678, "https://trace"))
    made = record(state, done)
    shared = done.keys() & made.__dataclass_fields__.keys() - {"verification"}
    assert len(shared) == 18
    assert {name: done[name] for name in shared} == {name: getattr(made, name) for name in shared}
    assert done["verification"] == {"status": "supported", "claims": []}
    assert (done["trace_url"], done["framing"]) == ("https://trace", {"opening": 1, "closing": 2})


def test_a_record_says_how_a_turn_ended() -> None:
    failed = record(ended={"type": "error", "code": "internal", "message": "m", "run_id": "r"})
    assert (failed.error, failed.outcome, failed.outcome_reasons, failed.cached) == ("internal", None, [], False)
    state = make_state()
    assert record(state, make_done(state, "t", 1.0, None, stopped=True)).error == "stopped"
    assert record(state, {**make_done(state, "t", 1.0, None), "cached": True}).cached is True


def test_a_turn_of_unknown_cost_has_none_and_one_without_sources_no_score() -> None:
    made = record(make_state(sources=[], steps=[step("route", 1.0, used("route", None))]))
    assert (made.top_score, made.cost) == (None, None)


def test_an_answer_of_another_run_is_adopted() -> None:
    done: dict[str, Any] = dict(make_done(make_state(), "t", 1.0, None))
    earlier = {"run_id": "before"}
    adopted: dict[str, Any] = dict(adopt(TURN, [cast(Any, earlier)], cast(Any, done)))
    [before, turn] = adopted["turns"]
    assert (before, turn["run_id"], turn["answer"]) == (earlier, "r", "36 months [1].")
    told = {name: done[name] for name in done.keys() & adopted.keys() - {"degraded"}}
    assert len(told) == 12
    assert {name: adopted[name] for name in told} == told
    assert adopted["query"] == "How long is it?"
