"""Another judge takes the place of each local one in the real graph, and no node notices."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from app.wiring.services import Services
from domain.outcome import Choice
from domain.ports.judgement import Rewrite, Routed
from domain.state import Turn
from domain.text.languages import Language
from tests.asking import ask


def plug(services: Services, **judges: Any) -> Services:
    models = replace(services.models, judges=replace(services.models.judges, **judges))
    return replace(services, models=models)


class FixedRouter:
    async def route(self, question: str, *, follow_up: bool) -> Routed:
        return Routed("out_of_scope", "It is for somebody else.")

    def find_request(self, question: str) -> Routed | None:
        return None

    async def prepare(self) -> None:
        pass


class Talker:
    async def reply(self, question: str, titles: Sequence[str] | None, language: Language) -> str:
        return "Ahoy."

    async def decline(self, question: str, titles: Sequence[str] | None, language: Language) -> str:
        return f"Nay; there are {len(titles or [])} scrolls."


async def test_another_router_and_other_small_talk(services: Services, library: dict[str, str]) -> None:
    assert (await ask(plug(services, small_talk=Talker()), "Hello!"))["answer"] == "Ahoy."
    done = await ask(plug(services, router=FixedRouter(), small_talk=Talker()), "Who won the chess final?")
    assert (done["route"], done["answer"]) == ("out_of_scope", "Nay; there are 2 scrolls.")


class Literalist:
    """Takes every question for one about the Amsel's battery."""

    def pick(self, question: str, choices: Sequence[Choice]) -> Choice | None:
        return None

    def accept(self, question: str, turns: Sequence[Turn], language: Language) -> str:
        return ""

    async def rewrite(self, question: str, turns: Sequence[Turn]) -> Rewrite:
        return Rewrite("How long does the battery of the Amsel last?", "battery Amsel")


async def test_another_rewriter_says_what_a_follow_up_means(services: Services, library: dict[str, str]) -> None:
    plugged = plug(services, rewriter=Literalist())
    first = await ask(plugged)
    assert "36 months" in first["answer"]
    done = await ask(plugged, "And the battery?", thread_id=first["thread_id"])
    assert "9 months" in done["answer"]
