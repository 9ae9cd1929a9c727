"""Counts what callers use, for all processes of a deployment."""

from typing import Protocol

from domain.people.limits import Limits, Used


class UsageCounter(Protocol):
    """Never raises. Returns None while its server is away: answering does not depend on it."""

    async def count_request(self, caller: str, limits: Limits) -> tuple[bool, Used] | None:
        """Count a request, unless this minute has had as many as the limits allow: then False. With what the caller has
        used by now."""
        ...

    async def begin_run(self, caller: str, run_id: str | None, limits: Limits) -> tuple[bool, Used] | None:
        """Count a run until it ends, unless the limits allow none: then False. None: only look."""
        ...

    async def end_run(self, caller: str, run_id: str, tokens: int, dollars: float) -> None:
        """Count the run no more, and what it has cost. A run that never ends is counted for a quarter of an hour."""
        ...
