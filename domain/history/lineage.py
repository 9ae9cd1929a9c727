"""Lineage: from which documents and which earlier turns a run made what it shows and stores."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
    only found: it stands in the run's states and tape."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a run was made from."""

    documents: tuple[UsedDocument, ...] = ()
    turns: tuple[str, ...] = ()
    """The runs whose turns it was given, or that it goes on from. They stand in its states, tape and prompts."""
    drew_on_turns: bool = False
    """True where its question or answer may repeat what those turns said: it then has their documents, too."""


NO_LINEAGE = Lineage()


def find_lineage(state: AnswerState, events: Sequence[Event], forked_from: dict[str, Any] | None = None) -> Lineage:
    """Return the lineage of a run from its last state and what it has sent."""
    shown: set[tuple[str, int]] = set()
    shown.update(map(_place, state["sources"] + state["set_aside"]))
    shown.update(map(_place, list_sent(events)))
    shown.update(map(_place, state["citations"]))
    # What came from outside is of no document.
    shown.discard(("", UNKNOWN_REVISION))
    shown.update((choice["document_id"], UNKNOWN_REVISION) for choice in state["choices"])
    shown.update((document_id, UNKNOWN_REVISION) for document_id in state["listed"])
    candidates = (candidate["document_id"] for candidate in state["candidates"])
    found = {*state["found"], *candidates} - {document_id for document_id, _ in shown}
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
        + tuple(UsedDocument(document_id, UNKNOWN_REVISION, shown=False) for document_id in sorted(found)),
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
