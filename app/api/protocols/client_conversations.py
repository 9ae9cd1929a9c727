"""Conversations that clients keep, and send whole with each question."""

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from textwrap import shorten
from typing import Any, NamedTuple, Protocol

from fastapi import Request
from pydantic import BaseModel, model_validator

from app.answering.cached_answers import digest
from app.answering.requests import AcceptedRun, Ask, read_events
from app.api.dependencies import get_caller, get_run_manager
from app.api.protocols.translating import SOURCES, translate_text
from app.support.cancelling import finish
from domain.errors import InputError
from domain.events import Event
from domain.ports.conversations import ConversationIndex
from domain.scope import Scope
from domain.state import Turn
from domain.text.hyperlinks import strip_links
from domain.text.markers import strip_markers

SIDES = ("user", "assistant")
"""The roles whose messages are heard. Instructions to the model are not: answers come from the documents, and those of
the team are in the mode's profile."""


MOST_MESSAGES = 1000


class Told(NamedTuple):
    """An event of an answer, told in a protocol that only adds to a text."""

    event: Event
    added: str
    """The text that it adds."""
    text: str
    """All text so far."""
    offset: int
    """Where in the text the answer begins."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The last question of a conversation that a client keeps. Its run has begun."""

    run: AcceptedRun
    events: AsyncGenerator[Event]
    stop: Callable[[], Awaitable[object]]
    key: str
    """Stands for the conversation up to the question."""
    _index: ConversationIndex
    _is_whole: bool = True

    async def remember(self, answer: str) -> None:
        """Note that the thread now holds the conversation, up to this answer."""
        if self._is_whole:
            await self._index.remember(_extend(self.key, answer.strip()), self.run.thread_id)

    async def give_up(self) -> None:
        """Stop the run, whose answer nobody gets."""
        await self.stop()
        await self.expect_again()

    async def expect_again(self) -> None:
        """Note the thread for a client that asks again, as after a time-out or an error."""
        if self._is_whole:
            await self._index.remember(self.key, self.run.thread_id)

    async def stream(
        self,
        begun: Iterable[bytes],
        translate: Callable[[Told], Iterable[bytes]],
        end: bytes = b"",
        *,
        is_stopped_by_leaving: bool = True,
    ) -> AsyncGenerator[bytes]:
        """Yield the frames with which the answer begins, those of each event, and the last one. A client that leaves
        before has stopped the run, unless it is not to be stopped so."""
        text, offset, ended = "", 0, False
        try:
            for frame in begun:
                yield frame
            async with aclosing(self.events) as opened:
                async for event in opened:
                    added, offset = translate_text(event, text, offset)
                    text += added
                    ended = event["type"] in ("done", "error")
                    if event["type"] == "done":
                        await self.remember(text)
                    elif event["type"] == "error":
                        await self.expect_again()
                    for frame in translate(Told(event, added, text, offset)):
                        yield frame
            if end:
                yield end
        finally:
            if is_stopped_by_leaving and not ended:
                await finish(self.give_up)


async def ask_last(
    request: Request,
    index: ConversationIndex,
    said: Sequence[tuple[str, str]],
    mode: str,
    workspace: str | None,
    thread_id: str | None = None,
    *,
    is_whole: bool = True,
    earlier: Sequence[Turn] = (),
    anew: bool = False,
) -> Asked:
    """Ask the last question of a conversation (role and text), in the thread if one is named. Otherwise, where it is a
    conversation that we have answered, or this very question was given up, its thread goes on; where not, also because
    the client has edited it, a new thread begins with it, and so where it begins with these `earlier` turns of ours.
    One that is not sent whole is not recognised by its messages later. Asked `anew`, as by a request that says
    `no-cache`, no stored answer is taken. Raises `InputError`, and what `RunManager.start` raises."""
    exchanges, question, leaves_unread = split_conversation(said)
    caller, manager = get_caller(request), get_run_manager(request)
    scope = Scope(caller.enter(workspace), groups=caller.groups)
    key = _extend(digest([scope.workspace_id, caller.name]), *chain.from_iterable(exchanges))
    asked, again = _extend(key, question), None
    if thread_id is None:
        thread_id = again = await index.find(asked)
        if again is None and exchanges and not earlier:
            thread_id = await index.find(key)
    ask = Ask(
        question,
        scope,
        thread_id,
        mode,
        history=[*earlier, *make_turns(exchanges[len(earlier) :])],
        caller=caller,
        anew=anew or "no-cache" in request.headers.get("cache-control", ""),
        leaves_unread=leaves_unread,
    )
    run = await manager.start(ask)
    # Its thread has gone on. Only now: a client that is refused comes back with the same conversation.
    if exchanges:
        await index.forget(key)
    if again is not None:
        await index.forget(asked)
    events, stop = read_events(manager.follow(run)), partial(manager.stop, run.workspace_id, run.run_id)
    return Asked(run, events, stop, asked, index, is_whole)


def make_turns(exchanges: Iterable[tuple[str, str]]) -> list[Turn]:
    """Make turns of questions and answers that the client keeps. Which documents were cited is not known."""
    return [
        Turn(
            run_id=f"client-{number}",
            question=question,
            standalone_question=question,
            route="needs_retrieval",
            answer=answer,
            documents=[],
            outcome="answered",
        )
        for number, (question, answer) in enumerate(exchanges)
    ]


def _extend(key: str, *texts: str) -> str:
    """Return the key of a conversation in which these texts follow."""
    for text in texts:
        key = digest([key, text])
    return key


class ClientModel(BaseModel):
    """What a client sends. Many send null for a field that they leave out."""

    @model_validator(mode="before")
    @classmethod
    def pass_over_nulls(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


_TEXTS = ("text", "input_text", "output_text")
"""Types of parts with text, of all protocols: clients mix them up."""


class Part(ClientModel):
    """A part of a message: an object, or nothing but its text."""

    type: str
    text: str = ""

    @model_validator(mode="before")
    @classmethod
    def name_type(cls, given: Any) -> Any:
        return {"type": "text", "text": given} if isinstance(given, str) else given


class Message(ClientModel):
    """A message of a conversation."""

    role: str
    content: str | list[Part] | None = None

    @model_validator(mode="before")
    @classmethod
    def pass_over_unheard(cls, given: Any) -> Any:
        """Read only what it is of a message that is not heard, and its text: it may hold anything else."""
        if not isinstance(given, dict):
            return given
        text = given.get("content")
        if given.get("role") in SIDES:
            return {**given, "content": [text]} if isinstance(text, dict) else given
        kept = {name: given[name] for name in ("type", "id", "role") if name in given}
        return {**kept, "content": text if isinstance(text, str) else None}

    def read_text(self, *, asks: bool = True) -> str:
        """Return the message's text. Raises `InputError` where one that `asks` holds anything else."""
        parts = self.content
        return join_text(parts, asks=asks) if isinstance(parts, list) else parts or ""


class Readable(Protocol):
    """A message of any protocol."""

    @property
    def role(self) -> str | None: ...

    def read_text(self, *, asks: bool = True) -> str: ...


def read_texts(messages: Iterable[Readable]) -> list[tuple[str, str]]:
    """Return the role and text of each message. Raises `InputError` where the last one, which asks, holds anything
    else. Earlier ones cannot be taken back, and may be answers of other models."""
    heard = list(messages)
    return [(str(each.role), each.read_text(asks=each is heard[-1])) for each in heard]


def join_text(parts: Sequence[Part], between: str = "\n", *, asks: bool) -> str:
    """Return the text of a message. Raises `InputError` where a part of one that `asks` is of another kind."""
    other = next((part.type for part in parts if part.type not in _TEXTS), None)
    if asks and other is not None:
        raise InputError(f"Only text can be asked about; a message has a part of the type {other!r}.")
    return between.join(part.text for part in parts if part.type in _TEXTS)


class Split(NamedTuple):
    """What a conversation holds."""

    exchanges: list[tuple[str, str]]
    question: str
    leaves_unread: bool
    """True where the client has put more beside the last question."""


def split_conversation(said: Sequence[tuple[str, str]]) -> Split:
    """Return the questions and answers of messages (role and text), and the question that they end with.

    Raises `InputError`.
    """
    said = [(role, text.strip()) for role, text in said]
    if said and said[-1] == ("assistant", ""):
        said.pop()  # which some clients send to be filled in
    if not said or said[-1][0] != "user":
        raise InputError("The last message has to be the user's question.")
    exchanges = [
        (find_typed(text)[0], answer.partition(SOURCES)[0])
        for (role, text), (following, answer) in pairwise(said)
        if role == "user" and following == "assistant" and text
    ]
    return Split(exchanges, *find_typed(said[-1][1]))


_TAG = re.compile(r"</?[a-z][\w-]{0,40}(?:\s[^<>]{0,300})?>", re.IGNORECASE)
_TYPED = r"((?:user[_-]?)?(?:query|question|task|request|message|prompt|feedback))"
"""Names of tags around what a reader has typed."""
_BESIDE = (
    r"(?:(?:[\w-]{1,30}[_-])?(?:context|documents?|files?|attachments?|sources|search_results)|environment_details)"
)
"""Names of tags around what a client puts beside it."""
_FIRST = re.compile(rf"<{_TYPED}>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_ENDS = re.compile(rf"</{_TYPED}>\Z", re.IGNORECASE)
_OPENS = re.compile(rf"(?:^|(?<=>))[ \t]{{0,40}}<{_BESIDE}(?:\s[^<>]{{0,300}})?>", re.IGNORECASE | re.MULTILINE)
_CLOSES = re.compile(rf".*</{_BESIDE}>(?=[ \t]{{0,40}}(?:\n|<|\Z))", re.IGNORECASE | re.DOTALL)
_LONGEST_TAG = 40
_LABEL = re.compile(r"^(?:user )?(?:query|question): ?", re.IGNORECASE | re.MULTILINE)


def find_typed(text: str) -> tuple[str, bool]:
    """Return what the reader has typed of a message, and whether it holds more: the files, sources and surroundings
    that clients put beside it in tags, often behind instructions to a model. It is all where no client is known that
    writes so.

    What was typed stands before all that was put beside it, or behind, there or there in a tag of its own. No document
    reaches there: it stands in tags, of which the first and the last count, outside any fence.
    """
    first = _FIRST.match(text)
    if first and first.end() == len(text):
        return first[2].strip() or text, False
    opens, closes = _OPENS.search(text), _CLOSES.match(text)
    if opens is None or text.count("```", 0, opens.start()) % 2:
        return text, False
    if first and first.end() <= opens.start() and first[2].strip():
        return first[2].strip(), True
    if closes is None or closes.end() < opens.end():
        return text, True
    behind = text[closes.end() :].strip()
    if last := _ENDS.search(behind, max(len(behind) - _LONGEST_TAG, 0)):
        before, _, typed = behind[: last.start()].rpartition(f"<{last[1]}>")
        if typed.strip() and before.count("```") % 2 == 0:
            return typed.strip(), True
    return _LABEL.split(behind, 1)[-1].strip() or text[: opens.start()].strip() or text, True


_SAID = re.compile(
    r"(?:^\W{0,4}|(?<=\s))(user|human|assistant|ai)\W{0,3}:(.*?)(?=\s(?:user|human|assistant|ai):|$)",
    re.IGNORECASE | re.MULTILINE,
)
"""What somebody says in a conversation as clients write it into a prompt, on lines or on one."""
_NAMES_TITLE = re.compile(r"(?:#+ ?task:\s{1,3})?[^\W\d_][^\n?]{0,300}\btitle\b(?!\"?: *\S)", re.IGNORECASE)
_HEADS_TASK = re.compile(r"#+ ?task:", re.IGNORECASE)
"""How instructions begin that ask for a title, or for JSON. A text with its title begins otherwise."""
_FORM = re.compile(r'"(\w{1,40})"\s{0,9}:\s{0,9}(["\[])')
"""A field of the JSON that is asked for, which holds a text or a list."""
_OPENING = "<chat_history>"
_QUOTING = re.compile(r"^Your task is [^\n]*\n{1,3}(?:Message: ?(```)|Responses from models: ?(\"\"\"))", re.MULTILINE)
"""Open WebUI's tasks of an emoji and of merging answers, and what quotes the text that they are about."""
_LONGEST_TITLE, _LONGEST_READ, _LONGEST_TASK = 80, 1000, 10_000
_DECLINED = "Only questions to the documents are answered here."
_NO_TOOLS = json.dumps({"tool_calls": []})


def answer_about_conversation(messages: Sequence[Message]) -> str | None:
    """Return the answer to a request that a client makes of its own accord, and whose subject is a conversation, or a
    part of one, that it writes into its only message, behind instructions: for a title, tags, questions that may
    follow, calls of tools, an emoji. None for any other.

    The documents know nothing of it. The title is the first question; other fields of the JSON that is asked for stay
    empty, which clients take for none. Only the last message is looked at, from its beginning: what stands further on,
    or in a system message beside a question, may be of a document, which must not choose the answer.
    """
    said = [message for message in messages if message.role in (*SIDES, "system", "developer")]
    asking = [message for message in said if message.role in SIDES]
    if not said or asking not in ([], said[-1:]) or said[-1].role == "assistant":
        return None
    *before, last = (message.read_text(asks=False).strip() for message in said)
    instructions = before[0] if len(before) == 1 else ""
    if (quoting := _QUOTING.search(last)) and last.endswith(quoting[1] or quoting[2]):
        return _DECLINED if quoting[2] or not quoting.start() else None
    if instructions.startswith(("Available Tools:", "Your task is")) and '"tool_calls": [' in instructions:
        return _NO_TOOLS if last.startswith(("Query:", "History:")) else None
    begun = _SAID.search(last, 0, _LONGEST_TASK)
    task = (last[: begun.start()].strip() or instructions) if begun else ""
    if not _NAMES_TITLE.match(task) and not (_HEADS_TASK.match(task) and _FORM.search(task)):
        return None
    if any(quote in task for quote in ("```", '"""')) or _TAG.search(task.removesuffix(_OPENING)):
        return None
    lines = list(_SAID.finditer(last, 0, 10 * _LONGEST_TASK))
    asked = [line[2].strip() for line in lines if line[1].lower() in ("user", "human")]
    if not 0 < len(asked) < len(lines):
        return None
    plain = strip_links(strip_markers(asked[0][:_LONGEST_READ]), [])
    title = shorten(plain, _LONGEST_TITLE, placeholder=" …") or _DECLINED
    form = {name: [] if opens == "[" else title if name == "title" else "" for name, opens in _FORM.findall(task)}
    return json.dumps(form, ensure_ascii=False) if form else title
