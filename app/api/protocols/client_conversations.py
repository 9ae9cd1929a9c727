"""Conversations that clients keep, and send whole with each question."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise

from fastapi import Request
from pydantic import BaseModel

from app.answering.cached_answers import digest
from app.answering.requests import AcceptedRun, Ask, read_events
from app.api.dependencies import get_caller, get_run_manager
from domain.errors import InputError
from domain.events import Event
from domain.ports.conversations import ConversationIndex
from domain.scope import Scope
from domain.state import Turn

SIDES = ("user", "assistant")
"""The roles whose messages are heard. Instructions to the model are not: answers come from the documents, and those of
the team are in the mode's profile."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The last question of a conversation that a client keeps. Its run has begun."""

    run: AcceptedRun
    events: AsyncGenerator[Event]
    stop: Callable[[], Awaitable[object]]
    key: str
    """Stands for the conversation up to the question."""
    _index: ConversationIndex
    _is_whole: bool

    async def remember(self, answer: str) -> None:
        """Note that the thread now holds the conversation, up to this answer."""
        if self._is_whole:
            await remember_answer(self._index, self.key, answer, self.run.thread_id)


async def ask_last(
    request: Request,
    index: ConversationIndex,
    said: Sequence[tuple[str, str]],
    mode: str,
    workspace: str | None,
    thread_id: str | None = None,
    *,
    is_whole: bool = True,
) -> Asked:
    """Ask the last question of a conversation (role and text), in the thread if one is named. Otherwise, where it is a
    conversation that we have answered, its thread goes on; where not, also because the client has edited it, a new
    thread begins with it. One that is not sent whole is not recognised by its messages later. Raises `InputError`, and
    what `RunManager.start` raises."""
    exchanges, question = split_conversation(said)
    caller, manager = get_caller(request), get_run_manager(request)
    scope = Scope(caller.enter(workspace), groups=caller.groups)
    key = _extend(digest([scope.workspace_id, caller.name]), *chain.from_iterable(exchanges))
    if exchanges and thread_id is None:
        thread_id = await index.find(key)
    ask = Ask(question, scope, thread_id, mode, history=make_turns(exchanges), caller=caller)
    run = await manager.start(ask)
    if exchanges:
        # Its thread has gone on. Only now: a client that is refused comes back with the same conversation.
        await index.forget(key)
    events, stop = read_events(manager.follow(run)), partial(manager.stop, run.workspace_id, run.run_id)
    return Asked(run, events, stop, _extend(key, question), index, is_whole)


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


async def remember_answer(index: ConversationIndex, asked: str, answer: str, thread_id: str) -> None:
    """Note that the thread now holds the conversation up to a question (see `Asked.key`) and this answer."""
    await index.remember(_extend(asked, answer.strip()), thread_id)


def _extend(key: str, *texts: str) -> str:
    """Return the key of a conversation in which these texts follow."""
    for text in texts:
        key = digest([key, text])
    return key


class Part(BaseModel):
    """A part of a message."""

    type: str
    text: str = ""


def join_text(parts: Iterable[Part], kinds: Collection[str], between: str) -> str:
    """Return the text of a message. Raises `InputError` where a part is of another kind."""
    parts = list(parts)
    if other := next((part.type for part in parts if part.type not in kinds), None):
        raise InputError(f"Only text can be asked about; a message has a part of the type {other!r}.")
    return between.join(part.text for part in parts)


def split_conversation(said: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], str]:
    """Return the questions and answers of messages (role and text), and the question that they end with.

    Raises `InputError`.
    """
    said = [(role, text.strip()) for role, text in said]
    if not said or said[-1][0] != "user":
        raise InputError("The last message has to be the user's question.")
    exchanges = [
        (text, answer)
        for (role, text), (following, answer) in pairwise(said)
        if role == "user" and following == "assistant"
    ]
    return exchanges, said[-1][1]
