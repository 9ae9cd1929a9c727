"""The budget of a run.

Spending is computed from the steps in the state. So a resumed run continues its count, and a replay on a tape, which
repeats the recorded times, decides as the run did.
"""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from domain.outcome import Limit
from domain.people.limits import Cost
from domain.state import ExecutedStep, count_tokens

USUAL_SHARE = 0.1
"""Share of its budget that a run usually spends; without one, of that of the mode `standard`. Measured: 4,000 to 16,000
tokens of 100,000."""


class Budget(BaseModel):
    """The most that one run may spend.

    It is checked before each step and each judgement. An answer that is being written is finished, so a run may spend
    somewhat more.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float | None = Field(None, gt=0)
    """Time in steps, including waits for models."""
    tokens: int | None = Field(None, ge=0)
    """Tokens read and written by all language models together; 0: no model is asked."""
    dollars: float | None = Field(None, ge=0)
    """A model of unknown price counts as free."""

    def left(self, steps: Sequence[ExecutedStep]) -> tuple[float, Limit] | None:
        """Return the seconds left for judgements by models, and the limit that ends them.

        0 seconds where a limit has been reached already; None where time is not limited.
        """
        if breach := self.find_breach(steps):
            return 0.0, breach
        return None if self.seconds is None else (self.seconds - _spent_seconds(steps), "seconds")

    def find_breach(self, steps: Sequence[ExecutedStep]) -> Limit | None:
        """Return the first limit that these steps have reached, if any."""
        if self.seconds is not None and _spent_seconds(steps) >= self.seconds:
            return "seconds"
        usage = [used for step in steps for used in step["usage"]]
        if self.tokens is not None and count_tokens(usage) >= self.tokens:
            return "tokens"
        if self.dollars is not None and sum(u["cost"] or 0.0 for u in usage) >= self.dollars:
            return "dollars"
        return None

    def expect(self) -> Cost:
        """Return what a run usually costs."""
        return Cost(
            round(USUAL_SHARE * (100_000 if self.tokens is None else self.tokens)),
            USUAL_SHARE * (0.05 if self.dollars is None else self.dollars),
        )

    def explain(self, limit: Limit) -> str:
        """Return the message for a run that has reached this limit."""
        allowed = f"{getattr(self, limit):,.10g}"
        return f"The run has spent its budget of {f'${allowed}' if limit == 'dollars' else f'{allowed} {limit}'}."


def _spent_seconds(steps: Sequence[ExecutedStep]) -> float:
    return sum(step["ms"] for step in steps) / 1000
