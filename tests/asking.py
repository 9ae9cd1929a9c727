"""A question and its whole answer, and the models that are asked in most tests."""

from typing import Any

from pydantic import SecretStr

from app.runs.turns import Ask, Turns, collect
from app.services import Services
from app.settings import Settings
from domain.events import Done
from nodes.wording import read_catalogue
from tests.wire.openai import OpenAIServer

_TEXTS = read_catalogue("en")
ABSTENTION = _TEXTS.abstention.sentence
CAVEAT = f"{_TEXTS.caveat.low_confidence} "

QUESTION = "How long is the warranty of the Falke?"
SMALL, LARGE, JUDGE = "gpt-4.1-nano", "gpt-4.1-mini", "gpt-4.1"


def with_models(settings: Settings, server: OpenAIServer, **changes: Any) -> Settings:
    """Settings with a model for every tier, behind `server`; `changes` win."""
    models = {"model_small": SMALL, "model_large": LARGE, "model_judge": JUDGE}
    access = {"openai_api_key": SecretStr("sk-test"), "openai_base_url": server.base_url}
    return settings.model_copy(update=models | access | changes)


async def ask(services: Services, question: str = QUESTION, **options: Any) -> Done:
    """The end of a turn that was answered. `options` are fields of `Ask`."""
    async with Turns(services) as turns:
        ended, _ = await collect(await turns.ask(Ask(question, **options)))
    assert ended["type"] == "done", ended
    return ended
