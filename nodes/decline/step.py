"""decline: politely refuse a request that no document can fulfil, without a search and without a model."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.outcome import Outcome
from domain.state import Turn
from nodes.context import Context
from nodes.sources.titles import read_titles
from nodes.step import Step
from nodes.writing.stream import AnsweringInput, AnswerWriter, finish_turn

_TITLES_SHOWN = 5


class DeclineUpdate(TypedDict):
    """The part of the state that decline writes."""

    answer: str
    outcome: Outcome
    turns: list[Turn]


async def decline(state: AnsweringInput, runtime: Runtime[Context]) -> DeclineUpdate:
    """Refuse, and offer what this service is for."""
    titles = await read_titles(state, runtime.context, _TITLES_SHOWN)
    writer = AnswerWriter(runtime.stream_writer)
    writer.write(await runtime.context.judges.small_talk.decline(state["question"], titles, state["language"]))
    turns = finish_turn(state, writer.text, [], "declined")
    return DeclineUpdate(answer=writer.text, outcome="declined", turns=turns)


STEP = Step(run=decline, label="Answering", knobs=frozenset({"language"}))
