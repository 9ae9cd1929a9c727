"""What clients send to begin a run."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Literal
from uuid import uuid4

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from app.answering.requests import Ask
from app.api.protocols.agent_server.messages import Message, make_ai, make_human
from app.api.protocols.agent_server.translation import StreamMode
from app.api.protocols.client_conversations import MOST_MESSAGES, SIDES, Part, join_text, make_turns, split_conversation
from domain.errors import InputError
from domain.library.where import Where
from domain.people.access import Caller
from domain.profile import MOST_SOURCES
from domain.runs import WhenBusy
from domain.scope import Scope

_SIDES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant", "AIMessageChunk": "assistant"}
"""The messages that are heard, by type or role. Instructions to the model and tools' results are not."""

_WHEN_BUSY: dict[str, WhenBusy] = {
    "reject": "reject",
    "enqueue": "queue",
    "interrupt": "interrupt",
    # What is taken back has ended before.
    "rollback": "queue",
}


def _refuse_unreadable(notes: dict[str, Any]) -> dict[str, Any]:
    """Raises `ValueError` for what could be stored and not be sent back."""
    try:
        orjson.dumps(notes)
    except TypeError as error:
        raise ValueError("metadata has at most 250 levels, and no half of a surrogate pair") from error
    return notes


Notes = Annotated[
    dict[Annotated[str, Field(max_length=200)], Any], Field(max_length=100), AfterValidator(_refuse_unreadable)
]
"""What a client notes of a thread or a run."""
MOST_NOTED = 20_000
"""Bytes of all notes of one, as JSON."""


def check_notes(notes: Mapping[str, Any]) -> None:
    """Raise `InputError` where there would be more notes than are kept."""
    size = len(orjson.dumps(notes))
    if size > MOST_NOTED:
        raise InputError(f"The metadata may have {MOST_NOTED:,} bytes, and would have {size:,}.")


class GivenMessage(BaseModel):
    """A message of the client. Text alone is a question."""

    type: str
    content: str | list[str | Part]
    id: str | None = Field(None, max_length=200)

    @model_validator(mode="before")
    @classmethod
    def read_short_forms(cls, given: Any) -> Any:
        """Read text, a pair of role and text, and a role in the place of a type."""
        match given:
            case str():
                return {"type": "human", "content": given}
            case [str() as role, content]:
                return {"type": role, "content": content}
            case {"lc": _, "id": [*_, str() as name], "kwargs": dict() as kwargs}:
                # LangChain's own form of a message, as its constructors write it.
                given = {"type": name.removesuffix("Chunk").removesuffix("Message").lower(), **kwargs}
            case {"role": str() as role, **rest} if "type" not in rest or rest["type"] == "message":
                given = {**rest, "type": role}
        if isinstance(given, dict) and (given.get("content") is None or given.get("type") not in _SIDES):
            # A message that is not heard may hold anything, and one with calls alone nothing.
            content = given.get("content")
            return {**given, "content": content if isinstance(content, str) else ""}
        return given

    @property
    def side(self) -> str | None:
        """Return who says it, `user` or `assistant`; None where it is not heard."""
        return _SIDES.get(self.type)

    def read_text(self, *, asks: bool = True) -> str:
        """Return the message's text. Raises `InputError` where a user who `asks` sends anything else."""
        if isinstance(self.content, str):
            return self.content
        parts = [Part(type="text", text=part) if isinstance(part, str) else part for part in self.content]
        return join_text(parts, asks=asks and self.side == "user")

    def show(self) -> Message:
        """Return the message in the protocol's form, as it was sent."""
        content = self.content if isinstance(self.content, str) else [_show_part(part) for part in self.content]
        message_id = self.id or str(uuid4())
        if self.side == "assistant":
            return {**make_ai("", message_id), "content": content}
        return make_human(content, message_id)


class RunInput(BaseModel):
    """What is asked: the messages so far, of which the last is the question; or the question alone."""

    messages: list[GivenMessage] = Field(default_factory=list, max_length=MOST_MESSAGES)
    question: str | None = None

    @field_validator("messages", mode="before")
    @classmethod
    def read_one(cls, given: Any) -> Any:
        """Read one message as a list of one."""
        return [given] if isinstance(given, str | dict) else given

    def read(self, before: Sequence[Message] = ()) -> "Given":
        """Return what is asked, where these messages stand before. Raises `InputError`."""
        said = self.messages
        if self.question is not None and not said:
            if not before:
                return Given([], self.question, [], None)
            said = [GivenMessage(type="human", content=self.question)]
        if any(each.type in ("system", "developer") and each.read_text().strip() for each in said):
            raise InputError("Instructions to the model belong into a mode or an assistant: send no system messages.")
        said = [*map(GivenMessage.model_validate, before), *said]
        sides = [each for each in said if each.side is not None]
        heard = [(str(each.side), each.read_text(asks=each is sides[-1]), each) for each in sides]
        # An answer without text is what an agent has looked up.
        heard = [each for each in heard if each[0] == "user" or each[1].strip()]
        exchanges, question, unread = split_conversation([(side, text) for side, text, _ in heard])
        *earlier, (_, _, last) = heard
        # A message of text alone and without an id is given that by which the thread knows it later.
        shown = last.show() if last.id or not isinstance(last.content, str) else None
        given = Given(exchanges, question, [message.show() for _, _, message in earlier], shown, leaves_unread=unread)
        if before:
            # So that our own answers among them are still known as those of their runs.
            answers = [each for (side, *_), (following, _, each) in pairwise(heard) if (side, following) == SIDES]
            for turn, answer in zip(given.turns, answers, strict=True):
                turn["run_id"] = answer.id or turn["run_id"]
        return given


class Given:
    """A question, and the conversation before it as far as the client has sent it."""

    def __init__(
        self,
        exchanges: list[tuple[str, str]],
        question: str,
        before: list[Message],
        message: Message | None,
        *,
        leaves_unread: bool = False,
    ) -> None:
        self.turns = make_turns(exchanges)
        self.question = question
        self.before = before
        """The messages before the question; empty where the client leaves the conversation to the thread."""
        self.message = message
        """The question's message; None where it is its text alone."""
        self.leaves_unread = leaves_unread
        """True where it holds more than the question."""


class Options(BaseModel):
    """What a question may name besides, in `context` or in `config.configurable`. Other names are ignored."""

    document_ids: list[str] | None = Field(None, min_length=1, max_length=500)
    filter: dict[str, Any] | None = None
    threshold: float | None = Field(None, ge=0, le=1)
    limit: int | None = Field(None, ge=1, le=MOST_SOURCES)


class CheckpointPlace(BaseModel):
    """A checkpoint of the thread."""

    checkpoint_id: str | None = Field(None, max_length=200)


class Configurable(CheckpointPlace):
    """Where a run starts, and options of the question."""

    model_config = ConfigDict(extra="allow")


class Config(BaseModel):
    """The configuration of a run, of which `configurable` is read."""

    configurable: Configurable = Field(default_factory=Configurable)


class RunRequest(BaseModel):
    """A run to begin. Fields that only tune the real server, such as `durability`, are ignored."""

    assistant_id: str
    input: RunInput | None = None
    command: dict[str, Any] | None = None
    stream_mode: StreamMode | Annotated[list[StreamMode], Field(min_length=1)] = "values"
    config: Config | None = None
    context: dict[str, Any] | None = None
    metadata: Notes | None = None
    checkpoint: CheckpointPlace | None = None
    checkpoint_id: str | None = Field(None, max_length=200)
    interrupt_before: Literal["*"] | list[str] | None = None
    interrupt_after: Literal["*"] | list[str] | None = None
    webhook: str | None = None
    after_seconds: float | None = None
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] = "enqueue"
    if_not_exists: Literal["create", "reject"] = "reject"
    on_disconnect: Literal["continue", "cancel"] = "continue"

    @property
    def modes(self) -> list[StreamMode]:
        """The stream modes that the client wants."""
        return [self.stream_mode] if isinstance(self.stream_mode, str) else self.stream_mode

    @property
    def start(self) -> str | None:
        """The checkpoint to start from; None: the latest."""
        place = self.checkpoint or CheckpointPlace()
        return self.checkpoint_id or place.checkpoint_id or (self.config or Config()).configurable.checkpoint_id

    def refuse_unsupported(self) -> None:
        """Raise `InputError` for what our runs cannot do and must not pass over."""
        if self.interrupt_before or self.interrupt_after:
            raise InputError("Runs cannot be interrupted at a node: send neither interrupt_before nor interrupt_after.")
        if self.command is not None:
            raise InputError("No run waits for a command: send `input` in place of `command`.")
        if self.webhook is not None:
            raise InputError("There are no webhooks: join the run, or stream it.")
        check_notes(self.metadata or {})
        if self.after_seconds:
            raise InputError("Runs begin at once: leave after_seconds out.")

    def as_ask(
        self, given: Given, caller: Caller, workspace_id: str, mode: str, thread_id: str | None, turns: Sequence[Any]
    ) -> Ask:
        """Return the question for the run manager. Raises `InputError` and `FilterError`."""
        try:
            configurable = (self.config or Config()).configurable.model_dump()
            options = Options.model_validate({**configurable, **(self.context or {})})
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"context.{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        where = Where.from_json(options.filter or {})
        return Ask(
            question=given.question,
            scope=Scope.within(workspace_id, options.document_ids, where, caller.groups),
            thread_id=thread_id,
            mode=mode,
            when_busy=_WHEN_BUSY[self.multitask_strategy],
            threshold=options.threshold,
            limit=options.limit,
            history=turns,
            caller=caller,
            leaves_unread=given.leaves_unread,
            noted={
                "metadata": self.metadata or {},
                "message_id": given.message and given.message["id"],
                "multitask_strategy": self.multitask_strategy,
                "stream_mode": self.modes,
            },
        )


def _show_part(part: str | Part) -> Any:
    return part if isinstance(part, str) else part.model_dump()
