"""What the search and the rerank of the real graph know of each candidate."""

import pytest

from app.wiring.services import Services
from nodes.sources import fusion
from tests.asking import ask_for_state

CAUSE = "The sensors of the Falke fail because brine corrodes the copper contacts."
KIN = "Copper contacts in brine: what corrodes them."
COLOUR = "The sensors of the Falke are painted blue."


async def test_what_the_best_says_besides_the_question_lifts_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("a", CAUSE), ("b", KIN), ("c", COLOUR)):
        await services.library.ingestion.add("default", f"{name}.md", text.encode())
    monkeypatch.setattr(fusion, "RELATED", 0.0)
    before = (await ask_for_state(services, "Why do the sensors of the Falke fail?"))[1]
    # So heavy that only what is related counts. Another wording, because the first one's answer is cached.
    monkeypatch.setattr(fusion, "RELATED", 100.0)
    after = (await ask_for_state(services, "Why do sensors of the Falke fail?"))[1]
    assert [source["text"] for source in before["sources"]] == [CAUSE, COLOUR, KIN]
    assert [source["text"] for source in after["sources"]] == [CAUSE, KIN, COLOUR]
