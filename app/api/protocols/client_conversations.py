"""Conversations that clients keep, and send whole with each question."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, pairwise

from pydantic import BaseModel

from app.answering.cached_answers import digest
from domain.errors import InputError
from domain.people.access import Caller
from domain.ports.conversations import ConversationIndex
from domain.state import Turn

SIDES = ("user", "assistant")
"""The roles whose messages are heard. Instructions to the model are not: answers come from the documents, and those of
the team are in the mode's profile."""


class Conversation:
    """A conversation that the client keeps, and sends whole: the questions and answers so far.

    Where it is one that we have answered, its thread goes on; otherwise, also where the client has edited it, a new
    thread begins with it.
    """

    def __init__(
        self,
        index: ConversationIndex,
        workspace_id: str,
        caller: Caller,
        exchanges: Sequence[tuple[str, str]],
        question: str,
    ) -> None:
        self._index = index
        self._exchanges = exchanges
        self._key = _extend(digest([workspace_id, caller.name]), *chain.from_iterable(exchanges))
        self.asked = _extend(self._key, question)
        """Stands for the conversation up to the question, whose answer is to come."""

    async def find_thread(self) -> str | None:
        """Return the thread that holds it; None where there is none."""
        return await self._index.find(self._key) if self._exchanges else None

    async def go_on(self) -> None:
        """Note that its thread has gone on. To be called once the question is accepted: a client that is refused
        comes back with the same conversation."""
        if self._exchanges:
            await self._index.forget(self._key)

    def make_turns(self) -> list[Turn]:
        """Make the turns of a conversation that no thread holds."""
        return make_turns(self._exchanges)


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
    """Note that the thread now holds the conversation up to a question (see `Conversation.asked`) and this answer."""
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
