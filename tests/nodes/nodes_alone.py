"""Run one node alone, with a state and judges of the test's own."""

from dataclasses import replace
from typing import Any, cast

from langgraph.runtime import Runtime

from app.wiring.judges import build_local_judges
from domain.profile import Profile
from domain.scope import DEFAULT_SCOPE
from domain.state import blank_question
from nodes.context import Context, Models
from tests.unit_scorers import make_unit_scorer


def make_state(question: str = "What does it cost?", profile: Profile | None = None, **fields: Any) -> Any:
    """A whole state, of which a node reads its part."""
    return {
        **blank_question(),
        "run_id": "r",
        "question": question,
        "standalone_question": question,
        "profile": (profile or Profile(name="own")).model_dump(),
        "scope": DEFAULT_SCOPE.to_json(),
        "turns": [],
        **fields,
    }


def make_runtime(embedder: Any, events: list[Any], models: Models | None = None, **judges: Any) -> Runtime[Context]:
    """A runtime with local judges, `judges` in place of some. Events go into `events`; there is no library."""
    context = Context(
        library=cast(Any, None),
        embedder=embedder,
        judges=replace(build_local_judges(embedder, make_unit_scorer(embedder)), **judges),
        tokens=cast(Any, _Words()),
        models=models or Models(),
    )
    return Runtime(context=context, stream_writer=events.append)


class _Words:
    def count(self, text: str) -> int:
        return len(text.split())
