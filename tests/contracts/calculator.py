"""The contract of `Calculator`. An adapter's tests inherit from the class and provide the fixtures `calculator` and
`tables`, the ids of the documents below by name."""

import pytest

from domain.errors import CalculationError
from domain.ports.calculation import Calculator
from domain.scope import Scope

SCOPE = Scope("default")
RAIN = [
    f"2024-{month:02}-{day:02},{'Kiel' if day % 2 else 'Malmo'},{month + day / 10:.1f}"
    for month in (1, 2)
    for day in range(1, 29)
]
FILES = {
    "rain.csv": "Date,Station,Rain (mm)\n" + "\n".join(RAIN) + "\n",
    "prices.md": """# Prices

## Sensors

List prices of 2024:

| Sensor | Price | Sold | Since |
| --- | ---: | --- | --- |
| Falke | $1,200.50 | 12 | 3 March 2019 |
| Amsel | $80 | 1,400 | 21 June 2020 |
| Uhu | $310 | — | 5 May 2021 |

## Stations

| Station | Country |
| --- | --- |
| Kiel | Germany |
| Malmo | Sweden |
""",
    "notes.md": "# Notes\n\nNo table is here.\n",
}


class CalculatorContract:
    async def test_arithmetic_needs_no_document(self, calculator: Calculator) -> None:
        found = await calculator.calculate(SCOPE, "SELECT 12 * 4.5 AS product, 7 / 2 AS half", [])
        assert (found.columns, found.rows, found.used) == (("product", "half"), ((54, 3.5),), ())

    async def test_a_figure_comes_with_the_rows_that_it_was_computed_from(
        self, calculator: Calculator, tables: dict[str, str]
    ) -> None:
        sql = """SELECT sum("Rain (mm)") AS total FROM t1 WHERE "Date" BETWEEN '2024-02-01' AND '2024-02-03'"""
        found = await calculator.calculate(SCOPE, sql, [tables["rain.csv"]])
        assert found.rows == ((6.6,),)
        [used] = found.used
        assert used.text == "2024-02-01 | Kiel | 2.1\n2024-02-02 | Malmo | 2.2\n2024-02-03 | Kiel | 2.3"
        assert used.document_id == tables["rain.csv"]
        assert used.lead.split("\n")[0] == "Date | Station | Rain (mm)"
        assert found.note == ""

    async def test_the_row_of_an_extreme_is_told_from_the_others(
        self, calculator: Calculator, tables: dict[str, str]
    ) -> None:
        asked = [tables["prices.md"]]
        for sql in (
            "SELECT sensor, max(price) FROM t1",
            "SELECT sensor, price FROM t1 ORDER BY price DESC LIMIT 1",
            "WITH dear AS (SELECT sensor, price FROM t1 WHERE price > 1000) SELECT * FROM dear",
            "(SELECT sensor, price FROM t1 WHERE price = (SELECT max(price) FROM t1))",
        ):
            found = await calculator.calculate(SCOPE, sql, asked)
            assert found.rows == (("Falke", 1200.5),), sql
            assert [used.text for used in found.used] == ["Falke | $1,200.50 | 12 | 3 March 2019"], sql
            assert "List prices of 2024" in found.used[0].lead

    async def test_many_rows_are_shown_in_part(self, calculator: Calculator, tables: dict[str, str]) -> None:
        everything = await calculator.calculate(SCOPE, "SELECT count(*) FROM t1", [tables["rain.csv"]])
        assert everything.rows == ((56,),)
        assert sum(used.text.count("\n") + 1 for used in everything.used) == 56
        apart = 'SELECT "Date" FROM t1 WHERE "Date" LIKE \'%-01\' OR "Date" LIKE \'%-14\' OR "Date" LIKE \'%-28\''
        some = await calculator.calculate(SCOPE, apart, [tables["rain.csv"]])
        assert len(some.rows) == 6
        assert 1 <= len(some.used) <= 3
        assert all(len(used.text) <= 1500 for used in some.used)
        assert "6 rows" in some.note

    async def test_tables_are_joined_across_documents(self, calculator: Calculator, tables: dict[str, str]) -> None:
        sql = "SELECT country, count(*) n FROM t1 JOIN t3 USING (station) GROUP BY country ORDER BY country"
        found = await calculator.calculate(SCOPE, sql, [tables["rain.csv"], tables["prices.md"]])
        assert found.rows == (("Germany", 28), ("Sweden", 28))
        assert {used.document_id for used in found.used} == {tables["rain.csv"], tables["prices.md"]}

    async def test_the_tables_can_be_listed(self, calculator: Calculator, tables: dict[str, str]) -> None:
        asked = [tables["rain.csv"], tables["prices.md"]]
        found = await calculator.calculate(SCOPE, "SELECT name, document, caption, columns, rows FROM tables", asked)
        assert [row[0] for row in found.rows] == ["t1", "t2", "t3"]
        assert [row[1] for row in found.rows] == ["rain.csv", "prices.md", "prices.md"]
        assert [row[4] for row in found.rows] == [56, 3, 2]
        assert "Sensors" in str(found.rows[1][2])
        assert '"Price" number in $' in str(found.rows[1][3])
        assert '"Since" date' in str(found.rows[1][3])
        assert found.used == ()

    async def test_where_no_row_matches_the_table_is_shown(
        self, calculator: Calculator, tables: dict[str, str]
    ) -> None:
        found = await calculator.calculate(
            SCOPE, "SELECT count(*) FROM t1 WHERE sensor = 'Dohle'", [tables["prices.md"]]
        )
        assert found.rows == ((0,),)
        assert found.used[0].text.startswith("Falke")
        assert found.note

    @pytest.mark.parametrize(
        ("sql", "says"),
        [
            ("SELECT colour FROM t1", 'There is no column "colour"'),
            ("SELECT * FROM t7", "There is no table t7"),
            ("SELECT sum(price FROM t1", "SQL"),
            ("SELECT substr() FROM t1", "substr"),
        ],
    )
    async def test_a_wrong_query_is_told_what_there_is(
        self, calculator: Calculator, tables: dict[str, str], sql: str, says: str
    ) -> None:
        with pytest.raises(CalculationError) as caught:
            await calculator.calculate(SCOPE, sql, [tables["prices.md"]])
        assert says.lower() in caught.value.message.lower()
        assert '"Price" number in $' in caught.value.message
        assert "Falke | 1200.5" in caught.value.message
        assert "Amsel | 80" in caught.value.message

    @pytest.mark.parametrize(
        ("question", "line"),
        [
            ("What is the price of the Amsel sensor?", "Amsel | $80 | 1,400 | 21 June 2020"),
            ("price of the sensors Amsel and Uhu", "Uhu | $310 | — | 5 May 2021"),
            ("Which sensor has the highest price?", "Falke | $1,200.50 | 12 | 3 March 2019"),
            ("Rain in Malmo on 14 February 2024", "2024-02-14 | Malmo | 3.4"),
            ("the least rain in Kiel in 2024", "2024-01-01 | Kiel | 1.1"),
            ("How many stations are in Sweden?", "1"),
            ("What is the average rain in Kiel in January 2024?", "2.4"),
            ("How many days of rain are there for Malmo?", "28"),
        ],
    )
    async def test_a_question_that_names_rows_and_columns_is_looked_up(
        self, calculator: Calculator, tables: dict[str, str], question: str, line: str
    ) -> None:
        found = await calculator.look_up(SCOPE, question, [tables["notes.md"], tables["prices.md"], tables["rain.csv"]])
        assert found is not None
        assert found.certainty > 0.6
        passage, table = found.found[0]
        assert line in table.split("\n")
        first = passage.text.split("\n")[0]
        assert first in FILES["rain.csv"].replace(",", " | ") or f"| {first} |" in FILES["prices.md"]

    @pytest.mark.parametrize(
        "question",
        [
            "What does the Dohle sensor cost?",
            "Rain in Kiel on 14 March 2024",
            "Which sensor is the best for a garden?",
            "How do I calibrate a sensor?",
            "Who wrote the notes?",
        ],
    )
    async def test_a_question_about_something_else_is_not(
        self, calculator: Calculator, tables: dict[str, str], question: str
    ) -> None:
        found = await calculator.look_up(SCOPE, question, list(tables.values()))
        assert found is None or found.certainty < 0.6

    async def test_only_documents_in_scope_are_looked_through(
        self, calculator: Calculator, tables: dict[str, str]
    ) -> None:
        question = "What does the Amsel sensor cost?"
        assert await calculator.look_up(Scope("other"), question, [tables["prices.md"]]) is None
        assert await calculator.look_up(SCOPE, question, []) is None

    async def test_nothing_is_read_outside_the_scope(self, calculator: Calculator, tables: dict[str, str]) -> None:
        asked = [tables["prices.md"]]
        for scope in (Scope("other"), Scope("default", (tables["rain.csv"],))):
            with pytest.raises(CalculationError, match="There is no document"):
                await calculator.calculate(scope, "SELECT * FROM t1", asked)
        with pytest.raises(CalculationError, match="There is no document"):
            await calculator.calculate(SCOPE, "SELECT 1", ["prices"])
        with pytest.raises(CalculationError, match="no tables"):
            await calculator.calculate(SCOPE, "SELECT * FROM t1", [tables["notes.md"]])

    async def test_a_result_is_limited(self, calculator: Calculator) -> None:
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        found = await calculator.calculate(SCOPE, f"{endless} LIMIT 1000", [])
        assert (len(found.rows), found.is_cut) == (200, True)
        long = "WITH RECURSIVE c(x, s) AS (SELECT 1, 'a' UNION ALL SELECT x + 1, s || s FROM c WHERE x < 15)"
        found = await calculator.calculate(SCOPE, f"{long} SELECT s FROM c ORDER BY x DESC", [])
        assert sum(len(str(row[0])) for row in found.rows) <= 8_000

    @pytest.mark.parametrize(
        "sql",
        [
            "ATTACH DATABASE '/tmp/other.db' AS other",
            "PRAGMA database_list",
            "SELECT * FROM pragma_database_list",
            "SELECT * FROM sqlite_master",
            "SELECT * FROM main.sqlite_schema",
            "SELECT load_extension('evil')",
            "SELECT readfile('/etc/passwd')",
            "SELECT writefile('/tmp/x', 'y')",
            "SELECT fts3_tokenizer('simple')",
            "SELECT hex(randomblob(1000000000))",
            "SELECT zeroblob(1000000000)",
            "SELECT printf('%.*c', 1000000000, 'x')",
            "CREATE TABLE t2 (a)",
            "DROP TABLE t1",
            "DELETE FROM t1",
            "UPDATE t1 SET price = 0",
            "INSERT INTO t1 SELECT * FROM t1",
            "SELECT 1; DROP TABLE t1",
            "VACUUM INTO '/tmp/copy.db'",
            "EXPLAIN SELECT 1",
            "SELECT " + "(" * 900 + "1" + ")" * 900,
            "WITH RECURSIVE c(s) AS (SELECT 'aaaaaaaaaa' UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c",
            "",
        ],
    )
    async def test_a_hostile_query_is_refused(self, calculator: Calculator, tables: dict[str, str], sql: str) -> None:
        with pytest.raises(CalculationError):
            await calculator.calculate(SCOPE, sql, [tables["prices.md"]])
