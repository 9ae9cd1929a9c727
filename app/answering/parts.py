"""The parts of the service that executing runs needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.access.authority import Authority
from app.access.limits import CallerLimits
from app.answering.admission import Admission
from app.assistants import WorkspaceModes
from app.history.thread_states import ThreadStates
from app.history.threads import Threads
from domain.events import Event
from domain.ports.answers import AnswerCache
from domain.ports.documents import DocumentStore
from domain.ports.runs import RunQueue
from domain.ports.streams import RunStreams
from domain.runs import RunRequest
from nodes.context import Context


class Observer(Protocol):
    """Stands round the ports of one run, and makes what is stored beside its record."""

    def wrap(self, context: Context) -> Context:
        """Return the context that the graph gets."""

    def finish(self, events: Sequence[Event]) -> tuple[bytes | None, str | None]:
        """Return what to store beside the record of a run with these events, and a warning for its readers."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """The parts that the run manager hands to each run that it executes."""

    states: ThreadStates
    threads: Threads
    queue: RunQueue
    streams: RunStreams
    answers: AnswerCache
    documents: DocumentStore
    modes: WorkspaceModes
    observe: Callable[[RunRequest], Observer]
    """Returns who stands round a run."""
    fingerprint: str
    """Identifies this installation's code and models; cached answers of another are not reused."""
    make_context: Callable[[], Context]
    """Makes the context of one pass through the graph."""
    trace_url: Callable[[str], str | None]
    """Returns the address of a trace, by its id; None while tracing is off."""
    admission: Admission
    limits: CallerLimits
    authority: Authority
