"""When a stored answer may be given again, and how it is stored.

The key holds everything that the answer depends on, so that there is nothing to invalidate: a changed document
changes the key.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import orjson

from domain.events import Done, Event, data_of
from domain.outcome import ANSWERS
from domain.ports.answers import AnswerKey, EncodedAnswer
from domain.state import Turn, TurnInput
from domain.streams import StreamedEvent
from graphs.prompts import ALL_VERSIONS


@dataclass(frozen=True, slots=True)
class CacheKey:
    """The components of an answer's key. `conversation`, `corpus`, `profile`, `prompts` and `machine` are digests."""

    workspace_id: str
    question: str
    conversation: str
    documents: tuple[str, ...] | None
    corpus: str
    mode: str
    profile: str
    machine: str
    prompts: str = ALL_VERSIONS

    @classmethod
    def of(cls, turn: TurnInput, turns: list[Turn], corpus: str, machine: str) -> "CacheKey":
        """The key of a question asked in a conversation of a corpus, answered by this machine."""
        return cls(
            workspace_id=turn["workspace_id"],
            question=turn["question"],
            conversation=digest([[t["question"], t["answer"]] for t in turns]),
            documents=sort_documents(turn["document_ids"]),
            corpus=corpus,
            mode=turn["mode"],
            profile=digest(turn["profile"]),
            machine=machine,
        )

    def address(self) -> AnswerKey:
        """Where the answer is kept: at a digest of everything but `corpus`."""
        at = digest(
            [
                self.workspace_id,
                self.question,
                self.conversation,
                self.documents,
                self.mode,
                self.profile,
                self.prompts,
                self.machine,
            ]
        )
        return AnswerKey(self.workspace_id, at, self.corpus)

    def components(self) -> dict[str, Any]:
        """All of them by name, as JSON values."""
        return asdict(self)


def sort_documents(document_ids: Iterable[str] | None) -> tuple[str, ...] | None:
    """The chosen documents as the key has them, whatever order they were named in."""
    return None if document_ids is None else tuple(sorted(set(document_ids)))


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, in hex."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


NO_CONVERSATION = digest([])


def is_storable(done: Done) -> bool:
    """Whether the answer is finished and grounded, and as good as it gets. Abstentions are not: a document that answers
    may come. Nor is one that went on without a part that was away, of which a warning tells."""
    return (
        done["outcome"] in ANSWERS
        and bool(done["citations"])
        and done["verification"]["status"] != "unsupported"
        and not done["warnings"]
        and not done["stopped"]
    )


_OWN = ("run_id", "thread_id", "cached", "usage", "cost", "timings", "trace_url")
"""What of `done` belongs to one asking."""

UNPAID: Mapping[str, Any] = {"cached": True, "usage": [], "cost": 0.0, "trace_url": None}
"""What of `done` an answer says that another run has written."""


def encode_frame(event: StreamedEvent) -> bytes:
    """The event as it stands in a server-sent stream."""
    name = b"event: %b\ndata: %b\n\n" % (event.type.encode(), event.data)
    return b"id: %b\n%b" % (event.id.encode(), name) if event.id else name


def encode_answer(events: Sequence[Event]) -> EncodedAnswer:
    """A finished turn's events, to be given again: without the steps, which are not taken again."""
    *shown, done = [event for event in events if event["type"] != "thinking"]
    frames = [encode_frame(StreamedEvent.of(event, f"1-{number}")) for number, event in enumerate(shown, start=1)]
    last_id = f"1-{len(shown) + 1}"
    sources = [event["citations"] for event in shown if event["type"] == "sources"]
    return EncodedAnswer(
        opening=b"".join(frames) + encode_frame(StreamedEvent(last_id, "done", b"")).rstrip(b"\n"),
        last_id=last_id,
        done=orjson.dumps({name: value for name, value in data_of(done).items() if name not in _OWN}),
        sources=orjson.dumps(sources[-1] if sources else []),
    )


def decode_answer(answer: EncodedAnswer, own: Mapping[str, Any]) -> list[Event]:
    """The events again, the last with what is this asking's `own`: its `run_id`, `thread_id` and `timings`."""
    events = []
    for frame in answer.opening.split(b"\n\n")[:-1]:
        _, name, data = frame.split(b"\n")
        events.append({"type": name.removeprefix(b"event: ").decode(), **orjson.loads(data.removeprefix(b"data: "))})
    return [*cast("list[Event]", events), decode_done(answer.done, own)]


def decode_done(done: bytes, own: Mapping[str, Any]) -> Done:
    """The last event alone."""
    return cast(Done, {"type": "done", **orjson.loads(done), **UNPAID, **own})
