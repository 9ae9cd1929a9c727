"""The tool `calculate`: SQL over the tables of documents, and arithmetic."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from domain.errors import CalculationError
from domain.ports.calculation import Calculation, Value
from domain.scope import Scope
from domain.text.tables import write_rule
from nodes.context import Context
from nodes.sources.sourcing import make_source
from nodes.use_tool.documents import find_documents
from nodes.use_tool.tool import Finding, ResearchTool, ToolProblem

_LONGEST_SQL = 200
"""Characters of a query that its sources repeat."""
_LONGEST_RESULT = 3000
"""Characters of a result that reach the writer."""

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
    result = "\n".join(filter(None, (_show(found), found.note)))
    computed = show_computed(arguments.sql, result)
    sources = []
    for number, passage in enumerate(found.used, 1):
        source = make_source(number, passage, score=1.0)
        # Whoever writes the answer reads the result with the first of its rows.
        source["computed"] = computed if number == 1 else computed.partition("\n")[0]
        sources.append(source)
    return Finding(result, sources, listed=named)


CALCULATE = ResearchTool(name="calculate", description=_DESCRIPTION, arguments=CalculateArguments, run=_calculate)


def show_computed(sql: str, result: str) -> str:
    """Return the query and its result, as whoever writes the answer reads them."""
    return f"Computed: {_shorten(sql, _LONGEST_SQL)}\n{cut_result(result, _LONGEST_RESULT)}"


def cut_result(result: str, room: int) -> str:
    """Return the whole lines that there is room for, and say where that is not all."""
    if len(result) <= room:
        return result
    return "\n".join((result[:room].rpartition("\n")[0], "(more was left out)"))


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
