"""Makes, without a language model, one query of a question about a table; or none.

Each word of the question has to be accounted for: by an operator ("highest", "how many", "more than"), a header, a
cell, a unit, or what the table is called. A word that is not may be a condition that the table knows nothing of, and
then its figures answer another question.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from statistics import fmean, median
from typing import Any, NamedTuple

from app.adapters.calculation.relations import Relation, find_days, find_number, read_headings, read_relations
from domain.ports.calculation import Value
from domain.text.blocks import open_section
from domain.text.languages import Language, fold, read_file
from domain.text.question import split_carried
from domain.text.terms import analyse_in, find_terms

_LONGEST_NAME, _MOST_WORDS = 8, 60
"""Words of a header or cell that are looked for as a whole, and of a question that is read."""
_YEARS, _MAY_BE_YEARS = range(1500, 2200), range(1000, 2200)
"""What a column of years holds, and what may be years and is not summed."""
_LEVEL = 0.1
"""Least change from one time to the next, as a share of the mean, of what may be summed over time. Employment and
prices change less: they are levels. Rain and sales change more."""
_ENOUGH = 0.8
"""Share of a name from which a figure may be of what it names."""
_ORDERS = {"most": "max", "latest": "max", "least": "min", "earliest": "min"}
_SIGNS = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<=", "between": ">="}
_TIME_SIGNS = {"after": ">", "since": ">=", "before": "<", "until": "<="}
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d{2})|_")
"""Where the next word of a name such as "LongJump" begins."""
_NUMBER = re.compile(r"[$€£¥]?\d[\d.,]*[%‰]?")
_DAY = re.compile(r"\d{4}-\d\d(?:-\d\d)?")
_UNIT = re.compile(r"[^\W_]+|[%‰°$€£¥]")
_SHARES = frozenset("%‰")
_FLAGS = (("true", "false"), ("1", "0"), ("yes", "no"), ("ja", "nein"), ("oui", "non"), ("sí", "no"), ("x", ""))


class Composed(NamedTuple):
    """A query over a table, which it calls `{table}`."""

    sql: str
    working: str
    """What it computes, in words, of a file called `{name}`; empty where it only looks rows up."""
    certainty: float
    """The least share of a header or cell that the question says, 0-1."""
    is_figure: bool
    """True where the result is not rows of the table."""
    columns: tuple[int, ...]
    """Those that name the rows, and those that are asked for."""


class _Word(NamedTuple):
    text: str
    terms: tuple[str, ...]
    number: float | None
    day: str
    is_typed: bool


class _Operator(NamedTuple):
    name: str
    first: int
    last: int
    text: str


class Question(NamedTuple):
    """A question, taken apart."""

    language: Language
    words: tuple[_Word, ...]
    operators: tuple[_Operator, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A relation with the terms of its headers and cells."""

    relation: Relation
    headers: tuple[frozenset[str], ...]
    units: tuple[frozenset[str], ...]
    called: frozenset[str]
    """The terms of its caption and of the headings above it, but for the text's first, which is its title."""
    headed: frozenset[str]
    """Those of all other headings of the text: what another section is about is not said here."""
    places: Mapping[str, frozenset[tuple[int, int]]]
    """The rows and columns of each term of the cells with text."""
    sizes: Mapping[tuple[int, int], int]


def take_apart(question: str, language: Language) -> Question:
    """Return the question's words and operators."""
    typed, carried = split_carried(question)
    words = [*_split(typed, language, is_typed=True), *_split(carried, language, is_typed=False)][:_MOST_WORDS]
    places = [0]
    for word in words:
        places.append(places[-1] + len(word.text) + 1)
    text = " ".join(word.text.lower() for word in words)
    found = []
    for name, pattern in _read_phrases(language)[0].items():
        for match in pattern.finditer(text):
            first, last = (sum(place <= at for place in places) - 1 for at in (match.start(), match.end() - 1))
            # "Which cars are red" lists, but does not say which table has the cars.
            found.append(_Operator(name, first, first if name == "list" else last, match[0]))
    # What was typed last changes what was asked before.
    changed = any(each.name in _ORDERS and words[each.first].is_typed for each in found)
    kept = (each for each in found if words[each.first].is_typed or not (changed and each.name in _ORDERS))
    return Question(language, tuple(words), tuple(kept))


def _split(text: str, language: Language, *, is_typed: bool) -> Iterator[_Word]:
    for written, day in find_days(text):
        text = text.replace(written, day)
    for word in (part.strip("\"'`“”‘’„(),.?!:;") for part in text.split()):
        day = word if _DAY.fullmatch(word) else ""
        number = find_number(word) if _NUMBER.fullmatch(word) else None
        terms = () if day else tuple(dict.fromkeys(analyse_in(language, word)))
        if word:
            yield _Word(word, terms, number, day, is_typed)


@cache
def _read_phrases(
    language: Language,
) -> tuple[Mapping[str, re.Pattern[str]], Sequence[tuple[frozenset[str], re.Pattern[str]]]]:
    """Return the operators by their names, and the terms of what is measured with the superlatives that mean it."""
    tables = _words(language)
    named = {**tables["aggregates"], **tables["comparisons"], "kind": tables["kinds"]}
    patterns = {name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in named.items()}
    patterns["list"] = re.compile(read_file(language, "reading")["questions"]["list"], re.IGNORECASE)
    return patterns, [(frozenset(analyse_in(language, words)), re.compile(said)) for words, said in tables["measures"]]


def _find_measured(word: str, language: Language) -> frozenset[str]:
    """Return the terms of what a word means in headers: a weight where "heaviest" is said, a price for "cost"."""
    terms, measures = frozenset(analyse_in(language, word)), _read_phrases(language)[1]
    said = (re.sub(r"er$", "est", word) if language == "en" else word, f"most {word}")
    groups = (each for each, pattern in measures if any(map(pattern.fullmatch, said)) or not each.isdisjoint(terms))
    return terms.union(*groups)


@lru_cache(maxsize=4)
def read_tables(text: str, language: Language) -> tuple[Table, ...]:
    """Return the tables of a text, in the order of `read_relations`."""
    tables = []
    headings = [
        (place, each, frozenset(analyse_in(language, split_name(each)))) for place, each in read_headings(text)[1:]
    ]
    headed = frozenset[str]().union(*(terms for _, _, terms in headings))
    path: list[tuple[int, frozenset[str]]] = []
    for relation in read_relations(text):
        while headings and headings[0][0] <= relation.spans[0][0]:
            path = open_section(path, *headings.pop(0)[1:])
        called = frozenset(analyse_in(language, split_name(relation.caption))).union(*(terms for _, terms in path))
        names = [split_name(column.name) for column in relation.columns]
        headers = tuple(_read_header(name, language) for name in names)
        said = (fold(f"{name} {column.unit}") for name, column in zip(names, relation.columns, strict=True))
        places: dict[str, set[tuple[int, int]]] = defaultdict(set)
        sizes: dict[tuple[int, int], int] = {}
        for column in (place for place, each in enumerate(relation.columns) if each.kind == "text"):
            for row, value in enumerate(values[column] for values in relation.rows):
                terms = frozenset(analyse_in(language, str(value or "")))
                sizes[row, column] = len(terms)
                for term in terms:
                    places[term].add((row, column))
        held = {term: frozenset(found) for term, found in places.items()}
        units = tuple(frozenset(_UNIT.findall(each)) for each in said)
        tables.append(Table(relation, headers, units, called, headed - called, held, sizes))
    return tuple(tables)


def _read_header(name: str, language: Language) -> frozenset[str]:
    """Return the terms of a header, without what stands in brackets or is as short as a unit: "elevation_m"."""
    terms = frozenset(analyse_in(language, re.split(r"[(\[]", name)[0]))
    return frozenset(term for term in terms if len(term) > 2) or terms


def split_name(name: str) -> str:
    """Return a name with spaces between the words that it joins."""
    return _JOINT.sub(" ", name)


def compose(question: Question, table: Table, called: frozenset[str]) -> Composed | None:
    """Return the query that the question asks of the table; None where a word of it is not accounted for, or where it
    may mean more than one thing. `called` are the terms of the document's name."""
    reading = _Reading(question, table, (called - table.headed) | table.called)
    return reading.compose() if reading.account() else None


class _Reading:
    """A question read as one about a table."""

    def __init__(self, question: Question, table: Table, called: frozenset[str]) -> None:
        self._language, self._words, self._said = question
        self._table, self._columns, self._rows = table, table.relation.columns, table.relation.rows
        self._called = called
        self._by: dict[int, str] = {}
        """What accounts for each word, by its place."""
        self._asked: dict[int, float] = {}
        """The columns that are named, with the share of their header that is said."""
        self._headed: dict[int, Sequence[int]] = {}
        """The columns that a word names, by its place."""
        self._values: dict[tuple[int, ...], list[tuple[int, Value]]] = {}
        """The cells that rows are named by, with their columns: those of one set of columns are alternatives."""
        self._conditions: list[tuple[int, str, str]] = []
        """Comparisons: their column, in SQL, and in the words of the question."""
        self._cover = 1.0
        """The least share of a cell that is said."""
        self._times = [c for c in range(len(self._columns)) if self._is_time(c)]
        self._figures = [c for c, each in enumerate(self._columns) if each.kind == "number" and c not in self._times]
        self._operators: list[_Operator] = []

    def account(self) -> bool:
        """Find what accounts for each word. Returns False where nothing does for one."""
        self._find_whole_names()
        for each in sorted(self._said, key=lambda said: said.first - said.last):  # "at least 33" is no least
            if each.name != "kind" and not any(n in self._by for n in range(each.first, each.last + 1)):
                self._operators.append(each)
                self._by |= dict.fromkeys(range(each.first, each.last + 1), "operator")
        if not all(map(self._compare, [o for o in self._operators if o.name in _SIGNS or o.name in _TIME_SIGNS])):
            return False
        for n, (first, second) in enumerate(pairwise(self._words)):
            if first.terms and second.terms and first.terms[0] + second.terms[0] in self._called:  # "starwars.csv"
                self._by |= {m: "name" for m in (n, n + 1) if m not in self._by}
        for find in (self._find_time, self._find_header, self._find_number, self._find_part):
            for n, word in enumerate(self._words):
                if n not in self._by and (word.terms or word.day):
                    find(n, word)
        units = frozenset[str]().union(*(self._table.units[column] for column in self._asked))
        self._by |= {n: "unit" for n, word in enumerate(self._words) if n not in self._by and fold(word.text) in units}
        kinds = self._list_places(of_kinds=True)
        return all(
            n in self._by or n in kinds or not word.is_typed or not (word.terms or word.day)
            for n, word in enumerate(self._words)
        )

    def _find_whole_names(self) -> None:
        """Account for words by the headers and the cells that they say whole, the longest first."""
        operators = self._list_places(of_kinds=False)
        for length in range(_LONGEST_NAME, 0, -1):
            for first in range(len(self._words) - length + 1):
                span = range(first, first + length)
                if not self._words[first].terms or not self._words[span[-1]].terms or any(n in self._by for n in span):
                    continue
                terms = frozenset(term for n in span for term in self._words[n].terms)
                joined = find_terms("".join(self._words[n].text for n in span), self._language)
                columns = [c for c, header in enumerate(self._table.headers) if header in (terms, joined)]
                if columns and (length > 1 or first not in operators):
                    self._name(span, columns, 1.0)
                elif length > 1 or first not in operators:
                    self._choose(span, [p for p in self._hold(terms) if self._table.sizes[p] == len(terms)], 1.0)

    def _list_places(self, *, of_kinds: bool) -> set[int]:
        """Return the places of words that say only of what kind the answer is, or of operators."""
        said = (each for each in self._said if (each.name == "kind") == of_kinds)
        return {n for each in said for n in range(each.first, each.last + 1)}

    def _hold(self, terms: Collection[str]) -> Collection[tuple[int, int]]:
        """Return the cells that hold all of these terms."""
        return frozenset.intersection(*(self._table.places.get(term, frozenset()) for term in terms))

    def _name(self, span: Sequence[int], columns: Sequence[int], share: float) -> None:
        for n in span:
            self._by[n], self._headed[n] = "header", columns
        flags = [cell for column in columns for cell in self._flag(column)]
        for column, value in flags:
            self._values[column,] = [(column, value)]
        if not flags:
            self._asked |= {column: max(share, self._asked.get(column, 0.0)) for column in columns}

    def _flag(self, column: int) -> list[tuple[int, Value]]:
        """Return what says yes in a column of yes and no."""
        values = {str(row[column]).lower(): row[column] for row in self._rows if row[column] is not None}
        return [(column, values[yes]) for yes, no in _FLAGS if values.keys() == {yes, no}]

    def _choose(self, span: Sequence[int], cells: Collection[tuple[int, int]], share: float) -> None:
        """Account for words by cells, where there are any: their rows are meant."""
        if cells:
            self._by |= dict.fromkeys(span, "cell")
            values = dict.fromkeys((column, self._rows[row][column]) for row, column in sorted(cells))
            self._values.setdefault(tuple(sorted({column for column, _ in values})), []).extend(values)
            self._cover = min(self._cover, share)

    def _compare(self, operator: _Operator) -> bool:
        """Turn "heavier than 6000 g" into a condition. Returns False where it is not clear on which column."""
        bounds: list[int] = []
        for n in range(operator.last + 1, len(self._words)):
            word = self._words[n]
            if (word.number is None and not word.day) or n in self._by:
                if bounds or (word.terms or n in self._by):
                    break
            else:
                bounds.append(n)
        bounds = bounds[: 2 if operator.name == "between" else 1]
        if operator.name == "between" and len(bounds) == 1 and bounds[0] + 2 < len(self._words):
            bounds.append(bounds[0] + 2)
        is_time = all(self._words[n].day or self._words[n].number in _YEARS for n in bounds)
        column = self._find_compared(operator, is_time=is_time) if bounds else None
        if column is None or any(not self._words[n].day and self._words[n].number is None for n in bounds):
            return False
        name, kind = f'"{self._columns[column].name}"', self._columns[column].kind
        sign = (_SIGNS | _TIME_SIGNS)[operator.name]
        conditions = []
        for n, compared in zip(bounds, (sign, "<="), strict=False):
            word = self._words[n]
            said = word.day or word.text
            is_cut = f"substr({name}, 1, {len(said)}) {compared} '{said}'"
            conditions.append(is_cut if kind == "date" else f"{name} {compared} {word.number:g}")
            self._by[n] = "operator"
        self._take_unit(bounds[-1], column)
        words = " ".join(word.text for word in self._words[operator.first : bounds[-1] + 1])
        self._conditions.append((column, " AND ".join(conditions), words))
        return True

    def _find_compared(self, operator: _Operator, *, is_time: bool) -> int | None:
        """Return the column that is compared: what the comparative measures, that of the times, or the one that the
        question names, the nearest before others."""
        if measured := self._best(_find_measured(operator.text.split()[0], self._language), self._figures):
            return measured[0] if len(measured) == 1 else None
        if is_time and self._times:
            return self._times[0] if len(self._times) == 1 else None
        return self._nearest(operator.first)

    def _nearest(self, place: int) -> int | None:
        """Return the column of figures that is named nearest to a place; None where two may be meant."""
        found: dict[int, set[int]] = defaultdict(set)
        for n, word in enumerate(self._words):
            if word.terms and self._by.get(n, "header") == "header" and not self._called.issuperset(word.terms):
                named = self._headed.get(n) or self._best(word.terms, self._figures)
                found[abs(n - place)] |= {column for column in named if column in self._figures}
        nearest = next((found[distance] for distance in sorted(found) if found[distance]), set[int]())
        return nearest.pop() if len(nearest) == 1 else None

    def _best(self, wanted: Collection[str], columns: Sequence[int]) -> list[int]:
        """Return those of the columns whose headers hold the greatest share of these terms; none where none does."""
        shares = {column: self._share(column, wanted) for column in columns}
        most = max(shares.values(), default=0.0)
        return [column for column, share in shares.items() if share and share == most]

    def _share(self, column: int, said: Collection[str]) -> float:
        """Return the share of a column's header that these terms say."""
        header = self._table.headers[column]
        return sum(any(_stands_for(part, term) for term in said) for part in header) / max(1, len(header))

    def _take_unit(self, n: int, column: int) -> None:
        """Account for the unit behind a number."""
        if n + 1 < len(self._words) and fold(self._words[n + 1].text) in self._table.units[column]:
            self._by.setdefault(n + 1, "unit")

    def _find_time(self, n: int, word: _Word) -> None:
        """Account for a date, a month or a year by the column of times."""
        said = word.day or (word.text if word.number in _YEARS and not self._best(word.terms, self._figures) else "")
        if said and len(self._times) == 1:
            [column] = self._times
            name = f'"{self._columns[column].name}"'
            is_date = self._columns[column].kind == "date"
            condition = f"substr({name}, 1, {len(said)}) = '{said}'" if is_date else f"{name} = {word.number}"
            self._conditions.append((column, condition, said))
            self._by[n] = "time"

    def _find_header(self, n: int, word: _Word) -> None:
        """Account for a word by a part of a header, what it measures, or what the table is called."""
        if word.number is not None:
            return
        every = range(len(self._columns))
        named = [column for column in every if self._share(column, word.terms)]
        said = {
            term for m, each in enumerate(self._words) if self._by.get(m, "header") == "header" for term in each.terms
        }
        columns = self._best(said, named) or self._best(_find_measured(word.text.lower(), self._language), every)
        if self._called.issuperset(word.terms):
            self._by[n] = "name"
        elif len(columns) == 1 or (columns and not self._hold(word.terms)):
            share = self._share(columns[0], said) if named else 1.0
            is_sole = columns == self._figures
            self._name([n], columns, max(share, _ENOUGH) if is_sole else share)

    def _find_number(self, n: int, word: _Word) -> None:
        """Account for a number by the header beside it ("4 guns"), or by the first column, where it numbers rows."""
        if word.number is None:
            return
        beside = [c for m in (n + 1, n - 1) for c in self._headed.get(m, ()) if self._columns[c].kind == "number"]
        columns = beside or ([0] if self._columns[0].kind == "number" and self._is_key(0) else [])
        if columns and any(row[columns[0]] == word.number for row in self._rows):
            self._by[n] = "cell"
            self._values.setdefault((columns[0],), []).append((columns[0], word.number))
            self._take_unit(n, columns[0])

    def _find_part(self, n: int, word: _Word) -> None:
        """Account for a word, with those behind it, by a part of cells."""
        if n in self._by:
            return
        for last in range(min(len(self._words), n + _LONGEST_NAME), n, -1):
            span = [m for m in range(n, last) if m not in self._by and self._words[m].terms]
            terms = frozenset(term for m in span for term in self._words[m].terms)
            if cells := self._hold(terms):
                most = max(len(terms) / self._table.sizes[p] for p in cells)
                if len({self._rows[row][c] for row, c in cells}) == 1 and all(self._is_kind(c) for _, c in cells):
                    most = max(most, _ENOUGH)  # no other kind is called so
                self._choose(span, [p for p in cells if len(terms) / self._table.sizes[p] == most], most)
                return

    def compose(self) -> Composed | None:
        """Return the query; None where it is not clear what is asked."""
        names = {each.name: each for each in self._operators}
        orders = [each for each in self._operators if each.name in _ORDERS]
        figures = names.keys() & {"sum", "avg"}
        if len(orders) + len(figures) > 1:
            return None
        if "count" in names and not orders and not figures:
            return self._count(names["count"])
        compared = any(column in self._figures for column, *_ in self._conditions)
        if orders or figures or compared:
            self._leave_out_totals()
        if orders or figures:
            return self._order(orders[0]) if orders else self._aggregate(figures.pop())
        # "Airports in Kiel" are all of them, and so are those "in the city of Kiel".
        is_named = {"header", "name"} & set(self._by.values()) and self._cover == 1
        is_asked = self._asked.keys() - self._list_naming() or "list" in names or compared or is_named
        has_code = any(by == "cell" and any(map(str.isdigit, self._words[n].text)) for n, by in self._by.items())
        if not (self._values or self._conditions) or not (is_asked or has_code):
            return None  # nothing is asked of the rows
        return self._make(f"SELECT * FROM {{table}}{self._where()}", "rows" if compared else "")

    def _leave_out_totals(self) -> None:
        """Leave out the rows that are called a total: they hold the others once more."""
        is_total = _read_phrases(self._language)[0]["sum"].fullmatch
        naming = [c for c, each in enumerate(self._columns) if each.kind == "text"][:1]
        for c, value in sorted({(c, str(row[c])) for c in naming for row in self._rows}):
            if is_total(value.strip(" :*")):
                self._conditions.append((c, f'"{self._columns[c].name}" IS NOT {_quote(value)}', f"≠ {value}"))

    def _order(self, operator: _Operator) -> Composed | None:
        """Return the query for the greatest, the least, the first or the last."""
        is_time = operator.name in ("latest", "earliest")
        function = _ORDERS[operator.name]
        after = [word.text.lower() for word in self._words[operator.last + 1 : operator.last + 2]]
        measured = [_find_measured(word, self._language) for word in [operator.text.split()[-1], *after]]
        found = self._best(measured[0], self._figures) or self._best(measured[-1], self._figures)
        if found and is_time:  # the oldest has the greatest age
            function = "min" if function == "max" else "max"
        found = found or [c for c in self._asked if c in (self._times if is_time else self._figures)]
        found = found or (self._times if is_time else [])
        column = found[0] if len(found) == 1 else self._nearest(operator.last)
        kinds = [c for c in self._asked if self._is_kind(c)]
        if operator.text in _words(self._language)["of_all"]:
            if column is None:
                return self._count_groups(kinds, "DESC" if function == "max" else "ASC")
            if kinds:
                return None  # "which station had the most rain" may mean all of its rows together
        if column is None:
            return None
        name = f'"{self._columns[column].name}"'
        extreme = f"SELECT {function}({name}) FROM {{table}}{self._where()}"
        sql = f"SELECT * FROM {{table}}{self._where()}{' AND' if self._where() else ' WHERE'} {name} = ({extreme})"
        return self._make(sql, operator.name, column)

    def _count_groups(self, kinds: Sequence[int], direction: str) -> Composed | None:
        """Return the query for "which continent has the most countries"."""
        counted = [c for c in self._asked if c not in kinds]
        if len(kinds) != 1 or not (all(map(self._is_key, counted)) if counted else "name" in self._by.values()):
            return None
        return self._compute("count", "*", kinds, kinds[0], f"2 {direction} LIMIT 1")

    def _aggregate(self, function: str) -> Composed | None:
        compared = {column for column, *_ in self._conditions}
        asked = [c for c in self._asked if c in self._figures and c not in compared]
        kinds = [c for c in self._asked if self._is_kind(c) and c not in self._list_naming()]
        if len(asked) != 1 or kinds != self._list_groups() or self._cover < _ENOUGH:
            return None
        if function == "sum" and not self._may_sum(asked[0]):
            return None
        return self._compute(function, f'"{self._columns[asked[0]].name}"', kinds, asked[0])

    def _count(self, operator: _Operator) -> Composed | None:
        asked = [c for c in self._asked if c not in self._list_naming()]
        last = max(each.last for each in self._said if each.name in ("count", "distinct"))
        counted = self._headed.get(last + 1, ())
        is_of_rows = not counted and any(each.name == "kind" and each.first == last + 1 for each in self._said)
        names_row = not counted and any(self._is_key(c) for columns in self._values for c in columns)
        if (names_row or any(c in self._figures for c in asked)) and not is_of_rows:  # "how many guns has the Eagle"
            return self._make(f"SELECT * FROM {{table}}{self._where()}", "") if self._where() else None
        groups = self._list_groups()
        is_clear = is_of_rows or not any(c not in counted and c not in groups for c in asked)
        is_said = self._asked or self._where() or (len(self._rows) > 1 and "name" in self._by.values())
        if self._cover < _ENOUGH or not is_clear or not is_said:
            return None
        self._leave_out_totals()
        kinds = [c for c in counted if self._is_kind(c) and c not in groups]
        what = f'DISTINCT "{self._columns[kinds[0]].name}"' if kinds else "*"
        return self._compute("distinct" if kinds else "count", what, groups, kinds[0] if kinds else None)

    def _list_groups(self) -> list[int]:
        """Return the kinds that stand behind "per" or the like."""
        places = (each.last + 1 for each in self._said if each.name == "group")
        return [c for n in places for c in self._headed.get(n, ()) if self._is_kind(c)]

    def _compute(
        self, what: str, of: str, groups: Sequence[int], column: int | None = None, order: str = "1"
    ) -> Composed:
        function = {"distinct": "count"}.get(what, what)
        names = ", ".join(f'"{self._columns[group].name}"' for group in groups)
        figure = f'{names}{", " if names else ""}{function}({of}) AS "{function}"'
        sql = f"SELECT {figure} FROM {{table}}{self._where()}"
        return self._make(f"{sql} GROUP BY {names} ORDER BY {order}" if names else sql, what, column, is_figure=True)

    def _make(self, sql: str, what: str, column: int | None = None, *, is_figure: bool = False) -> Composed:
        """Return the query with what it computes in words."""
        naming = self._list_naming()
        shares = [share for asked, share in self._asked.items() if asked not in naming]
        columns = dict.fromkeys([*naming, *self._asked, *([] if column is None else [column])])
        working = ""
        if what:
            words = _words(self._language)["working"]
            said = [f"{self._columns[c].name}: {text}" for c, _, text in self._conditions]
            said += [f"{self._columns[c].name} = {value}" for each in self._values.values() for c, value in each[:5]]
            filters = words["where"].format(filters="; ".join(said)) if said else words["no_filter"]
            name = words[what].format(column="" if column is None else self._columns[column].name)
            working = words["of"].format(what=name, count=f"{len(self._rows):,}", table="{name}", filters=filters)
        return Composed(sql, working, min([self._cover, *shares]), is_figure, tuple(columns))

    def _list_naming(self) -> list[int]:
        return [*(c for columns in self._values for c in columns), *(c for c, *_ in self._conditions)]

    def _where(self) -> str:
        conditions = [condition for _, condition, _ in self._conditions]
        for columns, cells in self._values.items():
            held = (", ".join(_quote(value) for at, value in cells if at == c) for c in columns)
            each = [f'"{self._columns[c].name}" IN ({values})' for c, values in zip(columns, held, strict=True)]
            conditions.append(f"({' OR '.join(each)})")
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _is_time(self, column: int) -> bool:
        values = [row[column] for row in self._rows if row[column] is not None]
        kind = self._columns[column].kind
        return kind == "date" or (kind == "number" and bool(values) and all(v in _YEARS for v in values))

    def _is_key(self, column: int) -> bool:
        return len({row[column] for row in self._rows}) == len(self._rows)

    def _is_kind(self, column: int) -> bool:
        return self._columns[column].kind == "text" and not self._is_key(column)

    def _may_sum(self, column: int) -> bool:
        """Return False for shares, years, whole numbers that count the rows, and levels, which hardly change from one
        time to the next."""
        numbers = [value for row in self._rows if isinstance(value := row[column], int | float)]
        counts_rows = len(set(numbers)) == max(numbers, default=0) > _MOST_WORDS
        codes = re.compile(_words(self._language)["codes"])
        may_be_years = all(value in _MAY_BE_YEARS for value in numbers)
        if (
            counts_rows
            or may_be_years
            or any(_SHARES.intersection(unit) or codes.fullmatch(unit) for unit in self._table.units[column])
        ):
            return False
        if not self._times or any(" = " in condition for c, condition, _ in self._conditions if c in self._times):
            return True
        totals: dict[str, float] = defaultdict(float)
        for row in self._rows:
            totals[str(row[self._times[0]])] += value if isinstance(value := row[column], int | float) else 0
        series = [totals[time] for time in sorted(totals)]
        changes = [abs(b - a) for a, b in pairwise(series)]
        return bool(changes) and median(changes) >= _LEVEL * fmean(map(abs, series))


def _words(language: Language) -> Mapping[str, Any]:
    tables: Mapping[str, Any] = read_file(language, "reading")["tables"]
    return tables


def _stands_for(part: str, term: str) -> bool:
    """Return True where a part of a header means a term: "exp" is "expectancy" cut short."""
    return part == term or (len(part) > 2 and term.startswith(part))


def _quote(value: Value) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
