"""Makes, without a language model, one query of a question about a table; or none.

Each word of the question has to be accounted for: by an operator ("highest", "how many", "more than"), a header, a
cell, or what the table is called. A word that is not may be a condition that the table knows nothing of, and then its
figures answer another question."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from statistics import fmean, median
from typing import Any, NamedTuple

from app.adapters.calculation.relations import Relation, find_number, read_headings, read_relations
from domain.text.days import find_days
from domain.text.languages import Language, fold, read_file
from domain.text.question import split_carried
from domain.text.terms import analyse_in

_LONGEST_NAME, _MOST_WORDS = 8, 60
"""Words of a header or cell that are looked for as a whole, and of a question that is read."""
_YEARS = range(1500, 2200)
_LEVEL, _ENOUGH = 0.1, 0.8
"""Least change from one time to the next, as a share of the mean, of what may be summed: rain and sales change more;
and the share of a name from which a figure may be of what it names."""
_EXTREMES = {"most": "max", "least": "min"}
_SIGNS = {"above": ">", "at_least": ">=", "below": "<", "at_most": "<="}
_SIGNS |= {"after": ">", "since": ">=", "before": "<", "until": "<="}
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=\d{2})|_")
_NUMBER, _DAY = re.compile(r"[$€£¥]?\d[\d.,]*[%‰]?"), re.compile(r"\d{4}-\d\d(?:-\d\d)?")


class Composed(NamedTuple):
    """A query over a table, which it calls `{table}`; what it computes in words, of a file called `{name}`, or nothing
    where it only looks rows up; the least share of a header or cell that the question says, 0-1; and the columns that
    name the rows, and are asked for."""

    sql: str
    working: str
    certainty: float
    columns: tuple[int, ...]


class _Word(NamedTuple):
    text: str
    terms: tuple[str, ...]
    number: float | None
    day: str


class _Operator(NamedTuple):
    name: str
    places: range
    text: str


class Question(NamedTuple):
    """A question, taken apart. `free` are the places of words that need not be accounted for: they say only of what
    kind the answer is, or were carried from what was asked before."""

    language: Language
    words: tuple[_Word, ...]
    operators: tuple[_Operator, ...]
    free: frozenset[int]


class Table(NamedTuple):
    """A relation with the terms of its headers, of what it is called, and of the headings of other sections; and the
    row and column of each term in its cells with text, with how many terms each of these has."""

    relation: Relation
    headers: tuple[frozenset[str], ...]
    called: frozenset[str]
    headed: frozenset[str]
    places: Mapping[str, Collection[tuple[int, int]]]
    sizes: Mapping[tuple[int, int], int]


def take_apart(question: str, language: Language) -> Question:
    """Return the question's words and operators."""
    typed, words = (list(_split(part, language))[:_MOST_WORDS] for part in (split_carried(question)[0], question))
    text = " ".join(word.text.lower() for word in words)
    found = [
        _Operator(name, range(text.count(" ", 0, match.start()), text.count(" ", 0, match.end()) + 1), match[0])
        for name, pattern in _read_phrases(language).items()
        for match in pattern.finditer(text)
    ]
    said = [each for each in found if each.name != "kind"]
    # What was typed last changes what was asked before.
    operators = [each for each in said if each.places[0] < len(typed)] or said
    free = {n for each in found if each.name == "kind" for n in each.places}.union(range(len(typed), len(words)))
    return Question(language, tuple(words), tuple(operators), frozenset(free))


def _split(text: str, language: Language) -> Iterator[_Word]:
    for written, day in find_days(text):
        text = text.replace(written, day)
    for word in filter(None, (part.strip("\"'`“”‘’„(),.?!:;") for part in text.split())):
        day = word if _DAY.fullmatch(word) else ""
        number = find_number(word) if _NUMBER.fullmatch(word) else None
        yield _Word(word, () if day else tuple(dict.fromkeys(analyse_in(language, word))), number, day)


@cache
def _read_phrases(language: Language) -> Mapping[str, re.Pattern[str]]:
    tables = _words(language)
    named = {**tables["aggregates"], **tables["comparisons"], "kind": tables["kinds"], "beyond": tables["beyond"]}
    return {name: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for name, words in named.items()}


@lru_cache(maxsize=256)
def _find_measured(word: str, language: Language) -> frozenset[str]:
    """Return the terms of what a word means in headers: a weight where "heaviest" is said, a price for "cost"."""
    terms, measures = frozenset(analyse_in(language, word)), _words(language)["measures"]
    said = (re.sub(r"er$", "est", word) if language == "en" else word, f"most {word}")
    groups = ((frozenset(analyse_in(language, words)), re.compile(pattern).fullmatch) for words, pattern in measures)
    return terms.union(*(group for group, means in groups if any(map(means, said)) or not group.isdisjoint(terms)))


@lru_cache(maxsize=4)
def read_tables(text: str, language: Language) -> tuple[Table, ...]:
    """Return the tables of a text, in the order of `read_relations`."""
    tables = []
    headed = frozenset(analyse_in(language, split_name(" ".join(each for _, each in read_headings(text)[1:]))))
    for relation in read_relations(text):
        names = (split_name(re.split(r"[(\[]", column.name)[0]) for column in relation.columns)
        headers = tuple(frozenset(analyse_in(language, name)) for name in names)
        places: dict[str, set[tuple[int, int]]] = defaultdict(set)
        sizes: dict[tuple[int, int], int] = {}
        for column in (place for place, each in enumerate(relation.columns) if each.kind == "text"):
            for row, values in enumerate(relation.rows):
                terms = frozenset(analyse_in(language, str(values[column] or "")))
                sizes[row, column] = len(terms)
                for term in terms:
                    places[term].add((row, column))
        called = frozenset(analyse_in(language, split_name(relation.caption)))
        tables.append(Table(relation, headers, called, headed - called, places, sizes))
    return tuple(tables)


def split_name(name: str) -> str:
    """Return a name with spaces between the words that it joins, such as "LongJump"."""
    return _JOINT.sub(" ", name)


class Reading:
    """A question read as one about a table. `called` are the terms of the document's name."""

    def __init__(self, question: Question, table: Table, called: frozenset[str]) -> None:
        self._language, self._words, self._said, self._free = question
        self._table, self._columns, self._rows = table, table.relation.columns, table.relation.rows
        self._called = (called - table.headed) | table.called
        self._by: dict[int, str] = {}  # what accounts for each word, by its place
        self._asked: dict[int, float] = {}  # the columns that are named, with the share of their header that is said
        self._cover = 1.0  # the least share of a cell that is said
        self._limits: dict[tuple[object, ...], list[tuple[int, str, str]]] = defaultdict(list)
        """Conditions on rows: their column, in SQL and in words. Those in one list are alternatives."""
        self._times = [c for c in range(len(self._columns)) if self._is_time(c)]
        numbers = [c for c, each in enumerate(self._columns) if each.kind == "number" and c not in self._times]
        self._figures = [c for c in numbers if any(row[c] not in (0, 1, None) for row in self._rows)]  # not yes and no

    def compose(self) -> Composed | None:
        """Return the query that the question asks of the table; None where a word of it is not accounted for, or where
        it may mean more than one thing."""
        self._find_names(is_whole=True)
        said = list[_Operator]()
        for each in sorted(self._said, key=lambda said: -len(said.places)):  # "at least 33" is no least
            if self._by.keys().isdisjoint(each.places):
                said.append(each)
                self._by |= dict.fromkeys([*each.places, each.places[-1] + (each.name in _SIGNS)], "operator")
        compared = [each for each in said if each.name in _SIGNS]
        operators = {each.name: each for each in said if each.name not in _SIGNS}
        for find in (self._find_number, self._find_header):
            for n, word in enumerate(self._words):
                if n not in self._by and (word.terms or word.day):
                    find(n, word)
        self._find_names(is_whole=False)
        left = [word for n, word in enumerate(self._words) if n not in self._by and n not in self._free]
        if any(word.terms or word.day for word in left) or not all(map(self._compare, compared)):
            return None
        is_compared = bool(compared)
        if operators or is_compared:
            self._leave_out_totals()
        for operator in operators.values():
            compute = self._count if operator.name == "count" else self._aggregate
            return compute(operator) if len(operators) == 1 and operator.name != "beyond" else None
        # "Airports in Kiel" are all of them, and so are those "in the city of Kiel".
        is_named = {"header", "name"} & set(self._by.values()) and self._cover == 1
        is_asked = self._asked.keys() - self._list_limited() or is_compared or is_named
        return self._make("*", "rows" if is_compared else "") if self._limits and is_asked else None

    def _find_names(self, *, is_whole: bool) -> None:
        """Account for words by headers and cells that they say whole, or by parts of cells, the longest first."""
        for length in range(_LONGEST_NAME, 0, -1):
            for first in range(len(self._words) - length + 1):
                span = range(first, first + length)
                terms = frozenset(term for n in span for term in self._words[n].terms)
                is_bare = not self._words[first].terms or not self._words[span[-1]].terms
                if is_bare or not self._by.keys().isdisjoint(span):
                    continue
                if is_whole and (columns := [c for c, each in enumerate(self._table.headers) if each == terms]):
                    self._name(span, columns, 1.0)
                    continue
                cells = frozenset.intersection(*(frozenset(self._table.places.get(term, ())) for term in terms))
                shares = {place: len(terms) / self._table.sizes[place] for place in cells}
                most = 1.0 if is_whole else max(shares.values(), default=0.0)
                held: dict[int, dict[str, None]] = defaultdict(dict)
                for row, column in sorted(place for place, share in shares.items() if share == most):
                    held[column][str(self._rows[row][column])] = None
                for column, values in held.items():
                    sql = f"{self._quote(column)} IN ({', '.join(map(_quote, values))})"
                    self._limits[tuple(held)].append((column, sql, f"= {', '.join(list(values)[:5])}"))
                    self._by |= dict.fromkeys(span, "cell")
                    self._cover = min(self._cover, most)

    def _name(self, span: Sequence[int], columns: Sequence[int], share: float) -> None:
        self._by |= dict.fromkeys(span, "header")
        self._asked |= {column: max(share, self._asked.get(column, 0.0)) for column in columns}

    def _find_number(self, n: int, word: _Word) -> None:
        """Account for a date or a number by the column of times, or by the first, where it numbers the rows."""
        is_time = word.day or (word.number in _YEARS and not self._best(word.terms, self._figures))
        if is_time and len(self._times) == 1:
            self._limit(n, self._times[0], "=")
        elif word.number is not None and self._is_key(0) and any(row[0] == word.number for row in self._rows):
            self._limit(n, 0, "=")

    def _limit(self, n: int, column: int, sign: str) -> None:
        word, name = self._words[n], self._quote(column)
        value = word.day or word.text
        is_date = self._columns[column].kind == "date"
        sql = f"substr({name}, 1, {len(value)}) {sign} '{value}'" if is_date else f"{name} {sign} {word.number}"
        self._limits[column, sign].append((column, sql, f"{sign} {value}"))
        self._by[n] = "cell"

    def _compare(self, operator: _Operator) -> bool:
        """Turn "heavier than 6000" into a condition. Returns False where it is not clear on which column."""
        n = operator.places[-1] + 1
        if n >= len(self._words) or (self._words[n].number is None and not self._words[n].day):
            return False
        is_time = self._times and (self._words[n].day or self._words[n].number in _YEARS)
        measured = self._best(_find_measured(operator.text.split()[0], self._language), self._figures)
        columns = measured or (self._times if is_time else self._list_figures())
        if len(columns) == 1:
            self._asked.setdefault(columns[0], 1.0)
            self._limit(n, columns[0], _SIGNS[operator.name])
        return len(columns) == 1

    def _find_header(self, n: int, word: _Word) -> None:
        """Account for a word by a part of a header, what it measures, or what the table is called."""
        every = range(len(self._columns))
        named = [column for column in every if self._share(column, word.terms)]
        beside = (each for m, each in enumerate(self._words) if self._by.get(m, "header") == "header")
        said = {term for each in beside for term in each.terms}
        columns = self._best(said, named) or self._best(_find_measured(word.text.lower(), self._language), every)
        if self._called.issuperset(word.terms):
            self._by[n] = "name"
        elif word.number is None and len(columns) == 1:
            share = self._share(columns[0], said) if named else 1.0
            self._name([n], columns, max(share, _ENOUGH) if columns == self._figures else share)

    def _best(self, wanted: Collection[str], columns: Sequence[int]) -> list[int]:
        """Return those of the columns whose headers hold the greatest share of these terms; none where none does."""
        shares = {column: self._share(column, wanted) for column in columns}
        most = max(shares.values(), default=0.0)
        return [column for column, share in shares.items() if share and share == most]

    def _share(self, column: int, said: Collection[str]) -> float:
        """Return the share of a column's header that these terms say: "exp" is "expectancy" cut short."""
        header = self._table.headers[column]
        held = (any(part == term or (len(part) > 2 and term.startswith(part)) for term in said) for part in header)
        return sum(held) / max(1, len(header))

    def _list_figures(self) -> list[int]:
        """Return the columns of figures that are asked for, and not compared."""
        return [c for c in self._asked if c in self._figures and c not in self._list_limited()]

    def _list_limited(self) -> list[int]:
        return [column for alternatives in self._limits.values() for column, *_ in alternatives]

    def _leave_out_totals(self) -> None:
        """Leave out the rows that are called a total: they hold the others once more."""
        is_total = _read_phrases(self._language)["sum"].fullmatch
        for c in [c for c, each in enumerate(self._columns) if each.kind == "text"][:1]:
            for value in sorted({str(row[c]) for row in self._rows if is_total(str(row[c]).strip(" :*"))}):
                self._limits[c, value].append((c, f"{self._quote(c)} IS NOT {_quote(value)}", f"≠ {value}"))

    def _aggregate(self, operator: _Operator) -> Composed | None:
        """Return the query for the greatest, the least, the sum or the mean."""
        measured = _find_measured(operator.text.split()[-1], self._language)
        found = self._best(measured, self._figures) or self._list_figures()
        kinds = [c for c, each in enumerate(self._columns) if each.kind == "text" and not self._is_key(c)]
        is_of_kinds = not (self._asked.keys() - self._list_limited()).isdisjoint(kinds)
        # "Which station had the most rain" may mean all of its rows together.
        is_of_one = operator.name in _EXTREMES and operator.text not in _words(self._language)["of_all"]
        if len(found) != 1 or (is_of_kinds and not is_of_one):
            return None
        if operator.name in _EXTREMES:
            extreme = f"SELECT {_EXTREMES[operator.name]}({self._quote(found[0])}) FROM {{table}}{self._where()}"
            self._limits["extreme",].append((found[0], f"{self._quote(found[0])} = ({extreme})", ""))
            return self._make("*", operator.name, found[0])
        if self._cover < _ENOUGH or (operator.name == "sum" and not self._may_sum(found[0])):
            return None
        return self._make(f'{operator.name}({self._quote(found[0])}) AS "{operator.name}"', operator.name, found[0])

    def _count(self, operator: _Operator) -> Composed | None:
        """Return the query for how many rows there are, or for the row that says how many of something."""
        asked = self._asked.keys() - self._list_limited()
        n = operator.places[-1] + 1
        is_of_kind = n in self._free and n not in self._by
        counted = self._best(self._words[n].terms, [*asked]) if self._by.get(n) == "header" else []
        is_of_rows = is_of_kind or any(c not in self._figures and self._is_key(c) for c in counted)
        names_row = any(map(self._is_key, self._list_limited()))
        if (names_row or asked & set(self._figures)) and not is_of_rows:  # "how many guns has the Eagle"
            return self._make("*", "") if self._limits else None
        is_said = self._asked or self._limits or (len(self._rows) > 1 and "name" in self._by.values())
        # Where a name repeats, its rows are not as many as there are of it. Of two columns, only one is counted.
        is_clear = is_of_kind or (len(asked) < 2 and all(map(self._is_key, asked)))
        return self._make('count(*) AS "count"', "count") if self._cover >= _ENOUGH and is_said and is_clear else None

    def _make(self, selected: str, what: str, column: int | None = None) -> Composed:
        """Return the query with what it computes in words."""
        limited = self._list_limited()
        shares = [share for asked, share in self._asked.items() if asked not in limited or asked == column]
        working = ""
        if what:
            words = _words(self._language)["working"]
            said = (each for alternatives in self._limits.values() for each in alternatives[:5])
            told = "; ".join(f"{self._columns[c].name} {text}" for c, _, text in said if text)
            filters = words["where"].format(filters=told) if told else words["no_filter"]
            name = words[what].format(column="" if column is None else self._columns[column].name)
            working = words["of"].format(what=name, count=f"{len(self._rows):,}", table="{name}", filters=filters)
        sql = f"SELECT {selected} FROM {{table}}{self._where()}"
        return Composed(sql, working, min([self._cover, *shares]), tuple(dict.fromkeys([*limited, *self._asked])))

    def _where(self) -> str:
        limits = (" OR ".join(sql for _, sql, _ in alternatives) for alternatives in self._limits.values())
        return f" WHERE ({') AND ('.join(limits)})" if self._limits else ""

    def _quote(self, column: int) -> str:
        return f'"{self._columns[column].name}"'

    def _is_time(self, column: int) -> bool:
        values = [row[column] for row in self._rows if row[column] is not None]
        kind = self._columns[column].kind
        return kind == "date" or (kind == "number" and bool(values) and all(v in _YEARS for v in values))

    def _is_key(self, column: int) -> bool:
        return len({row[column] for row in self._rows}) == len(self._rows)

    def _may_sum(self, column: int) -> bool:
        """Return False for shares, codes, and levels, which hardly change from one time to the next."""
        named = fold(f"{split_name(self._columns[column].name)} {self._columns[column].unit}")
        is_code = re.search(rf"[%‰]|\b(?:{_words(self._language)['codes']})\b", named)
        if is_code or not self._times:
            return not is_code
        totals: dict[str, float] = defaultdict(float)
        for row in self._rows:
            totals[str(row[self._times[0]])] += value if isinstance(value := row[column], int | float) else 0
        series = [totals[time] for time in sorted(totals)]
        changes = [abs(b - a) for a, b in pairwise(series)]
        return bool(changes) and median(changes) >= _LEVEL * fmean(map(abs, series))


def _words(language: Language) -> Any:
    return read_file(language, "reading")["tables"]


def _quote(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
