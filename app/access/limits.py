"""Holds callers to their limits."""

from dataclasses import dataclass, replace

from app.support.metrics import REFUSED_BY_LIMIT, UNLIMITED
from domain.errors import BudgetSpent, OverLimit, RateLimited, TooManyRuns
from domain.people.access import Caller
from domain.people.limits import FREE, NO_LIMITS, Cost, LimitName, Limits, Used, say_dollars
from domain.ports.keys import UsageCounter


@dataclass(frozen=True, slots=True)
class Standing:
    """A caller's limits, and what they have used of them."""

    limits: Limits
    used: Used
    exceeded: LimitName | None = None

    def check(self) -> None:
        """Raise `RateLimited`, `BudgetSpent` or `TooManyRuns` where a limit is exceeded, and count that."""
        if self.exceeded is not None:
            REFUSED_BY_LIMIT.labels(self.exceeded).inc()
            raise self._make_error()

    def _make_error(self) -> OverLimit:
        limits, used = self.limits, self.used
        if self.exceeded in ("tokens", "dollars") and replace(used, expected=FREE).find_spent(limits) is None:
            return BudgetSpent(
                f"Your {used.runs} questions that are being answered may take what you may use today. Wait for one.",
                used=used,
            )
        match self.exceeded:
            case "requests":
                return RateLimited(
                    f"You may send {limits.requests_per_minute:,} requests a minute. "
                    f"Go on in {_say_span(used.minute_ends)}.",
                    again_in=used.minute_ends,
                    used=used,
                )
            case "runs":
                return TooManyRuns(
                    f"{used.runs} of your questions are being answered, which is as many as you may ask at once. "
                    "Wait for one of them.",
                    used=used,
                )
            case "tokens":
                spent = f"{used.tokens:,} tokens, and may use {limits.tokens_per_day:,}"
            case _:
                spent = f"{say_dollars(used.dollars)}, and may use {say_dollars(limits.dollars_per_day or 0)}"
        return BudgetSpent(
            f"Your questions of today have used {spent}. A new day begins in {_say_span(used.day_ends)}, at midnight "
            "UTC.",
            again_in=used.day_ends,
            used=used,
        )


class CallerLimits:
    """Counts what callers do. While the counter is away, every caller is served, and that is counted."""

    def __init__(self, usage: UsageCounter, defaults: Limits, *, is_free: bool = False) -> None:
        """`defaults` hold for callers without limits of their own. `is_free`: no language model is asked."""
        self._usage = usage
        self._is_free = is_free
        self._defaults = defaults

    async def count_request(self, caller: Caller) -> Standing | None:
        """Count a request. None where the caller has no limits, or what they used is not known."""
        limits = self._find(caller)
        if limits is None:
            return None
        counted = await self._usage.count_request(caller.name, limits)
        if counted is None:
            UNLIMITED.inc()
            return None
        return Standing(limits, counted[1], None if counted[0] else "requests")

    async def check_run(self, caller: Caller) -> None:
        """Raise `BudgetSpent` or `TooManyRuns` where the caller may not begin a run."""
        await self.begin_run(caller, None)

    async def begin_run(self, caller: Caller, run_id: str | None, expected: Cost = FREE) -> None:
        """Count a run of the caller, and what it is expected to cost, until `end_run`. Raises `BudgetSpent` or
        `TooManyRuns` where none may begin."""
        limits = self._find(caller)
        if limits is None:
            return
        begun = await self._usage.begin_run(caller.name, run_id, limits, FREE if self._is_free else expected)
        if begun is None:
            UNLIMITED.inc()
        elif not begun[0]:
            Standing(limits, begun[1], begun[1].find_spent(limits)).check()

    async def end_run(self, caller: str, run_id: str, tokens: int = 0, dollars: float = 0.0) -> None:
        """Count the run no more, and what it has cost. Its caller's limits are not asked for: they may change while it
        runs, and the process that ends it need not be the one that knows them."""
        await self._usage.end_run(caller, run_id, tokens, dollars)

    def _find(self, caller: Caller) -> Limits | None:
        # What is stored is not counted here.
        limits = replace(caller.limits, max_documents=None, max_stored_mb=None).or_else(self._defaults)
        return None if limits == NO_LIMITS else limits


def _say_span(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} seconds"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 120 else f"{round(minutes / 60)} hours"
