"""Computing over the tables of documents."""

import asyncio
import string
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from app.adapters.calculation.calculator import SqliteCalculator
from app.adapters.calculation.looking_up import look_up as look_up_in
from app.adapters.calculation.relations import Relation, find_number, read_relations
from app.adapters.calculation.results import LookedUp
from app.wiring.services import Services
from domain.errors import CalculationError
from domain.ports.calculation import Value
from domain.scope import Scope
from domain.text.days import find_day
from nodes.sources.looking_up import SURE
from tests.contracts.calculator import FILES, SCOPE, CalculatorContract
from tests.ingest.test_parser_workers import list_processes

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"


in_one_loop = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def services(module_services: Services) -> Services:
    return module_services


@pytest.fixture
def calculator(services: Services) -> SqliteCalculator:
    return services.library.calculator


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tables(module_services: Services) -> dict[str, str]:
    services = module_services
    added = {name: await services.library.ingestion.add("default", name, text.encode()) for name, text in FILES.items()}
    return {name: str(report.document_id) for name, report in added.items()}


@in_one_loop
class TestSqliteCalculator(CalculatorContract):
    pass


@pytest_asyncio.fixture(loop_scope="module")
async def impatient(services: Services, parser_processes: None) -> AsyncIterator[SqliteCalculator]:
    """Real processes, and little time."""
    async with aclosing(SqliteCalculator(services.library.search, at_once=1, seconds=0.3)) as calculator:
        yield calculator


@in_one_loop
@pytest.mark.parametrize(
    "sql",
    [
        f"{ENDLESS} SELECT count(*) FROM c",
        f"{ENDLESS} SELECT x FROM c ORDER BY -x",
        f"{ENDLESS} SELECT group_concat(x) FROM c",
        "SELECT count(*) FROM t1 a, t1 b, t1 c, t1 d, t1 e, t1 f",
        f"SELECT * FROM t1 WHERE \"Date\" LIKE '{'%a' * 40}' OR (SELECT count(*) FROM t1 a, t1 b, t1 c, t1 d, t1 e) > 0",
    ],
)
async def test_a_query_without_end_is_stopped_and_costs_nobody_else_anything(
    impatient: SqliteCalculator, tables: dict[str, str], sql: str
) -> None:
    others = list_processes()
    await impatient.calculate(SCOPE, "SELECT 1", [])
    [worker] = list_processes() - others
    began = time.monotonic()
    with pytest.raises(CalculationError, match="took"):
        await impatient.calculate(SCOPE, sql, [tables["rain.csv"]])
    assert time.monotonic() - began < 20
    assert (await impatient.calculate(SCOPE, "SELECT 1", [])).rows == ((1,),)
    assert worker in list_processes()


@in_one_loop
async def test_memory_is_limited_and_a_query_that_is_left_ends_its_worker(
    services: Services, parser_processes: None
) -> None:
    sorting = f"{ENDLESS} SELECT x, x || '{'a' * 40}' FROM (SELECT x FROM c LIMIT 20000000) ORDER BY -x"
    async with aclosing(SqliteCalculator(services.library.search, at_once=1, seconds=60)) as calculator:
        with pytest.raises(CalculationError):
            await calculator.calculate(SCOPE, sorting, [])
        assert sum(_read_memory(worker) for worker in list_processes()) < 256_000
        waiting = asyncio.create_task(calculator.calculate(SCOPE, f"{ENDLESS} SELECT count(*) FROM c", []))
        await asyncio.sleep(0.5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert list_processes() == set()


@in_one_loop
async def test_a_worker_that_nobody_waits_for_any_more_is_ready_for_the_next_question(
    services: Services, parser_processes: None, tables: dict[str, str]
) -> None:
    async with aclosing(SqliteCalculator(services.library.search, at_once=1)) as calculator:
        question, asked = "How much rain was there in Kiel on 1 January 2024?", [tables["rain.csv"]]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await calculator.look_up(SCOPE, question, asked)
        assert await calculator.look_up(SCOPE, question, asked) is not None
        assert len(list_processes()) == 1


def test_the_service_never_loads_the_parser() -> None:
    program = "import sys, app.wiring.services; print('sqlglot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@in_one_loop
async def test_documents_of_a_group_are_computed_with_by_that_group_only(
    calculator: SqliteCalculator, services: Services, tables: dict[str, str]
) -> None:
    report = await services.library.ingestion.add("default", "board.md", FILES["prices.md"].encode(), groups=["board"])
    asked = [str(report.document_id)]
    found = await calculator.calculate(Scope("default", groups=frozenset(["board"])), "SELECT count(*) FROM t1", asked)
    assert found.rows == ((3,),)
    with pytest.raises(CalculationError, match="There is no document"):
        await calculator.calculate(Scope("default", groups=frozenset(["staff"])), "SELECT count(*) FROM t1", asked)


def look_up(question: str, sources: list[str], texts: list[str], seconds: float = 5.0) -> LookedUp | None:
    return look_up_in(question, sources, [Path(source).stem for source in sources], texts, seconds)


def read_table(*rows: str) -> Relation:
    [relation] = read_relations("\n".join(rows))
    return relation


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1,234", "56"], "number", [1234, 56]),
        (["1.234,5", "7,25"], "number", [1234.5, 7.25]),
        (["12.5%", "3 %"], "number in %", [12.5, 3]),
        (["$ 1,000", "250"], "number in $", [1000, 250]),
        (["USD 5", "USD 1,500"], "number in USD", [5, 1500]),
        (["12 km", "7.5 km"], "number in km", [12, 7.5]),
        (["(123)", "−4"], "number", [-123, -4]),
        (["1.5e3", "2"], "number", [1500.0, 2]),
        (["5*", "n/a", "7 [1]"], "number", [5, None, 7]),
        (["–", "", "3"], "number", [None, None, 3]),
        (["12 km", "7 mi"], "text", ["12 km", "7 mi"]),
        (["007", "12"], "text", ["007", "12"]),
        (["12345678901234567890", "1"], "text", ["12345678901234567890", "1"]),
        (["3.1", "3.10"], "text", ["3.1", "3.10"]),
        (["3 of 5", "1"], "text", ["3 of 5", "1"]),
        (["2024-03-01", "2024-12-31"], "date", ["2024-03-01", "2024-12-31"]),
        (["1.3.2024", "31.12.2024"], "date", ["2024-03-01", "2024-12-31"]),
        (["March 1, 2024", "May 2, 2023"], "date", ["2024-03-01", "2023-05-02"]),
        (["3/31/2024", "1/2/2024"], "date", ["2024-03-31", "2024-01-02"]),
        (["31/3/2024", "1/2/2024"], "date", ["2024-03-31", "2024-02-01"]),
        (["3/1/2024", "1/2/2024"], "text", ["3/1/2024", "1/2/2024"]),
        (["**5**", "[6](#six)"], "number", [5, 6]),
        (["120¹", "~~50~~", "45²"], "number", [120, None, 45]),
        (["10⁵", "2"], "text", ["10⁵", "2"]),
    ],
)
def test_cells_become_values(cells: list[str], kind: str, values: list[Value]) -> None:
    relation = read_table("| Name | Value |", "| --- | --- |", *(f"| row | {cell} |" for cell in cells))
    assert str(relation.columns[1]) == f'"Value" {kind}'
    assert [row[1] for row in relation.rows] == values


def test_columns_have_names_of_their_own() -> None:
    relation = read_table('A | A |  | B "x"', "--- | --- | --- | ---", "1 | 2 | 3 | 4 | 5", "6 | 7")
    assert [column.name for column in relation.columns] == ["A", "A 2", "c3", "B 'x'", "c5"]
    assert relation.rows == ((1, 2, 3, 4, 5), (6, 7, None, None, None))


def test_a_header_that_nothing_rules_off_names_no_wrong_columns() -> None:
    shifted = read_table("2023 | 2022", "Net sales | $ 3,226 | $ 2,729", "Cost of sales | 2,014 | 1,704")
    assert [str(column) for column in shifted.columns] == ['"c1" text', '"2023" number in $', '"2022" number in $']
    unclear = read_table("2023 | 2022", "Net sales | 3,226 | 100% | 2,729 | 100%", "Cost | 2,014 | 62% | 1,704 | 62%")
    assert [column.name for column in unclear.columns] == ["c1", "c2", "c3", "c4", "c5"]
    assert unclear.caption == "2023 › 2022"


def test_rows_stand_where_the_relation_says() -> None:
    text = "# Sales\n\nUnits sold:\n\n| City | Units |\n| --- | --- |\n| Kiel | 3 |\n| Malmo | 4 |\n\nDone.\n"
    [relation] = read_relations(text)
    assert relation.caption == "Sales › Units sold:"
    assert [text[start:end] for start, end in relation.spans] == ["| Kiel | 3 |", "| Malmo | 4 |"]


def test_records_are_the_rows_of_one_table() -> None:
    text = "Falke:\n- Price: $1,200\n- Colour: red\n\nAmsel:\n- Price: $80\n- Weight: 2 kg\n\nOrder by mail."
    [relation] = read_relations(text)
    assert [column.name for column in relation.columns] == ["name", "Price", "Colour", "Weight"]
    assert relation.rows == (("Falke", 1200, "red", None), ("Amsel", 80, None, 2))
    assert text[slice(*relation.spans[1])].startswith("Amsel:")
    assert read_relations("Do this:\n- Note: never alone\n- Time: at night") == ()
    assert read_relations("City | Units\n--- | ---\nKiel | 3\n... | ...\nOslo | 4") == ()  # not all are shown


def test_how_many_of_what_a_row_is_called_is_what_the_row_says() -> None:
    text = "Fee | Amount\n--- | ---\nSetup fee | 4,150\nSeats included | 25"
    found = look_up("How many seats are included?", ["plan.pdf"], [text])
    assert found is not None
    assert found.lines == ("Seats included | 25",)


def test_a_column_without_a_header_is_shown_without_one() -> None:
    text = "| | Rain in mm | Days with snow |\n--- | --- | ---\nKiel | 812 | 31\nLübeck | 790 | 12\nHusum | 805 | 22"
    found = look_up("How many days with snow had Lübeck?", ["weather.md"], [text])
    assert found is not None
    assert found.head.split("\n")[-2:] == ["| | Rain in mm | Days with snow |", "--- | --- | ---"]


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("highest avg. monthly searches", "roof box | 40500 | 1"),
        ("sum of avg. monthly searches", "56180"),
        ("how many keywords are competitive", None),
    ],
)
def test_a_header_may_hold_an_operator_and_yes_and_no_are_not_counted(question: str, line: str | None) -> None:
    rows = ["roof box | 40500 | 1", "bike rack | 14800 | 0", "ski box | 880 | 1"]
    text = "\n".join(["Keywords | Avg. monthly searches | Competitive", "--- | --- | ---", *rows])
    found = look_up(question, ["keywords.csv"], [text])
    assert (found and found.certainty >= SURE and found.lines) == (line and (line,))


def test_a_word_that_nothing_accounts_for_is_a_condition() -> None:
    text = "| | income | prestige |\n--- | --- | ---\npilot | 72 | 83\nporter | 9 | 3\nbaker | 21 | 30"
    found = look_up("Which of the occupations has the lowest prestige?", ["occupations.csv"], [text])
    assert found is not None
    assert found.lines == ("porter | 9 | 3",)
    assert look_up("Which occupation of women has the lowest prestige?", ["occupations.csv"], [text]) is None


def test_a_table_is_not_about_what_another_section_is_about() -> None:
    text = (
        "# Prices and warranty\n\n## Prices\n\n### Stations\n\n| Article | Amount |\n| --- | --- |\n| WS-400 | 3,450 |\n\n"
        "## Warranty\n\nThe warranty lasts 36 months.\n"
    )
    assert look_up("price of the WS-400", ["Prices and warranty"], [text]) is not None
    found = look_up("warranty of the WS-400", ["Prices and warranty"], [text])
    assert found is None or found.certainty < 0.6


@pytest.mark.parametrize(
    ("question", "ships"),
    [
        ("which tall ships are barques", ["Sedov", "Eagle", "Mircea"]),
        ("tall ships with more than 3 masts", ["Sedov", "Royal"]),
        ("which tall ships have at least 4 masts", ["Sedov", "Royal"]),
        ("tall ships with at most 2 masts", ["Depth"]),
        ("hull color of the Eagle", ["Eagle"]),
        ("tall ship with the most depth", ["Sedov"]),
        ("hull col of the Eagle", ["Eagle"]),
        ("how many tall ships have a white hull", ["2"]),
        ("how many tall ships with more than 1 masts and more than 2 guns", []),
        ("average depth of a barque", ["6.3333"]),
        ("average depth per rig", []),
        ("which tall ships are not barques", []),
        ("how many rigs do the tall ships have", []),
        ("how many tall ships have 4", []),
        ("most depth of a royal tall ship", []),
    ],
)
def test_columns_are_meant_by_other_words_and_what_is_not_read_is_not_answered(question: str, ships: list[str]) -> None:
    rows = [
        "Sedov | barque | 4 | 0 | white | 8",
        "Eagle | barque | 3 | 4 | white | 5",
        "Depth | cutter | 1 | 1 | red | 2",
    ]
    rows += ["Mircea | barque | 3 | 0 | blue | 6", "Royal Clipper | schooner | 5 | 3 | blue | 4"]
    head = "Name | Rig | Masts | Guns | HullCol | Depth\n--- | --- | --- | --- | --- | ---"
    found = look_up(question, ["tall_ships.csv"], ["\n".join([head, *rows])])
    lines = found.lines if found and found.certainty >= SURE else ()
    assert lines == tuple(next((row for row in rows if row.startswith(ship)), ship) for ship in ships)


def test_a_row_that_is_called_a_total_is_not_computed_with() -> None:
    text = "Item | Stock\n--- | ---\nBolt | 120\nNut | 300\nRod | 15\nTotal: | 435"
    asked = ("average stock", "which item has the most stock", "items with more than 100 stock")
    found = [look_up(question, ["parts.csv"], [text]) for question in asked]
    assert [each and each.lines for each in found] == [("145",), ("Nut | 300",), ("Bolt | 120", "Nut | 300")]
    assert found[0] is not None
    assert "Item ≠ Total:" in found[0].head


@pytest.mark.parametrize("question", ["What does the WS-400 cost?", "Which station is the most expensive?"])
def test_a_header_may_have_another_word_for_what_is_asked(question: str) -> None:
    text = (
        "Stations\n\n| Article | Wind | Price |\n| --- | --- | --- |\n| WS-200 | no | 690 |\n| WS-400 | yes | 3,450 |\n"
    )
    found = look_up(question, ["prices.md"], [text])
    assert found is not None
    assert found.lines == ("WS-400 | yes | 3,450",)
    less = look_up("What does the WS-400 cost abroad?", ["prices.md"], [text])
    assert less is None or less.certainty < 0.6


def test_a_follow_up_asks_for_what_was_typed() -> None:
    text = "| Article | Price | Weight |\n| --- | --- | --- |\n| W2 | 690 | 3 |\n| W4 | 3,450 | 8 |\n"
    assert look_up("and its weight? (W4 price)", ["prices.md"], [text]) is not None
    assert look_up("and delivery? (W4 price)", ["prices.md"], [text]) is None


def test_rows_that_a_word_names_in_different_columns_are_looked_up_together() -> None:
    text = "| Departure | Arrival |\n| --- | --- |\n| Kiel | Oslo |\n| Bergen | Kiel |\n"
    found = look_up("the departure and arrival of Kiel", ["ferries.md"], [text])
    assert found is not None
    assert found.lines == ("Kiel | Oslo", "Bergen | Kiel")


@pytest.mark.parametrize(
    ("text", "number", "day"),
    [
        ("2013 (1888)", 2013, None),
        ("about $1,234.50 a month", 1234.5, None),
        ("Ended Jan 6, 2025", 6, "2025-01-06"),
        ("from 3 March 2019 on", 3, "2019-03-03"),
        ("ab 3. März 2019", 3, "2019-03-03"),
        ("on 2024-02-30 or 2024-03-01", 2024, "2024-03-01"),
        ("rain", None, None),
    ],
)
def test_figures_and_dates_are_read_out_of_text(text: str, number: float | None, day: str | None) -> None:
    assert (find_number(text), find_day(text)) == (number, day)


def _read_memory(process: int) -> int:
    status: Any = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0])


def write_tables(count: int) -> tuple[str, str]:
    """A text of tiny tables, and a long question that each of them may answer."""
    words = (first + second for first in string.ascii_lowercase for second in string.ascii_lowercase)
    return "\n\n".join(["|plinth|b|\n|-|-|\n|c|d|"] * count), f"plinth registry {' '.join(words)}"[:1990]


def test_looking_through_many_tables_has_an_end() -> None:
    text, question = write_tables(400)
    with pytest.raises(CalculationError, match="too many tables"):
        look_up(question, ["many.md"], [text], seconds=0.0)


@in_one_loop
async def test_looking_through_tables_leaves_the_loop_its_turns(
    services: Services, calculator: SqliteCalculator
) -> None:
    text, question = write_tables(400)
    report = await services.library.ingestion.add("many", "many.md", f"# Registry\n\n{text}".encode())
    assert report.document_id is not None
    looking = asyncio.create_task(calculator.look_up(Scope("many"), question, [report.document_id]))
    turns = 0
    while not looking.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100
    await asyncio.gather(looking, return_exceptions=True)
