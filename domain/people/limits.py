"""Limits of a caller: what they may ask for in a minute and at once, what their answers may cost in a day, and what
they may have stored."""

from dataclasses import dataclass, fields
from typing import Literal

LimitName = Literal["requests", "runs", "tokens", "dollars"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a caller may use; None: no limit, or in a key, as the settings say."""

    requests_per_minute: int | None = None
    """Requests that are sent."""
    runs: int | None = None
    """Questions that are being answered at once, or wait for it."""
    tokens_per_day: int | None = None
    """Tokens that language models read and write."""
    dollars_per_day: float | None = None
    """Cost of language models with a known price."""
    max_documents: int | None = None
    """Documents whose content they brought last; None, here and below: no limit."""
    max_stored_mb: int | None = None
    """Megabytes of the files of these documents."""

    def or_else(self, defaults: "Limits") -> "Limits":
        """Return these limits, with those of `defaults` where there is none."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Limits(**{name: getattr(defaults, name) if value is None else value for name, value in own.items()})


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Cost:
    """What language models have used for a run, or are expected to."""

    tokens: int = 0
    dollars: float = 0.0


FREE = Cost()


@dataclass(frozen=True, slots=True)
class Used:
    """What a caller has used. Days are those of UTC."""

    requests: int = 0
    """In this minute, which begins with a request."""
    minute_ends: int = 60
    """Seconds until then."""
    runs: int = 0
    tokens: int = 0
    dollars: float = 0.0
    day_ends: int = 86_400
    """Seconds until then."""
    expected: Cost = FREE
    """Of the runs that go on."""

    def find_spent(self, limits: Limits) -> LimitName | None:
        """Return the limit that keeps another run from beginning."""
        if limits.dollars_per_day is not None and self.dollars + self.expected.dollars >= limits.dollars_per_day:
            return "dollars"
        if limits.tokens_per_day is not None and self.tokens + self.expected.tokens >= limits.tokens_per_day:
            return "tokens"
        if limits.runs is not None and self.runs >= limits.runs:
            return "runs"
        return None


def say_dollars(amount: float) -> str:
    """Write an amount of money, with parts of cents where it is small."""
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.4f}"
