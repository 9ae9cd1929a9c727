"""abstain: the documents do not say, and this is what was searched."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.state import Turn
from nodes.context import Context
from nodes.writing import Answered, AnswerWriter, finish_turn

ABSTENTION = "The documents do not answer this."


class AbstainUpdate(TypedDict):
    """What abstain writes."""

    answer: str
    turns: list[Turn]


async def abstain(state: Answered, runtime: Runtime[Context]) -> AbstainUpdate:
    """Say so, with the queries tried and the nearest documents, so that the user can judge or ask otherwise."""
    writer = AnswerWriter(runtime.stream_writer)
    searched = " and ".join(f"“{query}”" for query in state["queries_tried"])
    nearest = list(dict.fromkeys(source["title"] for source in state["sources"]))[:3]
    parts = [ABSTENTION, f"I searched for {searched}."]
    if nearest:
        parts.append(f"The nearest I found is in {', '.join(f'“{title}”' for title in nearest)}.")
    else:
        parts.append("There was nothing to search in: no documents have been added here, or none were chosen.")
    writer.write(" ".join(parts))
    return AbstainUpdate(answer=writer.text, turns=finish_turn(state, writer.text, []))
