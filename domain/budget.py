"""What a run may spend, and what it has spent so far.

All of it is read off the steps that the state holds, so that a resumed run goes on counting where it stopped, and a
replay on a tape, which repeats the clock, decides as the run did.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from domain.state import Step

Limit = Literal["seconds", "tokens", "dollars"]


class Budget(BaseModel):
    """The most that one run may spend. It is looked at before each step and each judgement: what has begun to write is
    finished, so that a run may end somewhat above."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float | None = Field(None, gt=0)
    """In steps, waiting for models included."""
    tokens: int | None = Field(None, ge=0)
    """Read and written by all language models together; 0: no model is asked."""
    dollars: float | None = Field(None, ge=0)
    """A model whose price is not known costs nothing here."""

    def left(self, steps: Sequence[Step]) -> tuple[float, Limit] | None:
        """Seconds until no model is asked for a judgement any more, and which limit will be reached then: 0 where one
        has been, None where time is none."""
        if breach := self.find_breach(steps):
            return 0.0, breach
        return None if self.seconds is None else (self.seconds - _spent_seconds(steps), "seconds")

    def find_breach(self, steps: Sequence[Step]) -> Limit | None:
        """The first limit that these steps have reached."""
        if self.seconds is not None and _spent_seconds(steps) >= self.seconds:
            return "seconds"
        usage = [used for step in steps for used in step["usage"]]
        if self.tokens is not None and sum(u["input_tokens"] + u["output_tokens"] for u in usage) >= self.tokens:
            return "tokens"
        if self.dollars is not None and sum(u["cost"] or 0.0 for u in usage) >= self.dollars:
            return "dollars"
        return None

    def explain(self, limit: Limit) -> str:
        """What is said of a run that has reached this limit."""
        allowed = f"{getattr(self, limit):,.10g}"
        return f"The run has spent its budget of {f'${allowed}' if limit == 'dollars' else f'{allowed} {limit}'}."


def _spent_seconds(steps: Sequence[Step]) -> float:
    return sum(step["ms"] for step in steps) / 1000
