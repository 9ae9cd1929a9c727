"""What may stand round a run while it is executed: the wiring decides who does."""

from collections.abc import Callable, Sequence
from typing import Protocol

from domain.events import Event
from domain.runs import RunRequest
from nodes.context import Context


class Observer(Protocol):
    """Stands round the ports of one run, and makes what is stored beside its record."""

    def wrap(self, context: Context) -> Context:
        """Return the context that the graph gets."""

    def finish(self, events: Sequence[Event]) -> tuple[bytes | None, str | None]:
        """Return what to store beside the record of a run with these events, and a warning for its readers."""


class Unobserved:
    """Round whose run nobody stands."""

    def wrap(self, context: Context) -> Context:
        """Return the context as it is."""
        return context

    def finish(self, events: Sequence[Event]) -> tuple[bytes | None, str | None]:
        """Store nothing."""
        return None, None


Observe = Callable[[RunRequest], Observer]
"""Returns who stands round a run."""
