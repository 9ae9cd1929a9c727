"""Ask a language model for a judgement that the step can do without: the local judgement replaces it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from domain.errors import AskgraphError, ModelError, ModelTimeout, ModelUnavailable, OverBudget
from domain.ports.models import AWAITED_UNTIL, ChatModel
from domain.state import Degradation
from nodes.context import Ledger
from nodes.prompting.answerers import LOCAL

Answer = TypeVar("Answer")


async def ask_or_none(
    model: ChatModel, asking: Coroutine[Any, Any, Answer], ledger: Ledger, consequence: str
) -> Answer | None:
    """Return the result of `asking`, the step's work with `model`.

    None where the model fails or misses the ledger's deadlines, and where the run has spent its budget: then the model
    is not asked at all. In these cases the ledger gets the fallback, and a warning of `consequence` and its cause.
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
    """Raise `problem` where the block is not done by `deadline`, an event loop time."""
    awaited = AWAITED_UNTIL.get()
    known = AWAITED_UNTIL.set(awaited if deadline is None else min(awaited, deadline))
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError:
        raise problem from None
    finally:
        AWAITED_UNTIL.reset(known)
