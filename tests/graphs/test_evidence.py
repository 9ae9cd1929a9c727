"""What the search and the rerank of the real graph know of each candidate."""

from typing import Any

import pytest

from app.answering.requests import Ask, collect
from app.wiring.services import Services
from nodes.sources import fusion

CAUSE = "The sensors of the Falke fail because brine corrodes the copper contacts."
KIN = "Copper contacts in brine: what corrodes them."
COLOUR = "The sensors of the Falke are painted blue."


async def ask(services: Services, question: str) -> dict[str, Any]:
    turns = services.make_run_manager()
    ended, _ = await collect(await turns.ask(Ask(question)))
    await turns.close()
    assert ended["type"] == "done", ended
    state = await services.runs.graph.aget_state(
        {"configurable": {"thread_id": ended["thread_id"], "workspace_id": "default"}}
    )
    return state.values


async def test_every_candidate_has_the_scores_of_both_legs(services: Services) -> None:
    for name, text in (("a", CAUSE), ("b", KIN)):
        await services.library.ingestion.add("default", f"{name}.md", text.encode())
    candidates = (await ask(services, "Why do the sensors of the Falke fail?"))["candidates"]
    assert len(candidates) == 2
    assert all(candidate["dense"] is not None for candidate in candidates)
    assert candidates[0]["lexical"] > candidates[1]["lexical"] == 0


async def test_what_the_best_says_besides_the_question_lifts_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("a", CAUSE), ("b", KIN), ("c", COLOUR)):
        await services.library.ingestion.add("default", f"{name}.md", text.encode())
    monkeypatch.setattr(fusion, "RELATED", 0.0)
    before = await ask(services, "Why do the sensors of the Falke fail?")
    # So heavy that only what is related counts. Another wording, because the first one's answer is cached.
    monkeypatch.setattr(fusion, "RELATED", 100.0)
    after = await ask(services, "Why do sensors of the Falke fail?")
    assert [source["text"] for source in before["sources"]] == [CAUSE, COLOUR, KIN]
    assert [source["text"] for source in after["sources"]] == [CAUSE, KIN, COLOUR]
