"""Uploads an evaluation, or a replay of many runs, to LangSmith."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.adapters.tracing.experiments import Example, ExampleRun, open_experiments
from app.evaluation.asking import Outcome
from app.evaluation.evaluation import Evaluated, Result
from app.evaluation.scoring import Metrics, is_right, pair_up, score_rankings
from app.evaluation.sets import Question
from app.workbench.fleet.fleet_report import FleetReport, FleetRow

_REPLAY_METRICS: Final = ("changed", "share_changed", "better", "worse", "citations_gained", "citations_lost", "spent")


def upload(evaluated: Sequence[Evaluated], fingerprint: str) -> list[str]:
    """Upload each set as a dataset and each profile's results as an experiment on it. Return the experiments' names.

    Raises `ConfigurationError` and `Unavailable`.
    """
    names: list[str] = []
    with open_experiments() as experiments:
        for each in evaluated:
            # Scores of different versions of a set cannot be compared, so each version is a dataset of its own.
            dataset_id = experiments.upload_dataset(
                f"{each.set.name} {each.set.fingerprint[:8]}",
                [
                    Example(question.id, _list_inputs(question), _list_expected(question), question.type)
                    for question in each.set.questions
                ],
            )
            for result in each.results:
                name = f"{each.set.name}-{result.profile}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
                metadata = {"profile": result.profile, "machine": fingerprint}
                experiments.upload_experiment(dataset_id, name, metadata, _list_runs(each, result), result.metrics)
                names.append(name)
    return names


def upload_replay(report: FleetReport, workspace: str, fingerprint: str) -> str:
    """Upload the replayed runs as examples, with how they ended then as what is expected, and how they end now as an
    experiment on them. Return the experiment's name.

    Raises `ConfigurationError` and `Unavailable`.
    """
    rows = [row for row in report["runs"] if row["recorded"] and row["ending"]]
    name = f"replay-{workspace}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    with open_experiments() as experiments:
        dataset_id = experiments.upload_dataset(
            f"runs of {workspace}",
            [Example(row["run_id"], {"question": row["question"]}, dict(row["recorded"] or {}), "") for row in rows],
        )
        metrics = {key: float(report[key]) for key in _REPLAY_METRICS}
        metadata = {"change": report["change"], "judge": report["judge"], "machine": fingerprint}
        experiments.upload_experiment(dataset_id, name, metadata, [_describe_row(row) for row in rows], metrics)
    return name


def _describe_row(row: FleetRow) -> ExampleRun:
    assert row["ending"] is not None
    judged = (
        {} if row["judged"] is None else {"better": {"better": 1.0, "same": 0.5, "worse": 0.0}[row["judged"]["now"]]}
    )
    return ExampleRun(
        key=row["run_id"],
        inputs={"question": row["question"]},
        outputs=dict(row["ending"]),
        error=row["ending"]["error"],
        ms=sum(change["ms"][1] for change in row["by_node"].values()),
        scores={"changed": float(bool(row["compared"] and row["compared"]["flipped"])), **judged},
    )


def _list_inputs(question: Question) -> dict[str, Any]:
    inputs: dict[str, Any] = {"question": question.question}
    if question.history:
        inputs["history"] = [message.model_dump() for message in question.history]
    if question.response is not None:
        inputs["response"] = question.response
    return inputs


def _list_expected(question: Question) -> dict[str, Any]:
    return question.model_dump(include={"answers", "answerable", "relevant", "label"}, mode="json")


def _list_runs(each: Evaluated, result: Result) -> list[ExampleRun]:
    pairs = pair_up(each.set, result.outcomes)
    rankings = score_rankings(pairs)
    return [
        ExampleRun(
            key=question.id,
            inputs=_list_inputs(question),
            outputs=outcome.model_dump(exclude={"id", "error", "timings"}),
            error=outcome.error,
            ms=outcome.timings.get("total", 0.0),
            scores=_list_scores(each, question, outcome) | rankings.get(question.id, {}),
        )
        for question, outcome in pairs
    ]


def _list_scores(each: Evaluated, question: Question, outcome: Outcome) -> Metrics:
    return {"right": float(is_right(each.set, question, outcome)), "confidence": outcome.confidence}
