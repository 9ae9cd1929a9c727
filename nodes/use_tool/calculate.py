"""The tool `calculate`: SQL over the tables of documents, and arithmetic."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from domain.errors import CalculationError
from domain.ports.calculation import Calculation, Value
from domain.scope import Scope
from domain.state import WorkRound
from domain.text.tables import is_rule, write_rule
from nodes.context import Context
from nodes.sources.sourcing import make_source
from nodes.use_tool.documents import find_documents
from nodes.use_tool.tool import Finding, ResearchTool, ToolProblem

_LONGEST_SQL = 200
"""Characters of a query that its sources repeat."""
_LONGEST_RESULT = 3000
"""Characters of a result that its first source repeats."""

_DESCRIPTION = """\
Computes: runs one SELECT of SQLite over the tables of documents (sheets, CSV, tables in text), which are named \
t1, t2 and so on, in the order of `documents`. `SELECT * FROM tables` lists them with their columns; an error \
lists them, too, with two rows each. Columns are named as in the table's header, in double quotes where needed; \
text stands in single quotes. Figures are numbers, without currency, percent sign or unit; dates are text such as \
2024-03-31. number(text) and day(text) find the first figure or date in text; median and stddev are there, too; a \
division keeps its fraction. Without documents it does arithmetic: SELECT 12*4.5. Use it for every figure that no \
document states: sums, averages, differences, shares, counts, rankings. The rows that it computed from come back \
as sources; cite these."""


class CalculateArguments(BaseModel):
    """The arguments of `calculate`."""

    sql: str = Field(description="One SELECT, of SQLite.", min_length=1, max_length=4000)
    documents: list[str] = Field(
        default_factory=list, max_length=10, description="Titles or paths of the documents whose tables it reads."
    )


async def _calculate(arguments: CalculateArguments, scope: Scope, context: Context) -> Finding:
    if context.calculator is None:
        raise ToolProblem("Nothing can be computed here.")
    named = [document.id for document in await find_documents(arguments.documents, scope, context)]
    try:
        found = await context.calculator.calculate(scope, arguments.sql, named)
    except CalculationError as error:
        raise ToolProblem(error.message, named) from error
    result = _show(found)
    computed = f"Computed: {_shorten(arguments.sql, _LONGEST_SQL)}\n{result[:_LONGEST_RESULT]}"
    sources = []
    for number, passage in enumerate(found.used, 1):
        source = make_source(number, passage, score=1.0)
        # Whoever writes the answer reads the result with the first of its rows.
        source["computed"] = computed if number == 1 else computed.partition("\n")[0]
        sources.append(source)
    return Finding("\n".join(filter(None, (result, found.note))), sources, listed=named)


CALCULATE = ResearchTool(name="calculate", description=_DESCRIPTION, arguments=CalculateArguments, run=_calculate)


def list_arithmetic(work: Sequence[WorkRound]) -> list[str]:
    """Return what the agent computed without documents, with its results, which no source shows."""
    calls = [call for each in work for call in each["calls"] if call["name"] == CALCULATE.name and not call["sources"]]
    # What could not be computed is told in a sentence.
    return [
        f"{_shorten(str(call['arguments'].get('sql')), _LONGEST_SQL)}\n{call['result'][:_LONGEST_RESULT]}"
        for call in calls
        if not call["arguments"].get("documents") and any(map(is_rule, call["result"].split("\n")))
    ]


def _show(found: Calculation) -> str:
    """Write a result as a table."""
    lines = [_join(found.columns), write_rule(len(found.columns)), *map(_join, found.rows)]
    if not found.rows:
        lines.append("(no rows)")
    if found.is_cut:
        lines.append("(more rows were left out)")
    return "\n".join(lines)


def _join(cells: Sequence[Value]) -> str:
    return " | ".join("" if cell is None else str(cell) for cell in cells)


def _shorten(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
