"""The parts of the service that executing runs needs."""

from collections.abc import Callable
from dataclasses import dataclass

from app.access.authority import Authority
from app.access.limits import CallerLimits
from app.answering.admission import Admission
from app.answering.observing import Observe
from app.assistants import WorkspaceModes
from app.history.thread_states import ThreadStates
from app.history.threads import Threads
from domain.ports.answers import AnswerCache
from domain.ports.documents import DocumentStore
from domain.ports.runs import RunQueue
from domain.ports.streams import RunStreams
from nodes.context import Context


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
    observe: Observe
    fingerprint: str
    """Identifies this installation's code and models; cached answers of another are not reused."""
    make_context: Callable[[], Context]
    """Makes the context of one pass through the graph."""
    trace_url: Callable[[str], str | None]
    """Returns the address of a trace, by its id; None while tracing is off."""
    admission: Admission
    limits: CallerLimits
    authority: Authority
