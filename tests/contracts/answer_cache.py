"""The contract of `AnswerCache`. An adapter's tests inherit from the class and provide the fixture `answers`, an empty
cache."""

import asyncio
from dataclasses import replace

from domain.ports.answers import AnswerCache, AnswerCounts, AnswerKey, EncodedAnswer

KEY = AnswerKey("a", "digest", "corpus 1")
ANSWER = EncodedAnswer(
    b'[{"type":"sources","citations":[{"heading_path":["Gr\xc3\xb6\xc3\x9fe"]}]}]', b'{"answer":"\xf0\x9f\x8f\x9b"}'
)


class AnswerCacheContract:
    async def test_returns_what_was_put(self, answers: AnswerCache) -> None:
        assert await answers.find(KEY) is None
        await answers.put(KEY, ANSWER)
        assert await answers.find(KEY) == ANSWER
        assert await answers.find(replace(KEY, digest="other")) is None
        later = replace(ANSWER, done=b"{}")
        await answers.put(KEY, later)
        assert await answers.find(KEY) == later

    async def test_an_answer_is_of_one_state_of_the_documents(self, answers: AnswerCache) -> None:
        await answers.put(KEY, ANSWER)
        changed = replace(KEY, corpus="corpus 2")
        assert await answers.find(changed) is None
        later = replace(ANSWER, done=b"{}")
        await answers.put(changed, later)
        assert await answers.find(changed) == later
        assert await answers.find(KEY) is None

    async def test_forgets_a_workspace_and_no_other(self, answers: AnswerCache) -> None:
        keys = [AnswerKey("a", f"a{i}", "corpus") for i in range(50)]
        other = AnswerKey("b", "b", "corpus")
        await asyncio.gather(*(answers.put(key, ANSWER) for key in keys))
        await answers.put(other, ANSWER)
        await answers.forget("a")
        assert [await answers.find(key) for key in keys] == [None] * 50
        assert await answers.find(other) == ANSWER
        await answers.forget("a")
        await answers.put(keys[1], ANSWER)
        assert await answers.find(keys[1]) == ANSWER

    async def test_counts_by_workspace(self, answers: AnswerCache) -> None:
        await answers.find(KEY)
        await answers.put(KEY, ANSWER)
        await answers.find(KEY)
        await answers.find(AnswerKey("b", "b", "corpus"))
        assert await answers.count("a") == AnswerCounts(hits=1, misses=1)
        assert await answers.count("b") == AnswerCounts(hits=0, misses=1)
        assert await answers.count("c") == AnswerCounts(0, 0)

    async def test_counts_what_is_stored(self, answers: AnswerCache) -> None:
        for number in range(3):
            await answers.put(AnswerKey("a", f"a{number}", f"corpus {number}"), ANSWER)
        await answers.put(AnswerKey("b", "b", "corpus"), ANSWER)
        assert await answers.count_stored("a") == 3
        await answers.forget("a")
        assert (await answers.count_stored("a"), await answers.count_stored("b")) == (0, 1)
