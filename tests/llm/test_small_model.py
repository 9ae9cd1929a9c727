"""Whole runs with a model that invents, behind a server that nobody here wrote. What it says is poor and is not tested;
what reaches a reader is what the machine around it lets through."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import pytest_asyncio

from app.modes import merge_knobs
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.errors import ContextTooLong
from domain.events import Done, Event
from domain.ports.models import Message
from domain.profile import MODES, Profile
from domain.state import AnswerState
from domain.text.markers import find_markers
from nodes.context import Ledger
from tests.asking import ask, ask_for_events, read_state
from tests.conftest import MANUAL
from tests.wire.llama import NAME, WINDOW

# Reading and writing are slow where others use the processors.
pytestmark = pytest.mark.timeout(600)

QUESTION = "How long is the warranty of the Amsel?"
OFF_TOPIC = "Who won the football world cup of 1954?"


CHANGES: dict[str, Any] = {
    "rerank": {"keep": 2},
    "grade": {"max_retries": 1},
    "generate": {"answer_tokens": 60},
    # What is asked in vain takes the processor from what is not.
    "budget": {"seconds": 600},
}
"""Of each mode: reading is most of what a run costs, then what is written."""


@pytest_asyncio.fixture
async def small(settings: Settings, llama: str) -> AsyncIterator[Services]:
    """Everything open, with the one model in every tier."""
    tiers = {"model_small": NAME, "model_large": NAME, "model_judge": NAME}
    connected = settings.model_copy(update={"openai_base_url": llama, "model_timeout": 30, **tiers})
    async with open_services(connected) as services:
        await services.library.ingestion.add("default", "manual.md", MANUAL)
        modes = {name: Profile.model_validate(merge_knobs(mode.model_dump(), CHANGES)) for name, mode in MODES.items()}
        yield replace(services, modes=modes)


def read_answer(events: Sequence[Event]) -> str:
    """What a reader has in front of him in the end."""
    answer = ""
    for event in events:
        if event["type"] == "content":
            answer += event["token"]
        elif event["type"] == "correction":
            answer = event["answer"]
    return answer


def check_citations(done: Done, state: AnswerState) -> None:
    """Every marker has its citation, and every citation its marker and its source."""
    markers = find_markers(done["answer"], [source["chunk_id"] for source in state["sources"]])
    numbers = {number for marker in markers for number in marker.numbers}
    assert numbers == {citation["marker"] for citation in done["citations"]}
    assert numbers <= {source["number"] for source in state["sources"]}


def check_judgements(done: Done) -> None:
    """Each judgement was the model's, or the run says that it was not."""
    judged = {"route", "grade", "verify", "reconcile"} & done["timings"].keys()
    if not done["verification"]["claims"]:
        judged.discard("verify")
    assert judged <= {used["node"] for used in done["usage"]} | {each["node"] for each in done["degraded"]}
    assert bool(done["warnings"]) >= bool(done["degraded"])


@pytest.mark.parametrize("mode", ["fast", "standard", "thorough"])
@pytest.mark.parametrize("question", [QUESTION, OFF_TOPIC])
async def test_what_reaches_the_reader_is_sound_whatever_the_model_says(
    small: Services, mode: str, question: str
) -> None:
    done, events = await ask_for_events(small, question, mode=mode)
    state = await read_state(small, done["thread_id"])
    assert done["route"] == "needs_retrieval"
    assert read_answer(events) == done["answer"]
    check_citations(done, cast(AnswerState, state))
    check_judgements(done)
    if done["answered_by"] == NAME:
        assert len([event for event in events if event["type"] == "content"]) > 3
    if not done["citations"]:
        assert done["confidence"] == 0
        assert done["verification"]["status"] != "supported"
        assert done["warnings"] or done["abstained"]
    if mode == "thorough":
        assert done["citations"] or done["abstained"]
        unsupported = [c["text"] for c in done["verification"]["claims"] if c["verdict"] == "unsupported"]
        assert not [text for text in unsupported if text in done["answer"]]


async def test_an_answer_that_cites_nothing_or_was_given_with_a_warning_is_not_cached(small: Services) -> None:
    first = await ask(small, QUESTION, mode="fast")
    again = await ask(small, QUESTION, mode="fast")
    assert again["cached"] == (bool(first["citations"]) and not first["warnings"])


async def test_the_server_is_understood(small: Services) -> None:
    """Its list of models at start, and its word for a prompt that is too long."""
    assert await small.checks["models"]() is None
    assert small.models.chat.large is not None
    with pytest.raises(ContextTooLong):
        async for _ in small.models.chat.large.stream(
            [Message("user", "word " * 2 * WINDOW)], Ledger(), temperature=0, max_tokens=20
        ):
            pass
