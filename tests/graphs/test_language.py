"""The seam between decisions and prose: another language, or none, changes no decision."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.events import Done, Event
from domain.profile import GradeKnobs, Profile
from domain.text.languages import Language
from nodes.wording import notices as wording
from nodes.wording.notices import Wording, read_catalogue
from tests.asking import ask_for_events, steps_of, with_models
from tests.wire.openai import serve_openai

QUESTIONS = (
    "How long is the warranty of the Falke?",
    "How long is the warranty of the Falke in Antarctica?",
    "Who won the football world cup of 1954?",
    "Hello there!",
    "Set an alarm for seven o'clock",
)


@contextmanager
def speak(monkeypatch: pytest.MonkeyPatch, texts: Wording) -> Iterator[None]:
    """Let every run speak so, whatever its profile says."""
    with monkeypatch.context() as patch:
        patch.setattr(wording, "read_catalogue", lambda language: texts)
        yield


def make_gibberish() -> Wording:
    """A language in which no phrase resembles one of another."""
    values: dict[str, Any] = read_catalogue("en").model_dump()
    return Wording.model_validate(
        {
            part: {name: f"§{name.upper()}§" if part != "lists" else text for name, text in texts.items()}
            for part, texts in values.items()
        }
    )


def read_decisions(done: Done, events: Sequence[Event]) -> dict[str, Any]:
    """Everything that was decided, and nothing that was said."""
    verification = done["verification"]
    return {
        "steps": steps_of(events),
        "outcome": (done["outcome"], done["abstained"], done["outcome_reasons"]),
        "verification": (verification["status"], [claim["verdict"] for claim in verification["claims"]]),
        "citations": [(c["start"], c["end"]) for c in done["citations"]],
        "confidence": done["confidence"],
        "warnings": len(done["warnings"]),
    }


async def test_every_decision_is_the_same_in_every_language(
    services: Services, library: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Above what these sources reach, so that every answer has a caveat, and low enough for one with a word too many.
    cautious = Profile(name="own", verify=True, grade=GradeKnobs(sufficient=1, caveat=0.3, max_retries=0))
    languages: tuple[Language, ...] = ("en", "de")
    decided: list[list[dict[str, Any]]] = []
    said: list[list[str]] = []
    for texts in (*map(read_catalogue, languages), make_gibberish()):
        with speak(monkeypatch, texts):
            # A mode of its own, so that no answer comes from the cache.
            mode = cautious.model_copy(update={"name": f"mode {len(said)}"})
            ended = [await ask_for_events(services, question, profile=mode) for question in QUESTIONS]
        decided.append([read_decisions(*each) for each in ended])
        said.append([done["answer"] for done, _ in ended])
        framed = [done["answer"][: done["framing"]["opening"]] for done, _ in ended]
        assert framed[0] == f"{texts.caveat.low_confidence}\n\n"
    assert decided[0] == decided[1] == decided[2]
    assert [each["outcome"][0] for each in decided[0]] == [
        "answered_with_caveat",
        "answered_with_caveat",
        "abstained",
        "conversed",
        "declined",
    ]
    for index in range(3):
        assert len({answers[index] for answers in said}) == 3


async def test_a_model_abstains_in_the_language_that_it_was_given(settings: Settings) -> None:
    sentence = read_catalogue("de").abstention.sentence
    async with serve_openai() as server, open_services(with_models(settings, server)) as services:
        await services.library.ingestion.add("default", "handbook.md", b"# Handbook\n\nThe Falke has 36 months.\n")
        server.behaviour.replies = [sentence]
        german = Profile(name="own", language="de", verify=True)
        done, events = await ask_for_events(services, "How long is the warranty of the Falke?", profile=german)
    assert f"your whole reply is: {sentence}" in server.requests[-1]["messages"][0]["content"]
    assert (done["answer"], done["outcome"], done["confidence"]) == (sentence, "abstained", 0)
    assert steps_of(events)[-1] == "generate"
