"""What a step does without its model, and what it says of that."""

import asyncio
from typing import Any

import pytest

from domain.errors import ModelRefused
from nodes.context import Ledger
from nodes.prompting.asking import ask_or_none


class Named:
    """As much of a model as is looked at."""

    name = "m"
    sees = False


async def answer_at_once() -> str:
    return "yes"


async def think_for_ever() -> str:
    await asyncio.Event().wait()
    return "never"


async def refuse() -> str:
    raise ModelRefused


async def ask(asking: Any, ledger: Ledger) -> str | None:
    return await ask_or_none(Named(), asking, ledger, "Judged locally")  # type: ignore[arg-type]


async def test_what_the_model_says_is_what_counts() -> None:
    ledger = Ledger(node="grade")
    assert await ask(answer_at_once(), ledger) == "yes"
    assert (ledger.degraded, ledger.warnings) == ([], [])


@pytest.mark.parametrize(
    ("deadlines", "asking", "code"),
    [
        ({}, refuse, "model_refused"),
        ({"model_deadline": 0.05, "budget_deadline": 30.0}, think_for_ever, "model_timeout"),
        ({"model_deadline": 30.0, "budget_deadline": 0.05}, think_for_ever, "over_budget"),
        ({"model_deadline": 30.0, "budget_deadline": 0.0}, answer_at_once, "over_budget"),
    ],
)
async def test_what_was_given_up_is_said_once_with_why(deadlines: dict[str, float], asking: Any, code: str) -> None:
    now = asyncio.get_running_loop().time()
    ledger = Ledger(node="grade", **{name: now + seconds for name, seconds in deadlines.items()})  # type: ignore[arg-type]
    assert await ask(asking(), ledger) is None
    assert await ask(asking(), ledger) is None
    [given_up] = ledger.degraded
    assert (given_up["node"], given_up["code"], given_up["given_up"], given_up["instead"]) == (
        "grade",
        code,
        "m",
        "local",
    )
    assert ledger.warnings == [given_up["message"]]
    assert given_up["message"].startswith("Judged locally: ")


async def test_an_error_of_ours_is_not_swallowed() -> None:
    async def fail() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ask(fail(), Ledger())
