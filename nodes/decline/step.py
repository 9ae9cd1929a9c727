"""decline: politely refuse a request that no document can fulfil, without a search and without a model."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.outcome import Outcome
from domain.state import Turn
from nodes.context import Context
from nodes.sources.titles import list_ids, list_recent, read_titles
from nodes.step import Step
from nodes.writing.stream import AnsweringInput, AnswerWriter, finish_turn

_TITLES_SHOWN = 5


class DeclineUpdate(TypedDict):
    """The part of the state that decline writes."""

    answer: str
    outcome: Outcome
    listed: list[str]
    turns: list[Turn]


async def decline(state: AnsweringInput, runtime: Runtime[Context]) -> DeclineUpdate:
    """Refuse, and offer what this service is for."""
    listed = await list_recent(state, runtime.context, _TITLES_SHOWN)
    writer = AnswerWriter(runtime.stream_writer)
    writer.write(
        await runtime.context.judges.small_talk.decline(state["question"], read_titles(listed), state["language"])
    )
    turns = finish_turn(state, writer.text, [], "declined")
    return DeclineUpdate(answer=writer.text, outcome="declined", listed=list_ids(listed), turns=turns)


STEP = Step(run=decline, label="Answering", knobs=frozenset({"language"}))
