"""What a step asks of the library beside what it needs. It never costs the step, nor the question."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from domain.errors import DatabaseUnavailable
from nodes.context import Ledger

Result = TypeVar("Result")

SECONDS = 3.0
"""How long one answer is waited for: a step has fifteen in all, and asks for several."""


async def have_or(otherwise: Result, asking: Awaitable[Result], ledger: Ledger, consequence: str) -> Result:
    """What `asking` comes to; `otherwise` where the library does not answer in time. The ledger then holds the warning
    that `consequence` is what came of it, so that the answer is not kept in the cache."""
    try:
        async with asyncio.timeout(SECONDS):
            return await asking
    except DatabaseUnavailable as error:
        ledger.warn(f"{consequence}: {error.message}")
    except TimeoutError:
        ledger.warn(f"{consequence}: {DatabaseUnavailable().message}")
    return otherwise
