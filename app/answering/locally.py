"""Answers a question without a language model, and keeps nothing of it."""

from dataclasses import replace
from functools import cache
from typing import cast
from uuid import uuid4

from domain.profile import Profile
from domain.scope import Scope
from domain.state import AnswerState, TurnInput
from graphs.answer import build_answer_graph
from nodes.context import Context, Models

_build_graph = cache(build_answer_graph)


async def answer_locally(question: str, scope: Scope, profile: Profile, context: Context) -> AnswerState:
    """Return the state in which the graph ends. Raises what its steps raise."""
    turn = TurnInput(
        run_id=str(uuid4()),
        question=question,
        scope=scope.to_json(),
        mode=profile.name,
        profile=profile.model_dump(),
    )
    return cast(AnswerState, await _build_graph().ainvoke(turn, context=replace(context, models=Models())))
