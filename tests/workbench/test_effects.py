"""What affects which node: the lists hold all that runs really read."""

from collections import defaultdict
from typing import Any

import pytest
from langgraph.config import get_config
from pydantic import BaseModel

from app.wiring.services import Services
from app.workbench.replay.effects import Beginning, decides, find_difference, find_first, find_unnoticed, reads
from domain.profile import Profile
from tests.asking import QUESTION, ask

QUESTIONS = (
    QUESTION,
    "How lng does the batery of the Falke last?",
    "What does the zoo in Lisbon charge for parrots?",
    "Hello there!",
    "Write me a poem about the sea.",
    "What documents do you have?",
    "How long is the warranty?",
)


@pytest.mark.usefixtures("library")
async def test_every_knob_that_a_run_reads_is_listed(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    read: dict[str, set[str]] = defaultdict(set)
    names: dict[int, str] = {}
    stock = Profile.__getattribute__

    def note(self: BaseModel, name: str) -> Any:
        value = stock(self, name)
        if name in type.__getattribute__(type(self), "__pydantic_fields__"):
            prefix = "" if isinstance(self, Profile) else names.get(id(self), "?")
            if isinstance(value, BaseModel):
                names[id(value)] = f"{prefix}{name}."
                kept.append(value)
            else:
                try:
                    node = get_config()["metadata"]["langgraph_node"]
                except RuntimeError:
                    return value
                read[node].add(f"profile.{prefix}{name}")
        return value

    kept: list[BaseModel] = []
    for kind in {Profile, *(type(part) for part in Profile(name="x").__dict__.values() if isinstance(part, BaseModel))}:
        monkeypatch.setattr(kind, "__getattribute__", note)
    for mode in ("fast", "standard", "thorough"):
        for question in QUESTIONS:
            await ask(services, question, mode=mode)
    assert {"route", "retrieve", "rerank", "grade", "generate", "abstain"} <= read.keys()
    unlisted = {
        node: sorted(knob for knob in knobs if not reads(node, knob) and not decides(node, knob))
        for node, knobs in read.items()
    }
    # Each node is executed with the models and the time of its profile, whether it asks one or not.
    assert {
        node: [k for k in knobs if not k.startswith(("profile.models.", "profile.prompts"))]
        for node, knobs in unlisted.items()
    } == {node: [] for node in read}


def test_a_change_is_noticed_only_where_a_step_reads_it_before_another_overwrites_it() -> None:
    keep, patience, tone = "profile.rerank.keep", "profile.grade.caveat", "profile.generate.tone"
    after_rerank = ["grade", "generate"]
    assert find_unnoticed(Beginning("rerank"), ["rerank", *after_rerank], {keep}) == []
    assert find_unnoticed(Beginning("rerank", decides=True), after_rerank, {keep}) == [keep]
    # What makes it go another way may make rerank run again.
    assert find_unnoticed(Beginning("rerank", decides=True), after_rerank, {keep, patience}) == []
    assert find_unnoticed(Beginning("grade", decides=True), ["generate"], {"confidence"}) == []
    # grade overwrites it, before generate reads the other one.
    assert find_unnoticed(Beginning("rerank"), ["rerank", *after_rerank], {"level", tone}) == ["level"]
    assert find_unnoticed(Beginning("route"), ["route", "retrieve"], {"sources"}) == ["sources"]
    # The run failed in what would have read it.
    assert find_unnoticed(Beginning("grade"), ["grade"], {tone}) == [tone]
    assert find_unnoticed(Beginning("grade"), ["grade"], {tone}, is_open=True) == []


def test_the_first_step_that_a_change_affects_is_found() -> None:
    keep = "profile.rerank.keep"
    path = ["route", "retrieve", "rerank", "grade", "generate"]
    assert find_first(path, {keep}) == (2, Beginning("rerank"))
    assert find_first(path, {"profile.grade.caveat"}) == (3, Beginning("grade", decides=True))
    assert find_first(path, {"profile.nonsense"}) is None


def test_a_difference_names_fields_and_knobs() -> None:
    before = {"confidence": 0.5, "profile": {"name": "a", "rerank": {"keep": 5, "method": "local"}}, "query": "q"}
    after = before | {"confidence": 0.6, "profile": {"name": "a", "rerank": {"keep": 1, "method": "local"}}}
    assert find_difference(before, after) == ["confidence", "profile.rerank.keep"]
