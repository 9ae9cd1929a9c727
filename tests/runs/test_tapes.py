"""Runs on tape: run again without a call, to the same events and the same state."""

from typing import Any

import pytest

from app.runs.replay import Replay, open_replay
from app.runs.turns import Ask, Turns, collect
from app.services import Services
from domain.events import Done, Event

QUESTION = "How long is the warranty of the Falke?"


async def ask(services: Services, question: str = QUESTION, **options: Any) -> Done:
    async with Turns(services) as turns:
        ended, _ = await collect(await turns.start(Ask(question, **options)))
    assert ended["type"] == "done", ended
    return ended


async def replay(services: Services, run_id: str, **options: Any) -> tuple[Event, list[Event]]:
    async with Turns(services) as turns:
        return await collect(await open_replay(services, turns, Replay("default", run_id=run_id, **options)))


def compare(events: list[Event]) -> list[str]:
    [comparison] = [event for event in events if event["type"] == "comparison"]
    assert comparison["identical"] == (not comparison["differences"])
    return comparison["differences"]


@pytest.mark.parametrize("mode", ["fast", "standard", "thorough"])
async def test_local(services: Services, library: dict[str, str], mode: str) -> None:
    done = await ask(services, mode=mode)
    tape = await services.tapes.get("default", done["run_id"])
    print(mode, len(tape or b""))
    ended, events = await replay(services, done["run_id"], tape="strict")
    assert compare(events) == []
    assert ended["type"] == "done"
    assert ended["answer"] == done["answer"]
