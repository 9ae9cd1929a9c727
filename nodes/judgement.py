"""A language model's part in a step. It never costs the step: what stands in for it is local."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from domain.errors import AskgraphError, ModelError, ModelTimeout, ModelUnavailable
from nodes.context import Ledger

Answer = TypeVar("Answer")


async def ask_or_none(asking: Awaitable[Answer], ledger: Ledger, consequence: str) -> Answer | None:
    """What `asking`, the step's work with its model, comes to.

    None where the model fails or is not done by the ledger's deadline; the ledger then holds the warning that
    `consequence` is what came of it, and why.
    """
    problem: AskgraphError
    try:
        async with asyncio.timeout_at(ledger.model_deadline):
            return await asking
    except TimeoutError:
        problem = ModelTimeout()
    except (ModelError, ModelUnavailable) as error:
        problem = error
    ledger.warn(f"{consequence}: {problem.message}")
    return None
