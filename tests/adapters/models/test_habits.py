"""Every habit of a server is borne: thoughts are told to nobody, and what is refused is asked without it."""

import pytest

from domain.ports.models import Message
from tests.adapters.models.test_openai import PROVIDER
from tests.contracts.chat_model import MESSAGES, SEARCH, Judgement, Sink, call
from tests.wire.habits import CALL, HABITS, Habit

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
