"""Uploads an evaluation to LangSmith: the questions as a dataset, the answers and scores as an experiment on it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import langsmith
from langsmith.utils import LangSmithError, LangSmithNotFoundError
from requests import RequestException

from domain.errors import ConfigurationError, Unavailable

_FLUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Example:
    """A question of a dataset with its expected result."""

    key: str
    """Unique within the dataset."""
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    group: str


@dataclass(frozen=True, slots=True)
class ExampleRun:
    """The result of an example, with its scores."""

    key: str
    """Key of the example."""
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    error: str | None
    ms: float
    scores: Mapping[str, float]


def check_langsmith() -> None:
    """Raise `ConfigurationError` if there is no key to upload with."""
    if not (os.environ.get("LANGSMITH_API_KEY") or os.environ.get("LANGCHAIN_API_KEY")):
        raise ConfigurationError(
            "Uploading needs LANGSMITH_API_KEY (and LANGSMITH_ENDPOINT for a LangSmith of your own)."
        )


@contextmanager
def open_experiments() -> Iterator["Experiments"]:
    """Open a client for the length of the context. Raises `ConfigurationError`, and `Unavailable` if LangSmith refuses
    or does not answer."""
    check_langsmith()
    try:
        client = langsmith.Client()
        try:
            yield Experiments(client)
        finally:
            client.close(timeout=_FLUSH_SECONDS)
    except (LangSmithError, RequestException, OSError) as error:
        raise Unavailable(f"LangSmith did not take the results: {error}") from error


class Experiments:
    """Datasets and experiments on them."""

    def __init__(self, client: langsmith.Client) -> None:
        self._client = client

    def upload_dataset(self, name: str, examples: Sequence[Example]) -> UUID:
        """Create the dataset or add the missing examples, and return its id. Existing examples, by key, are left
        unchanged."""
        try:
            dataset = self._client.read_dataset(dataset_name=name)
            stored = {example.id for example in self._client.list_examples(dataset_id=dataset.id)}
        except LangSmithNotFoundError:
            dataset = self._client.create_dataset(name, description="An evaluation set of askgraph.")
            stored = set()
        new = [
            {
                "id": example_id,
                "inputs": dict(example.inputs),
                "reference_outputs": dict(example.expected),
                "metadata": {"key": example.key, "type": example.group},
            }
            for example in examples
            if (example_id := _identify(dataset.id, example.key)) not in stored
        ]
        if new:
            self._client.create_examples(dataset_id=dataset.id, examples=new)
        return UUID(str(dataset.id))

    def upload_experiment(
        self,
        dataset_id: UUID,
        name: str,
        metadata: Mapping[str, Any],
        runs: Sequence[ExampleRun],
        metrics: Mapping[str, float],
    ) -> None:
        """Create an experiment on the dataset: one run with its scores per example, and the overall metrics."""
        project = self._client.create_project(
            name, reference_dataset_id=dataset_id, metadata=dict(metadata), num_examples=len(runs)
        )
        for run in runs:
            run_id, started = uuid4(), datetime.now(UTC)
            self._client.create_run(
                "askgraph",
                dict(run.inputs),
                "chain",
                id=run_id,
                trace_id=run_id,
                dotted_order=f"{started:%Y%m%dT%H%M%S%f}Z{run_id}",
                project_name=name,
                reference_example_id=_identify(dataset_id, run.key),
                outputs=dict(run.outputs),
                error=run.error,
                start_time=started,
                end_time=started + timedelta(milliseconds=run.ms),
            )
            for key, score in run.scores.items():
                self._client.create_feedback(run_id, key, score=score, trace_id=run_id, session_id=project.id)
        for key, score in metrics.items():
            self._client.create_feedback(None, key, score=score, project_id=project.id)
        self._client.flush(timeout=_FLUSH_SECONDS)
        self._client.update_project(project.id, end_time=datetime.now(UTC))


def _identify(dataset_id: UUID, key: str) -> UUID:
    """Return the same id for the same example, so that a second upload adds nothing."""
    return uuid5(NAMESPACE_URL, f"{dataset_id}/{key}")
