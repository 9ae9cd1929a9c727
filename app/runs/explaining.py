"""Why a question finds a stored answer, or does not."""

from datetime import datetime
from typing import Any

from typing_extensions import TypedDict

from app.runs.cache import NO_CONVERSATION, CacheKey
from app.runs.hits import require_thread
from app.runs.turns import Ask
from app.services import Services
from domain.ports.answers import StoredAnswer
from domain.state import read_turns

COMPARED = 500
"""The latest stored answers of the workspace among which the nearest is looked for."""


class Difference(TypedDict):
    """A component that the nearest stored answer has another value of."""

    component: str
    message: str


class Explanation(TypedDict):
    """What a question would find now."""

    hit: bool
    components: dict[str, Any]
    """What the key is made of; digests where the value is long."""
    nearest: dict[str, Any] | None
    """The components of the stored answer that differs in the fewest; None where the workspace has none."""
    stored_at: datetime | None
    differences: list[Difference]
    """What the nearest one differs in; empty for a hit."""


async def explain(services: Services, ask: Ask) -> Explanation:
    """The key of a question, and what differs from the nearest stored one. Costs no model, and counts as no question.

    Raises `QuestionError`, `UnknownMode`, `UnknownDocument`, `UnknownThread`, `DatabaseUnavailable`.
    """
    turn = ask.as_turn("", services.find_mode(ask.mode))
    turns = []
    if ask.thread_id is not None:
        await require_thread(services, ask.scope.workspace_id, ask.thread_id)
        with services.translating_errors():
            snapshot = await services.graph.aget_state({"configurable": {"thread_id": ask.thread_id}})
        turns = read_turns(snapshot.values.get("turns"))
    corpus = await services.documents.corpus_fingerprint(ask.scope)
    key = CacheKey.of(turn, turns, corpus, services.fingerprint).components()
    stored = await services.answers.list_stored(ask.scope.workspace_id, COMPARED)
    # What differs in the question is another one, however much else it shares.
    nearest = min(
        stored,
        key=lambda one: (one.components.get("question") != key["question"], len(_differ(key, one.components))),
        default=None,
    )
    differences = (
        [] if nearest is None else [_describe(name, key, nearest) for name in _differ(key, nearest.components)]
    )
    return Explanation(
        hit=nearest is not None and not differences,
        components=key,
        nearest=None if nearest is None else nearest.components,
        stored_at=None if nearest is None else nearest.stored_at,
        differences=differences,
    )


def _differ(key: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name, value in key.items() if _plain(other.get(name)) != _plain(value)]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _describe(name: str, key: dict[str, Any], nearest: StoredAnswer) -> Difference:
    before, now = nearest.components.get(name), key[name]
    if name == "corpus":
        message = f"documents changed since {nearest.stored_at:%Y-%m-%d %H:%M:%S} UTC"
    elif name == "conversation":
        message = (
            "asked in a conversation, and stored without one"
            if before == NO_CONVERSATION
            else "asked without a conversation, and stored in one"
            if now == NO_CONVERSATION
            else "another conversation"
        )
    elif name == "profile":
        message = "the mode's settings differ"
    elif name in ("prompts", "machine"):
        message = {"prompts": "prompts have changed", "machine": "another version of askgraph, or other models"}[name]
    else:
        message = f"{now!r} instead of {before!r}" if now else "all documents instead of chosen ones"
    return Difference(component=name, message=message)
