"""Evaluates profiles on sets: ingests the documents, asks the questions, scores the outcomes."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial

from app.evaluation.asking import Asking, Outcome
from app.evaluation.scoring import Metrics, score
from app.evaluation.sets import EvaluationSet, Question
from app.evaluation.shelf import Shelf, find_shelf, open_shelf
from app.support.cases import work_through
from app.wiring.services import Services
from domain.ports.models import ModelUsage
from domain.profile import Profile
from nodes.context import Models

AT_ONCE = 4
"""Questions asked concurrently if language models are used. Without them, questions compete for this machine's cores,
and a second one would only measure the queue."""

Progress = Callable[[str, int, int], None]
"""Called with a label, the number of items done, and their total."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes and metrics of a set in one profile."""

    profile: str
    metrics: Metrics
    outcomes: dict[str, Outcome]
    """By question id."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The results of a set, one per profile, in the order requested."""

    set: EvaluationSet
    results: list[Result]
    kept: str | None = None
    """The workspace made for the set, if it was kept."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an evaluation."""

    workspace: str | None = None
    """Ask this workspace instead of one made for the set."""
    keep: bool = False
    """Keep the workspace that was made, for the next run."""
    used: list[ModelUsage] = field(default_factory=list)
    """What models use is added to it, also for questions that are cut off."""
    charge: Callable[[], Awaitable[None]] | None = None
    """Called after each question. What it raises ends the evaluation."""


async def evaluate(
    services: Services,
    sets: Sequence[EvaluationSet],
    profiles: Sequence[Profile],
    options: Options,
    progress: Progress,
) -> list[Evaluated]:
    """Evaluate every set in every profile.

    Raises `SetError`, `DatabaseUnavailable` and `EmbedderUnavailable`. An error of one question is part of its outcome.
    """
    # The first question would wait for it, and its latency count it.
    await services.models.judges.prepare()
    evaluated: list[Evaluated] = []
    for each in sets:
        results: list[Result] = []
        async with await _open(services, each, options, progress) as shelf:
            for profile in profiles:
                asking = Asking(services, profile, shelf, options.used)
                workers = 1 if services.models.chat == Models() else AT_ONCE
                results.append(await _ask(each, profile.name, asking, workers, progress, options))
        kept = shelf.workspace_id if options.keep and options.workspace is None else None
        evaluated.append(Evaluated(each, results, kept))
    return evaluated


async def _open(
    services: Services, each: EvaluationSet, options: Options, progress: Progress
) -> AbstractAsyncContextManager[Shelf]:
    """Return the workspace to ask."""
    if options.workspace is not None:
        return nullcontext(await find_shelf(services, options.workspace, each))
    return open_shelf(services, each, keep=options.keep, progress=partial(progress, f"{each.name}: libraries"))


async def _ask(
    each: EvaluationSet, profile: str, asking: Asking, workers: int, progress: Progress, options: Options
) -> Result:
    async def ask(question: Question) -> Outcome:
        outcome = await asking.ask(question)
        if options.charge is not None:
            await options.charge()
        return outcome

    outcomes = await work_through(
        {question.id: question for question in each.questions},
        ask,
        at_once=workers,
        report=partial(progress, f"{each.name}: {profile}"),
    )
    return Result(profile, score(each, outcomes), outcomes)
