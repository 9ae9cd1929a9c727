"""Runs a query over relations in SQLite. This runs in a process that can be killed: `app/ingest/parser_process.py`.

What a query can do is bounded three times. It is parsed, and must be one query over the relations. SQLite then lets it
read only these, by functions that are known to be harmless, for a limited time and in limited memory. And the process
has limits of its own, for what holds up both.
"""

import sqlite3
import statistics
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from time import monotonic
from typing import Any, cast

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError, SqlglotError

from app.adapters.calculation.relations import Relation, find_number, read_relations
from app.adapters.calculation.results import Result, Used
from domain.errors import CalculationError
from domain.ports.calculation import Value
from domain.text.days import find_day

ROWS = 200
CHARACTERS = 8_000
"""Size of a result. A longer one is cut."""
_LONGEST_CELL = 500
_LONGEST_VALUE = 1_000_000
"""Characters of a value while a query runs."""
_HEAP = 100_000_000
"""Bytes that SQLite takes for the tables and a query."""
_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock: some tenths of a millisecond."""
_MOST_TRACED = 100_000
"""Rows of a query that tell which rows of the tables it read."""
_DESCRIBED = 12
"""Tables that an error describes."""
_LONGEST_DESCRIPTION = 4_000

_FUNCTIONS = """
abs acos asin atan atan2 avg ceil ceiling coalesce concat concat_ws cos count cume_dist date datetime day degrees
dense_rank exp first_value floor glob group_concat ifnull iif instr julianday lag last_value lead length like ln
log log10 log2 lower ltrim max min mod nth_value ntile nullif number percent_rank percentile_cont pi pow power
radians rank replace round row_number rtrim sign sin sqrt stddev strftime string_agg substr substring sum tan time
total trim trunc typeof unixepoch upper
"""
"""What a query may call. Without `printf`, which can be asked to write for minutes."""
_ALLOWED = frozenset(_FUNCTIONS.split())
_CATALOG = "tables"
"""The relation that lists the others."""


def answer(sql: str, sources: Sequence[str], texts: Sequence[str], seconds: float) -> Result:
    """Answer a query over the tables of the documents with these sources and texts. Raises `CalculationError`."""
    placed = [(number, relation) for number, text in enumerate(texts) for relation in read_relations(text)]
    relations = {f"t{number}": relation for number, (_, relation) in enumerate(placed, 1)}
    documents = {f"t{number}": document for number, (document, _) in enumerate(placed, 1)}
    origins = {name: sources[document] for name, document in documents.items()}
    try:
        query = _parse(sql, relations)
        with closing(sqlite3.connect(":memory:")) as database:
            _load(database, relations, origins, _list_tables(query))
            _confine(database, query, relations, seconds)
            cursor = database.execute(query.sql("sqlite"))
            columns = tuple(str(column[0]) for column in cursor.description)
            rows, is_cut = _take(cursor)
            return Result(columns, rows, is_cut, tuple(_trace(database, query, relations, documents)))
    except _Wrong as error:
        raise CalculationError(f"{error}\n{_describe(error.of, relations, origins)}") from error
    except sqlite3.Error as error:
        if "interrupted" in str(error):
            raise CalculationError(f"The query took more than {seconds:.0f} s.") from error
        if "too big" in str(error):
            raise CalculationError("A value of the query is too long.") from error
        raise CalculationError(f"SQLite says: {error}.\n{_describe(_list_names(sql), relations, origins)}") from error
    except MemoryError as error:
        raise CalculationError("The query took too much memory.") from error


class _Wrong(Exception):
    """The query names what is not there, or is none."""

    def __init__(self, message: str, of: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.of = of


def _parse(sql: str, relations: Mapping[str, Relation]) -> exp.Query:
    """Return the query with its columns by their exact names, and with divisions that do not drop the fraction."""
    try:
        query = parse_one(sql, read="sqlite")
    except (SqlglotError, RecursionError) as error:
        found = error.errors if isinstance(error, ParseError) else []
        reason = found[0].get("description") if found else "it cannot be read"
        raise _Wrong(f"This is no SQL of SQLite: {reason}.", _list_names(sql)) from error
    if isinstance(query, exp.Subquery):
        query = query.unnest()
    if not isinstance(query, exp.Query | exp.Values):
        raise _Wrong("Only a single SELECT can be run.")
    defined = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    tables = _list_tables(query).keys() - defined
    if unknown := sorted(tables - relations.keys() - {_CATALOG}):
        raise _Wrong(f"There is no table {unknown[0]}.")
    named = sorted(tables & relations.keys())
    known = {column.name.lower(): column.name for name in named for column in relations[name].columns}
    if _CATALOG in tables:
        known |= {name: name for name in _CATALOG_COLUMNS}
    loose = {_loosen(name): name for name in known.values()}
    aliases = {alias.alias.lower() for alias in query.find_all(exp.Alias)}
    aliases |= {each.name.lower() for alias in query.find_all(exp.TableAlias) for each in alias.columns}
    for select in query.find_all(exp.Select):
        # SQLite names what has no name of its own as it is written here, and this is changed below.
        shown = [
            each if isinstance(each, _NAMED) else exp.alias_(each, each.sql("sqlite"), quoted=True)
            for each in select.expressions
        ]
        select.set("expressions", shown)
    for column in list(query.find_all(exp.Column)):
        name = column.name.lower()
        if name in aliases or isinstance(column.this, exp.Star):
            continue
        exact = known.get(name) or loose.get(_loosen(name))
        if exact is None:
            quotes = " Text stands in single quotes." if column.this.quoted else ""
            raise _Wrong(f'There is no column "{column.name}".{quotes}', named)
        column.set("this", exp.to_identifier(exact, quoted=True))
    for division in list(query.find_all(exp.Div)):
        division.set("this", exp.cast(division.this, "double"))
    return cast(exp.Query, query)


def _loosen(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


_NAMED = (exp.Alias, exp.Column, exp.Star, exp.Subquery)
_CATALOG_COLUMNS = ("name", "document", "caption", "columns", "rows")


def _list_tables(query: exp.Query | exp.Values) -> dict[str, None]:
    """Return the names of the tables that a query reads, in order."""
    return dict.fromkeys(table.name.lower() for table in query.find_all(exp.Table))


def _load(
    database: sqlite3.Connection,
    relations: Mapping[str, Relation],
    origins: Mapping[str, str],
    named: Collection[str],
) -> None:
    """Fill the database with the relations that are named, and the list of all."""
    for pragma in (f"hard_heap_limit={_HEAP}", "temp_store=MEMORY", "trusted_schema=OFF"):
        database.execute(f"PRAGMA {pragma}")
    for name in relations.keys() & named:
        relation = relations[name]
        kinds = (f'"{each.name}" {"NUMERIC" if each.kind == "number" else "TEXT"}' for each in relation.columns)
        _fill(database, name, list(kinds), relation.rows)
    described = [
        (name, origins[name], relation.caption, ", ".join(map(str, relation.columns)), len(relation.rows))
        for name, relation in relations.items()
    ]
    _fill(database, _CATALOG, list(_CATALOG_COLUMNS), described)
    database.execute("PRAGMA query_only=ON")


def _fill(database: sqlite3.Connection, name: str, columns: Sequence[str], rows: Sequence[Sequence[Value]]) -> None:
    database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
    database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows)


def _confine(database: sqlite3.Connection, query: exp.Query, relations: Mapping[str, Relation], seconds: float) -> None:
    """Let the connection only read the relations, for some time."""
    database.create_function("number", 1, _to_number, deterministic=True)
    database.create_function("day", 1, _to_day, deterministic=True)
    database.create_aggregate("percentile_cont", 2, cast(Any, _Percentile))
    database.create_aggregate("stddev", 1, cast(Any, _Deviation))
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    database.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100)
    deadline = monotonic() + seconds
    defined = {cte.alias for cte in query.find_all(exp.CTE)}

    def allow(action: int, first: str | None, second: str | None, *_: str | None) -> int:
        is_harmless = (
            action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
            or (action == sqlite3.SQLITE_READ and (first in relations or first == _CATALOG))
            or (action == sqlite3.SQLITE_READ and first in defined and second == "")  # its rows are counted
            or (action == sqlite3.SQLITE_FUNCTION and second is not None and second.lower() in _ALLOWED)
        )
        return sqlite3.SQLITE_OK if is_harmless else sqlite3.SQLITE_DENY

    database.set_authorizer(allow)
    database.set_progress_handler(lambda: monotonic() > deadline, _STEPS)


def _take(cursor: sqlite3.Cursor) -> tuple[tuple[tuple[Value, ...], ...], bool]:
    """Return as many rows as a result may have, and whether there are more."""
    rows: list[tuple[Value, ...]] = []
    characters = 0
    for row in cursor:
        shown = tuple(_show(value) for value in row)
        characters += sum(len(str(value)) + 3 for value in shown)
        if len(rows) == ROWS or (rows and characters > CHARACTERS):
            return tuple(rows), True
        rows.append(shown)
    return tuple(rows), False


def _show(value: Any) -> Value:
    if isinstance(value, float):
        value = round(value, 10)
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value if value is None or isinstance(value, int) else str(value)[:_LONGEST_CELL]


def _trace(
    database: sqlite3.Connection, query: exp.Query, relations: Mapping[str, Relation], documents: Mapping[str, int]
) -> Iterator[Used]:
    """Return the rows of each table that the query read. Each of its SELECTs is asked for them; of one that cannot be
    run by itself nothing is known."""
    used: dict[str, dict[int, None]] = {}
    for select in query.find_all(exp.Select):
        joined = [select.args.get("from_"), *(select.args.get("joins") or ())]
        tables = [each.this for each in joined if each is not None and isinstance(each.this, exp.Table)]
        read = [(table.alias_or_name, table.name.lower()) for table in tables if table.name.lower() in relations]
        if not read:
            continue
        with suppress(sqlite3.Error):
            cursor = database.execute(_ask_for_rows(select, query, [alias for alias, _ in read]).sql("sqlite"))
            for row in cursor.fetchmany(_MOST_TRACED):
                for (_, name), numbers in zip(read, row[-len(read) :], strict=True):
                    if numbers is not None:
                        used.setdefault(name, {}).update(dict.fromkeys(map(int, str(numbers).split(","))))
    for name in _list_tables(query):
        if name in relations:
            numbers = used.get(name)
            spans = relations[name].spans
            chosen = tuple(spans[number - 1] for number in numbers) if numbers else spans
            yield Used(documents[name], relations[name].lead, chosen, is_known=bool(numbers))


def _ask_for_rows(select: exp.Select, query: exp.Query, aliases: Sequence[str]) -> exp.Select:
    """Return the SELECT with the numbers of the rows that it reads in its last columns: all rows of a group, but for a
    sole MAX or MIN the one that has it."""
    asking = select.copy()
    if select is not query and (common := query.args.get("with_")):
        asking.set("with_", common.copy())
    asking.set("distinct", None)
    own = [call for call in asking.find_all(exp.AggFunc, exp.Anonymous) if _aggregates(call, asking)]
    is_extreme = len({call.sql() for call in own}) == 1 and isinstance(own[0], exp.Max | exp.Min)
    is_grouped = bool(own or asking.args.get("group"))
    for alias in aliases:
        number: exp.Expression = exp.column(exp.to_identifier("_rowid_"), table=exp.to_identifier(alias, quoted=True))
        if is_grouped and not is_extreme:
            number = exp.Anonymous(this="group_concat", expressions=[number])
        asking.append("expressions", number)
    return asking


def _aggregates(call: exp.Func, select: exp.Select) -> bool:
    """Return True for a call that makes one row of many in this SELECT."""
    if call.parent_select is not select or call.find_ancestor(exp.Window):
        return False
    if isinstance(call, exp.Anonymous):
        return call.name.lower() == "total"
    return not (isinstance(call, exp.Max | exp.Min) and call.expressions)  # max(a, b) is of one row


def _list_names(sql: str) -> list[str]:
    """Return the words of a text that may name tables."""
    return list(dict.fromkeys("".join(c if c.isalnum() else " " for c in sql.lower()).split()))


def _describe(names: Sequence[str], relations: Mapping[str, Relation], origins: Mapping[str, str]) -> str:
    """Describe the tables that are named, or else the first ones, for who has to write another query."""
    if not relations:
        return "No document was named, or those that were have no tables."
    chosen = [name for name in names if name in relations] or list(relations)
    told = [_describe_one(name, origins[name], relations[name]) for name in chosen[:_DESCRIBED]]
    if len(relations) > len(told):
        told.append(f"There are {len(relations)} tables: SELECT * FROM {_CATALOG} lists them.")
    return "\n".join(told)[:_LONGEST_DESCRIPTION]


def _describe_one(name: str, origin: str, relation: Relation) -> str:
    columns = ", ".join(map(str, relation.columns))
    samples = [" | ".join("" if value is None else str(value)[:60] for value in row) for row in relation.rows[:2]]
    caption = f" {relation.caption[:200]}," if relation.caption else ""
    return "\n".join(
        [f"{name} ({origin[:100]}):{caption} {len(relation.rows)} rows, columns {columns}. It begins:", *samples]
    )


def _to_number(value: Value) -> int | float | None:
    return find_number(value) if isinstance(value, str) else value


def _to_day(value: Value) -> str | None:
    return find_day(value) if isinstance(value, str) else None


class _Percentile:
    """`percentile_cont(value, share)`, which `median(value)` is parsed as."""

    def __init__(self) -> None:
        self._numbers: list[float] = []
        self._share = 0.5

    def step(self, value: Value, share: float) -> None:
        if isinstance(value, int | float):
            self._numbers.append(value)
        self._share = min(max(share, 0.0), 1.0)

    def finalize(self) -> float | None:
        if not self._numbers:
            return None
        numbers = sorted(self._numbers)
        place, rest = divmod(self._share * (len(numbers) - 1), 1)
        low = numbers[int(place)]
        return low + rest * (numbers[int(place) + 1] - low) if rest else low


class _Deviation:
    """`stddev(value)`, of a sample."""

    def __init__(self) -> None:
        self._numbers: list[float] = []

    def step(self, value: Value) -> None:
        if isinstance(value, int | float):
            self._numbers.append(value)

    def finalize(self) -> float | None:
        return statistics.stdev(self._numbers) if len(self._numbers) > 1 else None
