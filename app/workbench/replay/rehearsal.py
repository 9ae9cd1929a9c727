"""Runs on from a saved state in memory: nothing is stored, and the conversation does not learn of it."""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from time import perf_counter
from uuid import uuid4

from app.answering.graph_pass import GraphPass
from app.history.thread_states import ThreadStates
from app.workbench.compare.endings import Ending, read_ending
from app.workbench.replay.in_memory import Start, begin_in_memory, flush_nothing, follow_untraced
from app.workbench.tapes.taping import Player, fill
from domain.state import AnswerState
from graphs.answer import AnswerGraph
from nodes.context import Context


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How a run would have ended."""

    ending: Ending
    state: AnswerState
    error: str | None
    """Why it failed, for people."""
    taped: int
    """Calls that the tape answered."""
    made: int
    """Calls that were made, because the tape lacks them."""
    refused: str | None
    """The first call that would have been needed and was not made."""


async def rehearse(graph: AnswerGraph, start: Start, context: Context, player: Player) -> Rehearsal:
    """Run on from a state, with calls from the tape where it has them, and the others as `player` allows.

    Raises `StateError` where nothing is left to run.
    """
    thread_id = str(uuid4())
    in_memory = await begin_in_memory(graph, thread_id, start)
    graph_pass = GraphPass(
        ThreadStates(in_memory, flush_nothing, nullcontext),
        replace(fill(context, player), run_id=start.values["run_id"]),
        start.values,
        thread_id,
        perf_counter(),
        trace_url=lambda trace_id: None,
    )

    await follow_untraced(graph_pass)
    ended, state = graph_pass.ended, graph_pass.state
    assert ended is not None
    failed = ended if ended["type"] == "error" else None
    return Rehearsal(
        ending=read_ending(state, error=failed and failed["code"]),
        state=state,
        error=failed and failed["message"],
        taped=player.answered,
        made=player.made,
        refused=player.refused,
    )


_PAID = ("ChatModel ", "Reranker cohere/", "Embedder openai:")
"""How the names of ports begin whose servers send bills. Such a server may be one's own: we cannot tell."""


def allow_unpaid(title: str) -> bool:
    """Allow the calls that cost nothing: all but those of language models, Cohere's reranker and servers that embed."""
    return not title.startswith(_PAID)
