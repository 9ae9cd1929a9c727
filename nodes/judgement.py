"""A language model's part in a step. It never costs the step: what stands in for it is local."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from domain.errors import AskgraphError, ModelError, ModelTimeout, ModelUnavailable, OverBudget
from domain.ports.models import ChatModel
from domain.state import Degradation
from nodes.answerers import LOCAL
from nodes.context import Ledger

Answer = TypeVar("Answer")


async def ask_or_none(
    model: ChatModel, asking: Coroutine[Any, Any, Answer], ledger: Ledger, consequence: str
) -> Answer | None:
    """What `asking`, the step's work with `model`, comes to.

    None where the model fails or is not done by the ledger's deadlines, or where the run has spent its budget, when it
    is not asked at all. The ledger then holds what was given up, and the warning that `consequence` is what came of it,
    and why.
    """
    problem: AskgraphError
    if ledger.is_over_budget():
        asking.close()
        problem = OverBudget(ledger.over_budget)
    else:
        over = OverBudget(ledger.over_budget)
        try:
            async with within(ledger.budget_deadline, over), within(ledger.model_deadline, ModelTimeout()):
                return await asking
        except (ModelError, ModelUnavailable) as error:
            problem = error
    message = f"{consequence}: {problem.message}"
    ledger.degrade(
        Degradation(node=ledger.node, code=problem.code, given_up=model.name, instead=LOCAL, message=message)
    )
    return None


@asynccontextmanager
async def within(deadline: float | None, problem: ModelUnavailable) -> AsyncIterator[None]:
    """Raises `problem` where the block is not done by `deadline`, in the event loop's time."""
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError:
        raise problem from None
