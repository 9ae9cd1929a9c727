"""abstain: the documents do not say, and this is what was searched."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.state import Level, Turn
from nodes.context import Context
from nodes.scope import profile_of
from nodes.titles import read_titles
from nodes.writing import Answered, AnswerWriter, finish_turn


class AbstainUpdate(TypedDict):
    """What abstain writes."""

    answer: str
    confidence: float
    level: Level
    turns: list[Turn]


async def abstain(state: Answered, runtime: Runtime[Context]) -> AbstainUpdate:
    """Say so, with the queries tried and the nearest documents, so that the user can judge or ask otherwise."""
    writer = AnswerWriter(runtime.stream_writer)
    searched = " and ".join(f"“{query}”" for query in state["queries_tried"])
    nearest = list(dict.fromkeys(source["title"] for source in state["sources"]))[:3]
    parts = [profile_of(state).generate.fallback, f"I searched for {searched}."]
    if nearest:
        parts.append(f"The nearest I found is in {', '.join(f'“{title}”' for title in nearest)}.")
    elif await read_titles(state, runtime.context, 1) == []:
        parts.append("There was nothing to search in: no documents have been added here, or none were chosen.")
    else:
        parts.append("Nothing I found comes close.")
    writer.write(" ".join(parts))
    return AbstainUpdate(answer=writer.text, confidence=0.0, level="none", turns=finish_turn(state, writer.text, []))
