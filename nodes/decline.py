"""decline: a polite refusal of what no document can fulfil. No search, and no model either: it would add nothing."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.state import Turn
from nodes.context import Context
from nodes.titles import read_titles
from nodes.writing import Answered, AnswerWriter, finish_turn

_TITLES_SHOWN = 5


class DeclineUpdate(TypedDict):
    """What decline writes."""

    answer: str
    turns: list[Turn]


async def decline(state: Answered, runtime: Runtime[Context]) -> DeclineUpdate:
    """Say what this service is for instead."""
    titles = await read_titles(state, runtime.context, _TITLES_SHOWN)
    writer = AnswerWriter(runtime.stream_writer)
    writer.write(await runtime.context.judges.small_talk.decline(state["question"], titles))
    return DeclineUpdate(answer=writer.text, turns=finish_turn(state, writer.text, []))
