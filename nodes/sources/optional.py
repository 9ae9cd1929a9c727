"""Queries to the library that a step can do without."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from domain.errors import CalculationError, DatabaseUnavailable
from nodes.context import Ledger

Result = TypeVar("Result")

TIMEOUT_SECONDS = 3.0
"""Timeout of one query. A step has 15 seconds in all and may send several."""


async def query_or_default(
    query: Awaitable[Result], default: Result, ledger: Ledger, consequence: str, seconds: float | None = None
) -> Result:
    """Return the result of `query`, or `default` where the library does not answer in time, or gives up.

    In that case the ledger gets a warning that begins with `consequence`, which also keeps the answer out of the cache.
    """
    try:
        async with asyncio.timeout(seconds or TIMEOUT_SECONDS):
            return await query
    except (DatabaseUnavailable, CalculationError) as error:
        ledger.warn(f"{consequence}: {error.message}")
    except TimeoutError:
        ledger.warn(f"{consequence}: {DatabaseUnavailable().message}")
    return default
