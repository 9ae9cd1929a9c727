"""Through the real SDK, against a server that speaks its protocol."""

import asyncio
from collections.abc import Iterator

import pytest
from langsmith import utils

from app.evaluation.asking import Outcome
from app.evaluation.evaluation import Evaluated, Result
from app.evaluation.sets import EvaluationSet, Question
from app.evaluation.uploading import upload, upload_replay
from app.workbench.compare.endings import Ending, compare
from app.workbench.fleet.fleet_report import FleetRow, NodeChange, Plan, make_report
from domain.errors import ConfigurationError, Unavailable
from tests.wire.langsmith import serve_langsmith

QUESTIONS = (
    Question.model_validate(
        {"id": "q1", "question": "How long?", "answers": ["36 months"], "answerable": True, "relevant": ["d"]}
    ),
    Question.model_validate({"id": "q2", "question": "Who?", "history": [{"role": "user", "content": "Hello"}]}),
)
OUTCOMES = {
    "q1": Outcome(id="q1", ranking=["e", "d"], answer="36 months [1]", confidence=0.75, timings={"total": 120}),
    "q2": Outcome(id="q2", error="The database did not answer."),
}
EVALUATED = Evaluated(
    EvaluationSet("ours", "questions", QUESTIONS, "0123456789abcdef"),
    [Result("standard", {"mrr@10": 0.5}, OUTCOMES, 0)],
)


@pytest.fixture(autouse=True)
def fresh_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The SDK caches the environment."""
    monkeypatch.setenv("LANGSMITH_API_KEY", "key")
    utils.get_env_var.cache_clear()  # type: ignore[attr-defined]
    yield
    utils.get_env_var.cache_clear()  # type: ignore[attr-defined]


async def test_a_set_becomes_a_dataset_and_its_results_an_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_langsmith() as langsmith:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
        [name] = await asyncio.to_thread(upload, [EVALUATED], "machine")

        [dataset] = langsmith.datasets.values()
        assert dataset["name"] == "ours 01234567"
        first, second = sorted(langsmith.examples.values(), key=lambda e: e["metadata"]["key"])
        assert first["inputs"] == {"question": "How long?"}
        assert first["outputs"]["answers"] == ["36 months"]
        assert second["inputs"]["history"] == [{"role": "user", "content": "Hello"}]
        assert {first["dataset_id"], second["dataset_id"]} == {dataset["id"]}

        [experiment] = langsmith.experiments.values()
        assert (experiment["name"], experiment["reference_dataset_id"]) == (name, dataset["id"])
        assert experiment["extra"]["metadata"] == {"profile": "standard", "machine": "machine"}
        assert experiment["end_time"]

        runs = {run["reference_example_id"]: run for run in langsmith.runs}
        assert runs.keys() == {first["id"], second["id"]}
        assert runs[first["id"]]["outputs"]["answer"] == "36 months [1]"
        assert runs[second["id"]]["error"] == "The database did not answer."
        assert {run["session_name"] for run in langsmith.runs} == {name}

        run_id = runs[first["id"]]["id"]
        scores = {given["key"]: given["score"] for given in langsmith.feedback if given.get("run_id") == run_id}
        assert scores["mrr@10"] == 0.5
        assert scores["confidence"] == 0.75
        [summary] = [given for given in langsmith.feedback if given.get("run_id") is None]
        assert (summary["key"], summary["score"], summary["session_id"]) == ("mrr@10", 0.5, experiment["id"])


async def test_a_second_upload_adds_an_experiment_and_no_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve_langsmith() as langsmith:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
        for _ in range(2):
            await asyncio.to_thread(upload, [EVALUATED], "machine")
        assert (len(langsmith.datasets), len(langsmith.examples), len(langsmith.experiments)) == (1, 2, 2)


async def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int) -> None:
    monkeypatch.setenv("LANGSMITH_ENDPOINT", f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(Unavailable, match="LangSmith did not take the results"):
        await asyncio.to_thread(upload, [EVALUATED], "machine")
    monkeypatch.delenv("LANGSMITH_API_KEY")
    with pytest.raises(ConfigurationError, match="LANGSMITH_API_KEY"):
        upload([EVALUATED], "machine")


async def test_a_replay_becomes_an_experiment_on_the_runs_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = Ending(
        outcome="answered", error=None, route="needs_retrieval", answer="36 months [1]", citations=[], verdict="skipped",
        confidence=0.9, answered_by="local", retries=0, path=["route"],
    )  # fmt: skip
    now = Ending(**{**ending, "outcome": "abstained", "answer": "Nothing."})
    row = FleetRow(
        run_id="r1", question="How long?", begins="grade", recorded=ending, ending=now, compared=compare(ending, now),
        judged={"now": "worse", "reason": ""}, by_node={"grade": NodeChange(ms=(1.0, 2.0), cost=(0.0, 0.0))}, taped=3,
        made=0, cost=0.0, problem=None,
    )  # fmt: skip
    plan = Plan(runs=1, affected=1, unaffected=0, skipped={}, begins={}, repeated_cost=0.0, unpriced_calls=0)
    report = make_report("mode fast", plan, [row], judge="verifier")
    async with serve_langsmith() as langsmith:
        monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
        name = await asyncio.to_thread(upload_replay, report, "default", "machine")
        [example], [experiment], [run] = langsmith.examples.values(), langsmith.experiments.values(), langsmith.runs
        assert (example["inputs"], example["outputs"]["outcome"]) == ({"question": "How long?"}, "answered")
        assert (experiment["name"], experiment["extra"]["metadata"]["change"]) == (name, "mode fast")
        assert (run["reference_example_id"], run["outputs"]["outcome"]) == (example["id"], "abstained")
        scores = {given["key"]: given["score"] for given in langsmith.feedback if given.get("run_id") == run["id"]}
        assert scores == {"changed": 1.0, "better": 0.0}
