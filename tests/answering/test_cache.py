"""The answer cache: which questions find a cached answer, and which answers are stored."""

from contextlib import aclosing
from typing import Any, cast

import pytest
import redis.asyncio

from app.answering.cached_answers import is_storable, make_key
from app.answering.requests import Ask, collect
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.events import Done
from domain.library.where import Where
from domain.ports.answers import AnswerKey, EncodedAnswer
from domain.profile import MODES
from domain.scope import Scope
from domain.state import Turn, TurnInput
from tests.asking import QUESTION, ask, read_state
from tests.conftest import HANDBOOK


async def test_a_deleted_document_takes_its_answers_along(
    services: Services, library: dict[str, str], redis_url: str
) -> None:
    await ask(services)
    await services.library.ingestion.delete("default", library["Station handbook"])
    done = await ask(services)
    assert not done["cached"]
    assert "36 months" not in done["answer"]
    async with redis.asyncio.Redis.from_url(redis_url) as client:
        values = [await client.dump(key) for key in await client.keys("*:answer*")]
    assert not any(b"36 months" in value for value in values if value)


async def test_another_filter_is_another_answer(services: Services, library: dict[str, str]) -> None:
    """However it is written, the same filter finds the answer; another one does not, nor does none."""
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK, metadata={"team": "hr", "year": 2024})
    hr = Scope("default", where=Where.parse("team=hr and year>=2024"))
    same = Scope("default", where=Where.from_json({"year": {"gte": 2024.0}, "team": {"eq": "hr"}}))
    other = Scope("default", where=Where.parse("team=hr and year>2024"))
    assert not (await ask(services, scope=hr))["cached"]
    assert (await ask(services, scope=same))["cached"]
    assert not (await ask(services, scope=other))["cached"]
    assert not (await ask(services))["cached"]


async def test_changed_metadata_makes_the_answer_old(services: Services, library: dict[str, str]) -> None:
    await services.library.ingestion.add("default", "handbook.md", HANDBOOK, metadata={"team": "hr"})
    hr = Scope("default", where=Where.parse("team=hr"))
    assert "36 months" in (await ask(services, scope=hr))["answer"]
    assert (await ask(services, scope=hr))["cached"]
    report = await services.library.ingestion.add("default", "handbook.md", HANDBOOK, metadata={"team": "legal"})
    assert (report.status, report.embedded, report.note) == ("updated", 0, "Only its metadata has changed.")
    done = await ask(services, scope=hr)
    assert not done["cached"]
    assert "36 months" not in done["answer"]


async def test_another_conversation_is_another_answer(services: Services, library: dict[str, str]) -> None:
    question = "How long does the battery last?"
    falke = await ask(services, "How long is the warranty of the Falke?")
    amsel = await ask(services, "How long is the warranty of the Amsel?")
    first = await ask(services, question, thread_id=falke["thread_id"])
    second = await ask(services, question, thread_id=amsel["thread_id"])
    assert not second["cached"]
    assert ("14 months" in first["answer"], "9 months" in second["answer"]) == (True, True)


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
    warnings = [r for r in caplog.records if "redis" in r.name]
    assert len(warnings) == 1


async def test_two_databases_on_one_cache_never_share_an_answer(
    services: Services, library: dict[str, str], other_database_url: str, settings: Settings
) -> None:
    """Both have seen as many changes; only their documents differ."""
    from pydantic import SecretStr

    await ask(services)
    other_settings = settings.model_copy(update={"database_url": SecretStr(other_database_url)})
    async with open_services(other_settings) as other:
        for name in ("handbook.md", "manual.md"):
            await other.library.ingestion.add("default", name, f"# {name}\n\nIt has no warranty.\n".encode())
        done = await ask(other)
    assert not done["cached"]
    assert "36 months" not in done["answer"]


async def test_a_document_deleted_while_it_is_answered_from_ends_the_stream_properly(
    services: Services, library: dict[str, str]
) -> None:
    chosen = (library["Station handbook"],)
    async with services.make_run_manager() as turns:
        events = []
        async for event in await turns.ask(Ask(QUESTION, scope=Scope("default", chosen))):
            events.append(event)
            if event["type"] == "sources":
                await services.library.ingestion.delete("default", chosen[0])
    assert events[-1]["type"] == "done"
    async with services.make_run_manager() as turns:
        again, _ = await collect(await turns.ask(Ask(QUESTION)))
    assert again["type"] == "done"
    assert "36 months" not in again["answer"]


async def test_a_cached_turn_remembers_what_its_question_meant(services: Services, library: dict[str, str]) -> None:
    threads = []
    for _ in range(2):
        first = await ask(services, QUESTION)
        second = await ask(services, "How long does the battery last?", thread_id=first["thread_id"])
        threads.append(second)
    assert [done["cached"] for done in threads] == [False, True]
    states = [await read_state(services, done["thread_id"]) for done in threads]
    meant = [[turn["standalone_question"] for turn in state["turns"]] for state in states]
    assert meant[0] == meant[1]
    assert states[1]["queries_tried"] == []
    record = await services.runs.log.get("default", threads[1]["run_id"])
    assert record is not None
    assert (record.cached, record.standalone_question, record.cost) == (True, meant[0][1], 0.0)


OTHER_SCOPES = [
    Scope("other"),
    Scope("default", ("a",)),
    Scope("default", where=Where.parse("team=legal")),
    Scope("default", groups=frozenset({"a"})),
]
CHANGES: list[dict[str, Any]] = [
    *({"scope": scope.to_json()} for scope in OTHER_SCOPES),
    *({name: "another"} for name in ("question", "mode", "profile", "machine", "corpus")),
]


@pytest.mark.parametrize("changes", CHANGES)
def test_every_component_changes_the_key(changes: dict[str, Any]) -> None:
    asked = Ask(QUESTION).as_turn("run", MODES["standard"])

    def key(machine: str = "machine", corpus: str = "corpus", **changed: Any) -> AnswerKey:
        return make_key(cast(TurnInput, {**asked, **changed}), [], machine, corpus)

    assert key(**changes) != key()
    assert key(run_id="another") == key()


def make_turn(question: str, answer: str) -> Turn:
    return Turn(
        run_id="r",
        question=question,
        standalone_question=question,
        route="needs_retrieval",
        answer=answer,
        documents=[],
        outcome="answered",
    )


def test_the_conversation_counts_with_its_answers_and_in_order() -> None:
    """What a follow-up means depends on what was said before it, and on nothing else of the turns."""
    asked = Ask(QUESTION).as_turn("run", MODES["standard"])

    def key(*turns: Turn) -> str:
        return make_key(asked, list(turns), "machine", "corpus").digest

    first, second = make_turn("Which is new?", "The Falke [1]."), make_turn("And old?", "The Amsel [1].")
    conversations = [key(), key(first), key(make_turn("Which is new?", "The Amsel [1].")), key(second)]
    conversations += [key(make_turn("Which is best?", "The Falke [1].")), key(first, second), key(second, first)]
    assert len(set(conversations)) == len(conversations)
    assert key(Turn(**{**first, "run_id": "another"})) == key(first)


async def test_what_is_not_stored(services: Services, library: dict[str, str]) -> None:
    cases: list[dict[str, Any]] = [
        {"outcome": "conversed"},
        {"outcome": "abstained"},
        {"citations": []},
        {"verification": {"status": "unsupported"}},
        {"warnings": ["It may be out of date."]},
        {"stopped": True},
    ]
    done = await ask(services)
    assert is_storable(done)
    for change in cases:
        assert not is_storable(cast(Done, done | change)), change


async def test_a_stopped_answer_is_not_stored(services: Services, library: dict[str, str]) -> None:
    async with services.make_run_manager() as turns:
        started = await turns.start(Ask(QUESTION))
        async with aclosing(turns.follow(started)) as events:
            await anext(events)
        status = await turns.stop(started.workspace_id, started.run_id)
        while status.ended is None:
            status = await turns.stop(started.workspace_id, started.run_id)
    assert status.state == "stopped"
    assert await services.runs.answers.count_stored("default") == 0
    assert not (await ask(services))["cached"]


async def test_an_answer_that_is_stored_too_late_is_never_given(services: Services, library: dict[str, str]) -> None:
    """By a process that was away between its look at the documents and the cache, while they changed."""
    await ask(services)
    corpus = await services.library.documents.corpus_fingerprint(Scope("default"))
    turn = Ask(QUESTION).as_turn("", services.modes["standard"])
    key = make_key(turn, [], services.runs.fingerprint, corpus)
    assert await services.runs.answers.find(key) is not None
    await services.library.ingestion.delete("default", library["Station handbook"])
    await services.runs.answers.put(key, EncodedAnswer(b"[]", b"{}"))
    done = await ask(services)
    assert (done["cached"], "36 months" in done["answer"]) == (False, False)
