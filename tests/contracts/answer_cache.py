"""What every `AnswerCache` must do. An adapter's tests inherit from the class and provide the fixture `answers`, an
empty cache."""

import asyncio
from typing import Any

from domain.ports import AnswerCache

EVENTS: list[dict[str, Any]] = [
    {"type": "sources", "citations": [{"marker": 1, "score": 0.25, "page": None, "heading_path": ["Größe", "🏛"]}]},
    {"type": "done", "cached": False, "timings": {"total": 12.5}},
]


class AnswerCacheContract:
    async def test_returns_what_was_put(self, answers: AnswerCache) -> None:
        assert await answers.get("key") is None
        await answers.put("a", "key", EVENTS)
        assert await answers.get("key") == EVENTS
        assert await answers.get("other") is None

    async def test_a_later_answer_replaces_an_earlier(self, answers: AnswerCache) -> None:
        await answers.put("a", "key", EVENTS)
        await answers.put("a", "key", EVENTS[1:])
        assert await answers.get("key") == EVENTS[1:]

    async def test_forgets_a_workspace_and_no_other(self, answers: AnswerCache) -> None:
        await asyncio.gather(*(answers.put("a", f"a{i}", EVENTS) for i in range(50)))
        await answers.put("b", "b", EVENTS)
        await answers.forget("a")
        assert [await answers.get(f"a{i}") for i in range(50)] == [None] * 50
        assert await answers.get("b") == EVENTS
        await answers.forget("a")
        await answers.put("a", "a1", EVENTS)
        assert await answers.get("a1") == EVENTS
