"""Lineage: from which documents and which earlier turns a run made what it shows and stores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from domain.documents import Citation, Source
from domain.events import Event
from domain.state import AnswerState

UNKNOWN_REVISION = 0
"""The revision where a document is known by its id alone."""


@dataclass(frozen=True, slots=True)
class UsedDocument:
    """A revision of a document that a run read."""

    document_id: str
    revision: int
    """`UNKNOWN_REVISION`: whichever was current."""
    shown: bool
    """True where the reader or the model was shown it, so that any sentence of the turn may say it. False for what was
    only read: it stands in the run's states and tape."""


@dataclass(slots=True)
class ReadDocuments:
    """The revisions of documents of which the ports of the library have returned something to a run."""

    known: set[tuple[str, int]] = field(default_factory=set)
    _filed: set[tuple[str, int]] = field(default_factory=set)

    def note(self, places: Iterable[tuple[str, int]]) -> None:
        """Add what a port has returned."""
        self.known.update(places)

    def file(self) -> dict[str, int]:
        """Return the revisions that were added since the last call, by document, for the record of a step: a run that
        goes on in another process finds there what it has read in this one."""
        new = sorted(self.known - self._filed)
        self._filed.update(new)
        return dict(new)


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a run was made from."""

    documents: tuple[UsedDocument, ...] = ()
    turns: tuple[str, ...] = ()
    """The runs whose turns it was given, or that it goes on from. They stand in its states, tape and prompts."""
    drew_on_turns: bool = False
    """True where its question or answer may repeat what those turns said: it then has their documents, too."""

    def join(self, other: "Lineage") -> "Lineage":
        """Return what a run was made from whose answer was made from `other`."""
        return Lineage(
            tuple(dict.fromkeys(self.documents + other.documents)),
            tuple(dict.fromkeys(self.turns + other.turns)),
            self.drew_on_turns or other.drew_on_turns,
        )


NO_LINEAGE = Lineage()


def find_lineage(
    state: AnswerState, events: Sequence[Event], read: ReadDocuments, forked_from: dict[str, Any] | None = None
) -> Lineage:
    """Return the lineage of a run from what it has read, in this process and in its saved steps; and what of that it
    has shown, from its last state and what it has sent."""
    shown: set[tuple[str, int]] = set()
    shown.update(map(_place, state["sources"] + state["set_aside"]))
    shown.update(map(_place, list_sent(events)))
    shown.update(map(_place, state["citations"]))
    # What came from outside is of no document.
    shown.discard(("", UNKNOWN_REVISION))
    shown.update((choice["document_id"], UNKNOWN_REVISION) for choice in state["choices"])
    shown.update((document_id, UNKNOWN_REVISION) for document_id in state["listed"])
    known = read.known.union(*(step.get("read", {}).items() for step in state["steps"]))
    certain = {document_id for document_id, revision in shown | known if revision != UNKNOWN_REVISION}
    unseen = {place for place in known - shown if place[1] != UNKNOWN_REVISION or place[0] not in certain}
    turns = [turn["run_id"] for turn in state["turns"] if turn["run_id"] != state["run_id"]]
    drew_on_turns = bool(turns) and (
        state["standalone_question"] != state["question"]
        or bool(state["focus"])
        # A model was told the conversation.
        or any(step["usage"] for step in state["steps"])
    )
    if forked_from is not None and forked_from["run_id"]:
        turns, drew_on_turns = [*turns, forked_from["run_id"]], True
    return Lineage(
        tuple(UsedDocument(*place, shown=True) for place in sorted(shown))
        + tuple(UsedDocument(*place, shown=False) for place in sorted(unseen)),
        tuple(dict.fromkeys(turns)),
        drew_on_turns,
    )


def _place(cited: Source | Citation) -> tuple[str, int]:
    return cited["document_id"], cited.get("revision") or UNKNOWN_REVISION


def list_sent(events: Iterable[Event]) -> Iterable[Citation]:
    """Yield the sources and citations of events."""
    for event in events:
        match event["type"]:
            case "sources" | "correction":
                yield from event["citations"]
            case "citation":
                yield event["citation"]
