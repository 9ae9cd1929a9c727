"""The contract of `AnswerCache`. An adapter's tests inherit from the class and provide the fixture `answers`, an empty
cache."""

import asyncio
from dataclasses import replace

from domain.ports.answers import AnswerCache, AnswerCounts, AnswerKey, EncodedAnswer

KEY = AnswerKey("a", "digest", "corpus 1")
ANSWER = EncodedAnswer(
    b'[{"type":"sources","citations":[{"heading_path":["Gr\xc3\xb6\xc3\x9fe"]}]}]', b'{"answer":"\xf0\x9f\x8f\x9b"}'
)


async def get(answers: AnswerCache, key: AnswerKey) -> EncodedAnswer | None:
    """The stored answer, as a run finds it that would lead otherwise."""
    found = await answers.lead(key, "reader")
    await answers.release(key, "reader")
    return found if isinstance(found, EncodedAnswer) else None


class AnswerCacheContract:
    async def test_returns_what_was_put(self, answers: AnswerCache) -> None:
        assert await get(answers, KEY) is None
        await answers.put(KEY, ANSWER)
        assert await get(answers, KEY) == ANSWER
        assert await get(answers, replace(KEY, digest="other")) is None
        later = replace(ANSWER, done=b"{}")
        await answers.put(KEY, later)
        assert await get(answers, KEY) == later

    async def test_an_answer_is_of_one_state_of_the_documents(self, answers: AnswerCache) -> None:
        await answers.put(KEY, ANSWER)
        changed = replace(KEY, corpus="corpus 2")
        assert await get(answers, changed) is None
        later = replace(ANSWER, done=b"{}")
        await answers.put(changed, later)
        assert await get(answers, changed) == later
        assert await get(answers, KEY) is None

    async def test_forgets_a_workspace_and_no_other(self, answers: AnswerCache) -> None:
        keys = [AnswerKey("a", f"a{i}", "corpus") for i in range(50)]
        other = AnswerKey("b", "b", "corpus")
        await asyncio.gather(*(answers.put(key, ANSWER) for key in keys))
        await answers.put(other, ANSWER)
        await answers.forget("a")
        assert [await get(answers, key) for key in keys] == [None] * 50
        assert await get(answers, other) == ANSWER
        await answers.forget("a")
        await answers.put(keys[1], ANSWER)
        assert await get(answers, keys[1]) == ANSWER

    async def test_one_run_leads_until_it_is_released(self, answers: AnswerCache) -> None:
        led = await asyncio.gather(*(answers.lead(KEY, f"run {i}") for i in range(20)))
        [leader] = set(led)
        assert isinstance(leader, str)
        assert await answers.lead(KEY, leader) == leader
        await answers.release(KEY, "run of nobody")
        assert await answers.lead(KEY, "late") == leader
        await answers.release(KEY, leader)
        assert await answers.lead(KEY, "late") == "late"
        assert await answers.lead(replace(KEY, corpus="corpus 2"), "changed") == "changed"
        assert await answers.lead(replace(KEY, digest="other"), "other") == "other"

    async def test_what_is_stored_needs_no_leader(self, answers: AnswerCache) -> None:
        await answers.put(KEY, ANSWER)
        assert await answers.lead(KEY, "run") == ANSWER
        assert await answers.lead(replace(KEY, corpus="corpus 2"), "other run") == "other run"

    async def test_counts_by_workspace(self, answers: AnswerCache) -> None:
        assert await answers.lead(KEY, "first") == "first"
        assert await answers.lead(KEY, "second") == "first"
        await answers.put(KEY, ANSWER)
        assert await answers.lead(KEY, "third") == ANSWER
        await answers.lead(AnswerKey("b", "b", "corpus"), "run")
        assert await answers.count("a") == AnswerCounts(hits=1, misses=2, shared=1)
        assert await answers.count("b") == AnswerCounts(hits=0, misses=1, shared=0)
        assert await answers.count("c") == AnswerCounts(0, 0, 0)

    async def test_counts_what_is_stored(self, answers: AnswerCache) -> None:
        for number in range(3):
            await answers.put(AnswerKey("a", f"a{number}", f"corpus {number}"), ANSWER)
        await answers.put(AnswerKey("b", "b", "corpus"), ANSWER)
        assert await answers.count_stored("a") == 3
        await answers.forget("a")
        assert (await answers.count_stored("a"), await answers.count_stored("b")) == (0, 1)
