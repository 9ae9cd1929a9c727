"""Questions about tables, without a language model: looked up, and quoted as rows under their header."""

import pytest

from app.wiring.services import Services
from tests.asking import ask_for_state
from tests.contracts.calculator import FILES

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
            "How much rain fell at Malmo on 14 February 2024?",
            "Date | Station | Rain (mm)\n--- | --- | ---\n2024-02-14 | Malmo | 3.4",
            "2024-02-14 | Malmo | 3.4",
        ),
        (
            "What was the average rain in Kiel in 2024?",
            "Date | Station | avg(Rain (mm))\n--- | --- | ---\n2024-01-01 … 2024-02-27 | Kiel | 2.9",
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
