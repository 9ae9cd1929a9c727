"""Every habit of a server is borne: thoughts are told to nobody, and what is refused is asked without it."""

import pytest

from app.adapters.chat import openai as chat
from domain.errors import (
    AskgraphError,
    ContextTooLong,
    ModelError,
    ModelReplyCut,
    ModelThoughtAloud,
    ModelUnavailable,
)
from domain.ports.models import Message
from tests.adapters.models.test_openai import PROVIDER
from tests.contracts.chat_model import MESSAGES, SEARCH, Judgement, Sink, call
from tests.wire.habits import CALL, HABITS, THOUGHT, WORDS, Habit

pytestmark = pytest.mark.usefixtures("short_pauses")

ASK = [Message("system", "You judge."), Message("user", "Judge.")]


@pytest.mark.parametrize("habit", HABITS, ids=[habit.name for habit in HABITS])
async def test_a_server_of_other_habits_serves_as_well(habit: Habit) -> None:
    async with PROVIDER.open(3, habit=habit) as (server, _, model):
        for _ in range(2):
            server.requests.clear()
            sink = Sink()
            assert (await model.judge(ASK, Judgement, sink)).kind == "good"
            (called,) = (await model.act(MESSAGES, [SEARCH], sink, max_tokens=100)).calls
            assert (called.name, called.arguments) == ("search", CALL)
            assert called.id
            told = [Message("assistant", "", calls=[called]), Message("tool", "Found.", answers=called.id)]
            await model.act([*MESSAGES, *told], [SEARCH], sink, max_tokens=100)
            said = await call(model, "stream", sink)
            assert "six weeks [1]." in said
            assert said.startswith("The notice")
            assert said.rstrip().endswith("[1].")
            assert "told" not in said
        assert len(server.requests) == 4, "what was learnt is kept"


async def test_a_prompt_longer_than_any_that_was_answered_is_too_long_whatever_is_said() -> None:
    short = Habit("short", "", "", refuses=lambda body: "No." if len(str(body["messages"])) > 2000 else None)
    async with PROVIDER.open(3, habit=short) as (_, _, model):
        assert await call(model, "stream")
        with pytest.raises(ContextTooLong):
            await call(model, "stream", messages=[*MESSAGES, Message("user", "x" * 3000)])


async def test_what_was_learnt_is_forgotten_after_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    [cold] = [habit for habit in HABITS if habit.name == "no-temperature"]
    async with PROVIDER.open(3, habit=cold) as (server, _, model):
        await call(model, "stream")
        monkeypatch.setattr(chat, "KEPT", 0.0)
        server.behaviour.habit = HABITS[0]
        await call(model, "stream")
        assert ["temperature" in request for request in server.requests] == [True, False, True]


@pytest.mark.parametrize(
    ("habit", "error"),
    [
        (Habit("error", "", "", body=lambda body: {"error": {"message": "Quota exceeded", "code": 402}}), ModelError),
        (Habit("busy", "", "", body=lambda body: {"error": "overloaded"}), ModelUnavailable),
        (Habit("partial", "", "", finish=lambda body, finish: "error"), ModelUnavailable),
        (Habit("page", "", "", body=lambda body: "<html>Sign in</html>"), ModelError),
        (Habit("only-thoughts", "", "", message=lambda message: {"content": None, "reasoning": "Hm."}), ModelError),
    ],
    ids=lambda habit: getattr(habit, "name", ""),
)
async def test_an_error_inside_a_reply_is_one(habit: Habit, error: type[AskgraphError]) -> None:
    async with PROVIDER.open(3, habit=habit) as (_, _, model):
        for how in ("judge", "stream"):
            with pytest.raises((error, ModelReplyCut)):
                await call(model, how)


async def test_thoughts_go_to_the_sink_alone() -> None:
    [thinking] = [habit for habit in HABITS if habit.name == "think-tags"]
    async with PROVIDER.open(3, habit=thinking) as (_, _, model):
        for how in ("judge", "stream"):
            sink = Sink()
            assert "told" not in await call(model, how, sink, ASK)
            assert THOUGHT in "".join(sink.thoughts)


async def test_thoughts_that_were_told_are_taken_back_and_known_from_then_on() -> None:
    [closing] = [habit for habit in HABITS if habit.name == "closing-tag-only"]
    async with PROVIDER.open(3, habit=closing) as (_, _, model):
        with pytest.raises(ModelThoughtAloud):
            await call(model, "stream")
        assert await call(model, "stream") == WORDS
