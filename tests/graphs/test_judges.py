"""Another judge takes the place of each local one in the real graph, and no node notices."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.wiring.services import Services
from domain.documents import Source
from domain.outcome import Choice
from domain.ports.judgement import Check, Grade, Quote, Rewrite, Routed
from domain.scope import Scope
from domain.state import Turn
from domain.text.languages import Language
from tests.asking import QUESTION, ask


def plug(services: Services, **judges: Any) -> Services:
    models = replace(services.models, judges=replace(services.models.judges, **judges))
    return replace(services, models=models)


@dataclass
class Doubtful:
    """A grader that is sure of one thing only."""

    confidence: float
    asked: list[str] = field(default_factory=list)

    async def grade(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        scope: Scope,
        typed: str | None = None,
    ) -> Grade:
        self.asked.append(question)
        return Grade(self.confidence, ["warranty"])


async def test_another_grader_decides_whether_there_is_an_answer(services: Services, library: dict[str, str]) -> None:
    doubtful, sure = Doubtful(0.1), Doubtful(0.93)
    done = await ask(plug(services, grader=doubtful))
    assert done["abstained"]
    assert doubtful.asked[0] == QUESTION
    done = await ask(plug(services, grader=sure))
    assert "36 months" in done["answer"]
    assert done["confidence"] == 0.93


class FixedRouter:
    async def route(self, question: str, *, follow_up: bool) -> Routed:
        return Routed("out_of_scope", "It is for somebody else.")

    def find_request(self, question: str) -> Routed | None:
        return None

    async def is_for_documents(self, question: str, *, follow_up: bool) -> bool:
        return False

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

    async def rewrite(self, question: str, turns: Sequence[Turn]) -> Rewrite:
        return Rewrite("How long does the battery of the Amsel last?", "battery Amsel")


async def test_another_rewriter_says_what_a_follow_up_means(services: Services, library: dict[str, str]) -> None:
    plugged = plug(services, rewriter=Literalist(), grader=Doubtful(0.9))
    first = await ask(plugged)
    assert "36 months" in first["answer"]
    done = await ask(plugged, "And the battery?", thread_id=first["thread_id"])
    assert "9 months" in done["answer"]


class LastWords:
    """Finds the answer in the last words of the last source."""

    async def find(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        scope: Scope,
        most: int,
        typed: str | None = None,
        said: int = 0,
        detailed: bool = False,
        missing: Collection[str] = (),
    ) -> list[Quote]:
        source = sources[-1]
        start, end = source["end"] - 9, source["end"]
        return [Quote(source["number"], start, end, source["text"][-9:])]


async def test_another_finder_chooses_what_is_quoted(services: Services, library: dict[str, str]) -> None:
    done = await ask(plug(services, finder=LastWords(), grader=Doubtful(0.9)))
    [citation] = done["citations"]
    assert done["answer"].startswith(f"{citation['text'].strip()} [{citation['marker']}]")
    assert citation["end"] - citation["start"] == 9


@dataclass
class Denier:
    seen: list[str] = field(default_factory=list)

    async def verify(self, claims: Sequence[tuple[str, Sequence[Source]]]) -> tuple[list[Check], float]:
        self.seen += [claim for claim, _ in claims]
        return [Check("unsupported", "I doubt it.", 0.0) for _ in claims], 0.0

    async def prepare(self) -> None:
        pass


async def test_a_quote_stands_whatever_another_verifier_says(services: Services, library: dict[str, str]) -> None:
    denier = Denier()
    # Not a whole sentence, which no verifier would find in its source.
    plugged = plug(services, finder=LastWords(), grader=Doubtful(0.9), verifier=denier)
    done = await ask(plugged, mode="thorough")
    assert denier.seen
    assert {claim["verdict"] for claim in done["verification"]["claims"]} == {"supported"}
    assert not done["abstained"]
