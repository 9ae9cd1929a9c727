"""Questions about tables, without a language model: looked up, and quoted as rows under their header."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.wiring.services import Services
from domain.documents import FoundSpan
from domain.errors import CalculationError
from domain.scope import DEFAULT_SCOPE
from nodes.context import Ledger
from nodes.sources.looking_up import look_up
from tests.asking import ask_for_state
from tests.contracts.calculator import FILES
from tests.sources import make_source

CODES = """# Error codes

The device shows these codes:

| Code | Meaning | Remedy |
| --- | --- | --- |
| E41 | The pump is blocked. | Clean the filter. |
| E42 | The water is too cold. | Wait ten minutes. |

# Maintenance

| Part | Interval |
| --- | --- |
| Filter | 3 months |
"""


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("mode", ["fast", "standard", "thorough"])
@pytest.mark.parametrize(
    ("question", "answer", "cited"),
    [
        (
            "What does error E42 mean?",
            "Code | Meaning | Remedy\n--- | --- | ---\nE42 | The water is too cold. | Wait ten minutes.",
            "E42 | The water is too cold. | Wait ten minutes.",
        ),
        (
            "How much rain was there in Malmo on 14 February 2024?",
            "Date | Station | Rain (mm)\n--- | --- | ---\n2024-02-14 | Malmo | 3.4",
            "2024-02-14 | Malmo | 3.4",
        ),
        (
            "What was the average rain in Kiel in 2024?",
            "Mean of Rain (mm) in rain.csv (56 rows), where Station = Kiel; Date = 2024:\navg\n|---|\n2.9",
            "2024-01-01 | Kiel | 1.1",
        ),
    ],
)
async def test_rows_that_are_named_are_the_answer(
    module_services: Services, mode: str, question: str, answer: str, cited: str
) -> None:
    ingestion = module_services.library.ingestion
    await ingestion.add("default", "codes.md", CODES.encode())
    await ingestion.add("default", "rain.csv", FILES["rain.csv"].encode())
    done, state = await ask_for_state(module_services, question, mode=mode)
    assert done["outcome"] == "answered"
    assert answer in done["answer"]
    assert done["answer"].count("\n") <= 6
    [citation] = done["citations"]
    assert citation["text"].startswith(cited)
    assert state["confidence"] >= 0.6


async def test_a_part_of_a_question_is_looked_up_as_a_whole_one_is(module_services: Services) -> None:
    ingestion = module_services.library.ingestion
    await ingestion.add("default", "codes.md", CODES.encode())
    await ingestion.add("default", "pump.md", b"# Pump\n\nThe pump has a warranty of 24 months.\n")
    question = "How long is the warranty of the pump, and what does error E42 mean?"
    done, _ = await ask_for_state(module_services, question)
    assert done["outcome"] == "answered"
    assert "a warranty of 24 months." in done["answer"]
    assert "--- | --- | ---\nE42 | The water is too cold. | Wait ten minutes.\n\n[" in done["answer"]
    assert "E41" not in done["answer"]


async def test_tables_are_looked_up_where_a_row_of_theirs_was_found() -> None:
    asked: list[str] = []

    async def note(scope: Any, question: str, documents: list[str]) -> None:
        asked.extend(documents)

    context: Any = SimpleNamespace(calculator=SimpleNamespace(look_up=note), ledger=None)
    rows = "a | b\n--- | ---\n1 | 2"
    beside = make_source(f"Prose.\n\n{rows}", document_id="beside")
    beside["found"] = [FoundSpan(start=0, end=6, score=0.5)]
    found = make_source(f"Prose.\n\n{rows}", document_id="found", start=100)
    found["found"] = [FoundSpan(start=108, end=108 + len(rows), score=0.5)]
    as_it_is_cut = make_source(rows, document_id="cut")
    await look_up("?", [beside, found, as_it_is_cut], DEFAULT_SCOPE, context)
    assert asked == ["found", "cut"]


async def test_a_search_of_tables_that_is_given_up_is_told() -> None:
    async def give_up(*_: Any) -> None:
        raise CalculationError("There are too many tables.")

    ledger = Ledger()
    context: Any = SimpleNamespace(calculator=SimpleNamespace(look_up=give_up), ledger=ledger)
    assert await look_up("?", [make_source("a | b\n--- | ---\n1 | 2")], DEFAULT_SCOPE, context) == []
    assert ledger.warnings == ["Tables were not looked up: There are too many tables."]
