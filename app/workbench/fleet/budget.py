"""Money for runs that go on at the same time: what one may cost is set aside before it begins."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from domain.ports.models import ModelUsage


class Budget:
    """US dollars for calls of language models."""

    def __init__(self, dollars: float | None) -> None:
        """If `dollars` is None, nothing is refused: then nothing that costs may be called."""
        self.spent = 0.0
        self._dollars = dollars
        self._reserved = 0.0
        self._dearest = 0.0
        """The most that one run has cost so far."""
        self._unpriced: set[str] = set()
        """Models that were called and whose price is not known."""

    @contextmanager
    def reserve(self, expected: float, used: Sequence[ModelUsage]) -> Iterator[str | None]:
        """Set aside what a run is expected to cost, or what the dearest so far has cost if that is more. Yields why it
        must not begin; None where it may. At the end, what it `used` is paid, and the rest is free again."""
        aside = max(expected, self._dearest)
        problem = self._refuse(aside)
        aside = 0.0 if problem else aside
        self._reserved += aside
        try:
            yield problem
        finally:
            self._reserved -= aside
            cost = sum(call.cost or 0.0 for call in used)
            self.spent += cost
            self._dearest = max(self._dearest, cost)
            self._unpriced.update(call.model for call in used if call.cost is None)

    def _refuse(self, aside: float) -> str | None:
        if self._unpriced:
            return f"the budget cannot be kept: the price of {', '.join(sorted(self._unpriced))} is not known"
        if self._dollars is None or self.spent + self._reserved + aside <= self._dollars > self.spent:
            return None
        return "it may cost more than is left of the budget"
