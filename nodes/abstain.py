"""abstain: the documents do not say, and this is what was searched."""

from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from domain.documents import Source
from domain.question import split_carried
from domain.state import Level, Turn
from nodes.context import Context
from nodes.scope import profile_of
from nodes.titles import read_titles
from nodes.writing import Answered, AnswerWriter, finish_turn


class AbstainInput(Answered):
    """What abstain reads."""

    queries_tried: list[str]
    sources: list[Source]


class AbstainUpdate(TypedDict):
    """What abstain writes."""

    answer: str
    confidence: float
    level: Level
    turns: list[Turn]


async def abstain(state: AbstainInput, runtime: Runtime[Context]) -> AbstainUpdate:
    """Say so, with what was first searched for and the nearest documents, to judge or ask otherwise by."""
    writer = AnswerWriter(runtime.stream_writer)
    searched, _ = split_carried((state["queries_tried"] or [state["question"]])[0])
    nearest = list(dict.fromkeys(source["title"] for source in state["sources"]))[:3]
    parts = [profile_of(state).generate.fallback, f"I searched for “{searched}”."]
    if nearest:
        parts.append(f"The nearest I found is in {', '.join(f'“{title}”' for title in nearest)}.")
    elif await read_titles(state, runtime.context, 1) == []:
        parts.append("There was nothing to search in: no documents have been added here, or none were chosen.")
    else:
        parts.append("Nothing I found comes close.")
    writer.write(" ".join(parts))
    return AbstainUpdate(answer=writer.text, confidence=0.0, level="none", turns=finish_turn(state, writer.text, []))
