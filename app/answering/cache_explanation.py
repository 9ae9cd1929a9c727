"""Explains why a question finds a cached answer, or does not."""

from datetime import datetime
from typing import Any

from typing_extensions import TypedDict

from app.answering.cached_answers import NO_CONVERSATION, CacheKey
from app.answering.parts import RunParts
from app.answering.requests import Ask
from domain.ports.answers import StoredAnswer
from domain.profile import find_mode
from domain.scope import Scope
from domain.state import read_turns

COMPARED = 500
"""Number of the workspace's latest cached answers among which the nearest is searched."""


class Difference(TypedDict):
    """A component of the key in which the nearest cached answer differs."""

    component: str
    message: str


class Explanation(TypedDict):
    """The result of looking a question up in the cache now."""

    hit: bool
    components: dict[str, Any]
    """The components of the key; long values as digests."""
    nearest: dict[str, Any] | None
    """The components of the cached answer that differs in the fewest; None where the workspace has none."""
    stored_at: datetime | None
    differences: list[Difference]
    """Differences from the nearest one; empty for a hit."""


async def explain(parts: RunParts, ask: Ask) -> Explanation:
    """Compare the key of a question with the nearest cached answer's. Calls no model, and is not counted as a question.

    Raises `QuestionError`, `UnknownMode`, `UnknownDocument`, `UnknownThread`, `DatabaseUnavailable`.
    """
    turn = ask.as_turn("", find_mode(parts.modes, ask.mode).model_dump())
    turns = []
    if ask.thread_id is not None:
        await parts.threads.require(ask.scope.workspace_id, ask.thread_id, ask.scope.groups)
        snapshot = await parts.states.read(ask.scope.workspace_id, ask.thread_id)
        turns = read_turns(snapshot.values.get("turns"))
    corpus = await parts.documents.corpus_fingerprint(ask.scope)
    key = CacheKey.of(turn, turns, parts.fingerprint).components(corpus)
    stored = [
        one
        for one in await parts.answers.list_stored(ask.scope.workspace_id, COMPARED)
        if ask.scope.covers(Scope.within(ask.scope.workspace_id, groups=one.components.get("groups")))
    ]
    # An answer to another question is farther than any to the same question.
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
        message = f"{now!r} instead of {before!r}" if now is not None else "all documents instead of chosen ones"
    return Difference(component=name, message=message)
