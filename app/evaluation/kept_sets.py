"""Asks sets of questions that a workspace keeps, and keeps what came of it."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from app.evaluation.evaluation import Evaluated, Options, Progress, evaluate
from app.evaluation.scoring import explain, pair_up
from app.evaluation.sets import EvaluationSet, Question
from app.wiring.services import Services
from domain.errors import UnknownSet
from domain.people.access import Caller
from domain.ports.question_sets import QuestionSet, QuestionSets, SetRun
from domain.profile import Profile


async def find_set(sets: QuestionSets, workspace_id: str, name: str) -> QuestionSet:
    """Return the set of this name. Raises `UnknownSet`."""
    for found in await sets.list(workspace_id, name):
        return found
    raise UnknownSet(f"There is no set {name!r} in this workspace.")


def as_evaluation(found: QuestionSet, limit: int | None = None) -> EvaluationSet:
    """Return the set as evaluations take it, with its first `limit` questions."""
    questions = tuple(
        Question(id=each.id, question=each.question, answers=tuple(each.answers), answerable=each.answerable)
        for each in found.questions
    )
    digest = hashlib.sha256("\n".join(each.model_dump_json() for each in questions).encode())
    return EvaluationSet(found.name, questions[:limit], digest.hexdigest())


async def ask_set(
    services: Services, workspace_id: str, name: str, profile: Profile, caller: Caller, progress: Progress
) -> SetRun:
    """Ask a set in one profile. It counts as one of the caller's runs, and each answer as soon as it is there.

    Raises `UnknownSet`, `SetError`, `Saturated`, `TooManyRuns`, `BudgetSpent` and what `evaluate` raises.
    """
    found = as_evaluation(await find_set(services.sets, workspace_id, name))
    debugger = services.make_debugger()
    debugger.check_room()
    async with debugger.count(caller) as trial:
        options = Options(workspace_id, used=trial.used, charge=trial.settle)
        [evaluated] = await evaluate(services, [found], [profile], options, progress)
    [run] = await keep_result(services, workspace_id, evaluated)
    return run


async def keep_result(services: Services, workspace_id: str, evaluated: Evaluated) -> Sequence[SetRun]:
    """Keep what came of a set, for each profile."""
    runs = []
    for result in evaluated.results:
        why = {q.id: explain(evaluated.set, q, outcome) for q, outcome in pair_up(evaluated.set, result.outcomes)}
        wrong = {question_id: said for question_id, said in why.items() if said}
        code = f"{version('askgraph')} ({services.runs.fingerprint[:8]})"
        run = SetRun(datetime.now(UTC), result.profile, code, len(why), len(why) - len(wrong), wrong)
        await services.sets.record(workspace_id, evaluated.set.name, run)
        runs.append(run)
    return runs
