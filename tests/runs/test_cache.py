"""A repeat comes back at once, and nothing else ever does."""

from typing import Any

import pytest
import redis.asyncio

from app.runs.turns import Ask, Turns, collect
from app.services import Services, open_services
from app.settings import Settings
from domain.events import Done

QUESTION = "How long is the warranty of the Falke?"


async def ask(services: Services, question: str = QUESTION, **options: Any) -> Done:
    turns = Turns(services)
    ended, _ = await collect(await turns.start(Ask(question, **options)))
    await turns.close()
    assert ended["type"] == "done", ended
    return ended


async def test_a_repeat_is_cached_with_identical_citations(services: Services, library: dict[str, str]) -> None:
    first = await ask(services)
    again = await ask(services)
    assert (first["cached"], again["cached"]) == (False, True)
    assert again["citations"] == first["citations"]
    assert again["answer"] == first["answer"]
    assert again["run_id"] != first["run_id"]
    assert again["thread_id"] != first["thread_id"]


async def test_a_hit_replays_the_same_events(services: Services, library: dict[str, str]) -> None:
    turns = Turns(services)
    _, first = await collect(await turns.start(Ask(QUESTION)))
    _, again = await collect(await turns.start(Ask(QUESTION)))
    await turns.close()
    assert [event for event in first if event["type"] not in ("thinking", "done")] == again[:-1]


async def test_a_changed_document_is_never_answered_from_before(services: Services, library: dict[str, str]) -> None:
    await ask(services)
    await services.ingestion.add(
        "default", "handbook.md", b"# Station handbook\n\nThe Falke has a warranty of 60 months.\n"
    )
    done = await ask(services)
    assert not done["cached"]
    assert "60 months" in done["answer"]


async def test_a_deleted_document_takes_its_answers_along(
    services: Services, library: dict[str, str], redis_url: str
) -> None:
    await ask(services)
    await services.ingestion.delete("default", library["Station handbook"])
    done = await ask(services)
    assert not done["cached"]
    assert "36 months" not in done["answer"]
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        values = [await client.dump(key) for key in await client.keys("*")]
    assert not any(b"36 months" in value for value in values if value)


async def test_another_mode_is_another_answer(services: Services, library: dict[str, str]) -> None:
    await ask(services)
    assert not (await ask(services, mode="thorough"))["cached"]


async def test_another_choice_of_documents_is_another_answer(services: Services, library: dict[str, str]) -> None:
    await ask(services)
    chosen = await ask(services, document_ids=(library["Station handbook"],))
    assert not chosen["cached"]
    assert (await ask(services, document_ids=(library["Station handbook"],)))["cached"]


async def test_another_workspace_is_another_answer(services: Services, library: dict[str, str]) -> None:
    await ask(services)
    other = await ask(services, workspace_id="other")
    assert not other["cached"]
    assert other["citations"] == []


async def test_another_conversation_is_another_answer(services: Services, library: dict[str, str]) -> None:
    question = "How long does its battery last?"
    falke = await ask(services, "How long is the warranty of the Falke?")
    amsel = await ask(services, "How long is the warranty of the Amsel?")
    first = await ask(services, question, thread_id=falke["thread_id"])
    second = await ask(services, question, thread_id=amsel["thread_id"])
    assert not second["cached"]
    assert ("14 months" in first["answer"], "9 months" in second["answer"]) == (True, True)


async def test_abstentions_are_not_stored(services: Services, library: dict[str, str]) -> None:
    question = "Who won the football world cup of 1954?"
    await ask(services, question)
    assert not (await ask(services, question))["cached"]


async def test_a_cached_turn_is_part_of_its_conversation(services: Services, library: dict[str, str]) -> None:
    await ask(services)
    cached = await ask(services)
    assert cached["cached"]
    follow_up = await ask(services, "And how long does its battery last?", thread_id=cached["thread_id"])
    assert "14 months" in follow_up["answer"]
    record = await services.runs.get("default", cached["run_id"])
    assert record is not None
    assert record.cached


async def test_without_redis_answers_continue_with_one_warning(
    settings: Settings, services: Services, library: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    from pydantic import SecretStr

    gone = settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    async with open_services(gone) as without:
        for _ in range(3):
            done = await ask(without)
            assert "36 months" in done["answer"]
            assert not done["cached"]
    warnings = [r for r in caplog.records if r.name.startswith("app.adapters.redis") or "redis" in r.name]
    assert len(warnings) == 1
