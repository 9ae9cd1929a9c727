"""What every `AnswerCache` must do. An adapter's tests inherit from the class and provide the fixture `answers`, an
empty cache."""

import asyncio
from dataclasses import replace

from domain.ports import AnswerCache, AnswerCounts, AnswerKey, EncodedAnswer

KEY = AnswerKey("a", "digest", "corpus 1")
COMPONENTS = {"question": "Größe?", "documents": None}
ANSWER = EncodedAnswer(
    b'event: sources\nid: 1-1\ndata: {"citations":[{"heading_path":["Gr\xc3\xb6\xc3\x9fe"]}]}\n\nevent: done\n',
    b'{"answer":"\xf0\x9f\x8f\x9b"}',
    b"[]",
)


class AnswerCacheContract:
    async def test_returns_what_was_put(self, answers: AnswerCache) -> None:
        assert await answers.get(KEY) is None
        await answers.put(KEY, COMPONENTS, ANSWER)
        assert await answers.get(KEY) == ANSWER
        assert await answers.get(replace(KEY, digest="other")) is None

    async def test_an_answer_is_of_one_state_of_the_documents(self, answers: AnswerCache) -> None:
        await answers.put(KEY, COMPONENTS, ANSWER)
        changed = replace(KEY, corpus="corpus 2")
        assert await answers.get(changed) is None
        later = replace(ANSWER, done=b"{}")
        await answers.put(changed, COMPONENTS, later)
        assert await answers.get(changed) == later
        assert await answers.get(KEY) is None

    async def test_a_later_answer_replaces_an_earlier(self, answers: AnswerCache) -> None:
        await answers.put(KEY, COMPONENTS, ANSWER)
        later = replace(ANSWER, done=b"{}")
        await answers.put(KEY, COMPONENTS, later)
        assert await answers.get(KEY) == later

    async def test_forgets_a_workspace_and_no_other(self, answers: AnswerCache) -> None:
        keys = [AnswerKey("a", f"a{i}", "corpus") for i in range(50)]
        other = AnswerKey("b", "b", "corpus")
        await asyncio.gather(*(answers.put(key, COMPONENTS, ANSWER) for key in keys))
        await answers.put(other, COMPONENTS, ANSWER)
        await answers.forget("a")
        assert [await answers.get(key) for key in keys] == [None] * 50
        assert await answers.get(other) == ANSWER
        await answers.forget("a")
        await answers.put(keys[1], COMPONENTS, ANSWER)
        assert await answers.get(keys[1]) == ANSWER

    async def test_one_run_leads_until_it_is_released(self, answers: AnswerCache) -> None:
        led = await asyncio.gather(*(answers.lead(KEY, f"run {i}") for i in range(20)))
        [leader] = set(led)
        assert await answers.lead(KEY, leader) == leader
        await answers.release(KEY, "run of nobody")
        assert await answers.lead(KEY, "late") == leader
        await answers.release(KEY, leader)
        assert await answers.lead(KEY, "late") == "late"
        assert await answers.lead(replace(KEY, corpus="corpus 2"), "changed") == "changed"
        assert await answers.lead(replace(KEY, digest="other"), "other") == "other"

    async def test_counts_by_workspace(self, answers: AnswerCache) -> None:
        other = AnswerKey("b", "b", "corpus")
        await answers.get(KEY)
        assert await answers.lead(KEY, "first") == "first"
        await answers.get(KEY)
        assert await answers.lead(KEY, "second") == "first"
        await answers.put(KEY, COMPONENTS, ANSWER)
        for _ in range(3):
            await answers.get(KEY)
        await answers.get(other)
        assert await answers.count("a") == AnswerCounts(hits=3, misses=2, shared=1)
        assert await answers.count("b") == AnswerCounts(hits=0, misses=1, shared=0)
        assert await answers.count("c") == AnswerCounts(0, 0, 0)

    async def test_lists_what_answers_were_stored_under(self, answers: AnswerCache) -> None:
        for number in range(3):
            key = AnswerKey("a", f"a{number}", f"corpus {number}")
            await answers.put(key, COMPONENTS | {"number": number}, ANSWER)
        await answers.put(AnswerKey("b", "b", "corpus"), COMPONENTS, ANSWER)
        latest, before = await answers.list_stored("a", 2)
        assert (latest.components, latest.corpus) == (COMPONENTS | {"number": 2}, "corpus 2")
        assert before.components["number"] == 1
        assert latest.stored_at >= before.stored_at
