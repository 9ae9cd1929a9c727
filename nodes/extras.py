"""What a step asks of the library beside what it needs. It never costs the step, nor the question."""

from collections.abc import Awaitable
from typing import TypeVar

from domain.errors import DatabaseUnavailable
from nodes.context import Ledger

Result = TypeVar("Result")


async def have_or(otherwise: Result, asking: Awaitable[Result], ledger: Ledger, consequence: str) -> Result:
    """What `asking` comes to; `otherwise` where the library does not answer. The ledger then holds the warning that
    `consequence` is what came of it, so that the answer is not kept in the cache."""
    try:
        return await asking
    except DatabaseUnavailable as error:
        ledger.warn(f"{consequence}: {error.message}")
        return otherwise
