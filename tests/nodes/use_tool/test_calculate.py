"""The tool `calculate`."""

from dataclasses import replace

import pytest
from pydantic import ValidationError

from app.wiring.services import Services
from domain.scope import Scope
from nodes.prompting.messages import show_sources
from nodes.sources.neighbours import merge_touching
from nodes.use_tool.calculate import CALCULATE
from nodes.use_tool.tool import Finding, ToolProblem

SCOPE = Scope("default")
STAFF = (
    "# Staff\n\nStaff in 2024:\n\n| Team | People |\n| --- | --- |\n| Kiel | 1,200 |\n| Malmo | 350 |\n| Oslo | 41 |\n"
)


@pytest.fixture
async def staff(services: Services) -> str:
    return str((await services.library.ingestion.add("default", "staff.md", STAFF.encode())).document_id)


async def calculate(services: Services, sql: str, *documents: str) -> Finding:
    arguments = CALCULATE.arguments(sql=sql, documents=list(documents))
    return await CALCULATE.run(arguments, SCOPE, services.make_context())


async def test_a_computed_figure_cites_the_rows_it_was_computed_from(services: Services, staff: str) -> None:
    found = await calculate(services, "SELECT sum(people) AS people FROM t1 WHERE team <> 'Oslo'", staff)
    assert found.text == "people\n|---|\n1550"
    [source] = found.sources
    assert source["text"] == "Kiel | 1,200\nMalmo | 350"
    [read] = await services.library.search.read_texts(SCOPE, [staff])
    assert read.text[source["start"] : source["end"]] == source["text"]
    assert source["document_id"] == staff
    assert source["lead"] == "Staff in 2024:\n\nTeam | People\n--- | ---"
    assert source["computed"].split("\n") == [
        "Computed: SELECT sum(people) AS people FROM t1 WHERE team <> 'Oslo'",
        "people",
        "|---|",
        "1550",
    ]
    assert list(found.listed) == [staff]


async def test_a_wrong_query_is_a_problem_that_says_what_there_is(services: Services, staff: str) -> None:
    with pytest.raises(ToolProblem) as caught:
        await calculate(services, "SELECT sum(staff) FROM t1", staff)
    assert '"Team" text, "People" number' in str(caught.value)
    with pytest.raises(ToolProblem):
        await calculate(services, "DROP TABLE t1", staff)


async def test_without_a_calculator_it_says_so(services: Services) -> None:
    context = replace(services.make_context(), calculator=None)
    with pytest.raises(ToolProblem):
        await CALCULATE.run(CALCULATE.arguments(sql="SELECT 1"), SCOPE, context)


def test_arguments_are_bounded() -> None:
    for wrong in ({"sql": ""}, {"sql": "x" * 5000}, {"sql": "SELECT 1", "documents": ["d"] * 11}):
        with pytest.raises(ValidationError):
            CALCULATE.arguments(**wrong)


async def test_what_was_computed_is_not_merged_into_the_rows_beside_it(services: Services, staff: str) -> None:
    [computed] = (await calculate(services, "SELECT sum(people) FROM t1 WHERE team <> 'Oslo'", staff)).sources
    plain = {**computed, "number": 1}
    del plain["computed"]
    merged = merge_touching([plain, {**computed, "number": 2}])  # type: ignore[list-item]
    assert [source.get("computed") for source in merged] == [None, computed["computed"]]
    assert computed["computed"] in show_sources(merged)
