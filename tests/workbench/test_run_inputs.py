"""What a run is started with: its question, its configuration and the address of its answer."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from app.answering.requests import Ask
from app.history.thread_states import configure_run, trace_id
from domain.errors import InputError, QuestionError
from domain.library.where import Where
from domain.profile import MODES, Profile
from domain.scope import Scope
from graphs.answer import RECURSION_LIMIT

RUN = "0b2f8a52-5a5c-4d0e-9d5a-3f3c5f0f9a11"
SCOPE = Scope("team", ("b", "a"), Where.parse("year>=2024"))


def make_turn(**changes: Any) -> Any:
    turn = Ask("How long?", SCOPE, mode="fast").as_turn(RUN, MODES["fast"])
    return {**turn, **changes}


def test_a_question_becomes_the_graphs_input() -> None:
    assert Ask("  How long?  ", SCOPE, mode="fast").as_turn(RUN, MODES["fast"]) == {
        "run_id": RUN,
        "question": "How long?",
        "scope": {"workspace_id": "team", "document_ids": ["a", "b"], "where": {"year": {"gte": 2024}}},
        "mode": "fast",
        "profile": MODES["fast"].model_dump(),
        "asked_on": datetime.now(UTC).date().isoformat(),
    }
    with pytest.raises(QuestionError):
        Ask("  ").as_turn(RUN, MODES["fast"])


def test_a_run_is_configured() -> None:
    assert configure_run("t", make_turn(), attempt=1, trigger="api") == {
        "configurable": {"thread_id": "t", "workspace_id": "team"},
        "run_id": UUID(RUN),
        "run_name": "answer",
        "metadata": {
            "thread_id": "t", "run_id": RUN, "workspace_id": "team", "mode": "fast", "attempt": 1, "trigger": "api",
        },
        "recursion_limit": RECURSION_LIMIT,
    }  # fmt: skip
    assert configure_run("t", make_turn()).get("metadata", {})["attempt"] == 1


def test_each_attempt_has_a_trace_of_its_own() -> None:
    later = configure_run("t", make_turn(), attempt=2)
    assert trace_id(RUN, 1) == RUN
    assert len({trace_id(RUN, attempt) for attempt in (1, 2, 3)}) == 3
    assert later["run_id"] == UUID(trace_id(RUN, 2))
    assert trace_id(RUN, 2) == trace_id(RUN, 2)
    assert later["metadata"]["attempt"] == 2


def test_a_question_may_have_its_own_threshold_and_limit() -> None:
    profile = MODES["standard"]
    turn = Ask("How long?", threshold=0.3, limit=45).as_turn(RUN, profile)
    knobs = Profile.model_validate(turn["profile"])
    assert (knobs.retrieval.similarity_threshold, knobs.rerank.keep, knobs.retrieval.candidates) == (0.3, 45, 45)


@pytest.mark.parametrize("wrong", [{"threshold": 1.01}, {"threshold": -0.1}, {"limit": 0}, {"limit": 51}])
def test_a_threshold_or_a_limit_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="has to be from"):
        Ask("How long?", **wrong).as_turn(RUN, MODES["standard"])
