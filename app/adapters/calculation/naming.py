"""Finds, without a language model, the rows of tables that a question names, and what it asks of them.

A row is named by a cell whose words stand in the question, a column by its header. The share of the question that a
table so explains, and the share of the cell that the question says, tell how surely it is meant.
"""

import math
import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from time import perf_counter

from app.adapters.calculation.relations import (
    Relation,
    find_days,
    is_record,
    read_cells,
    read_headings,
    read_relations,
)
from app.adapters.calculation.results import LookedUp
from domain.errors import CalculationError
from domain.ports.calculation import Value
from domain.text.blocks import open_section
from domain.text.languages import Language, detect_language, read_file
from domain.text.question import split_carried
from domain.text.tables import join_cells, write_rule
from domain.text.terms import analyse_in

_MOST_ROWS, _MOST_CELLS = 8, 8
_LONGEST_ROW = 350
"""Size of what is shown. Of a wider row only the cells are shown that name it, and those of the columns asked for."""
_FULL, _PARTLY = 0.99, 0.5
"""Share of its words that have to stand in the question: of one of many cells; of a sole cell, and of a header."""
_YEARS = range(1500, 2200)
_CODE = re.compile(r"_|[a-z][A-Z]|[A-Z]{2}")
_JOINT = re.compile(r"(?<=[a-z])(?=[A-Z])")
"""Where the next word of a name such as "LongJump" begins."""
_ADJECTIVE = re.compile(r"\b(?:(how|most|least) ([a-z]+)|([a-z]+)est)\b")
ADJECTIVES = Path(__file__).parents[1] / "data/adjectives.txt"


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the question by its terms: the whole first, then the parts of a compound."""

    terms: tuple[str, ...]
    is_name: bool
    """True for a code, figure, date or name: a table that lacks it is about something else."""
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class _Question:
    words: tuple[_Word, ...]
    aggregates: Mapping[str, frozenset[str]]
    """What is asked of several rows, by the names in table `tables.aggregates` of the language's `reading.toml`, with
    the terms that say so."""
    terms: frozenset[str]
    """Those of all words, also of the ones that name an aggregate."""
    measured: frozenset[str]
    """What a superlative measures: a temperature where "hottest" is said."""
    alike: Sequence[frozenset[str]]
    """Words for what is measured, which stand for each other: the header may be "price" where "cost" is said."""
    typed: frozenset[str]
    """Of a question with words of its conversation, the terms of those that were typed."""
    beside: Mapping[_Word, Sequence[frozenset[str]]]
    """The terms of the words before each word, and of those behind it."""
    lists: bool
    """True where several things are asked for: "which cars are red"."""


@dataclass(slots=True)
class _Table:
    """A relation with the terms of its headers, and the rows and columns of each term of its cells."""

    relation: Relation
    headers: list[frozenset[str]]
    caption: frozenset[str]
    path: frozenset[str]
    """The terms of the headings above it, but the text's first, which is its title."""
    headed: frozenset[str]
    """Those of all other headings of the text."""
    places: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    sizes: dict[tuple[int, int], int] = field(default_factory=dict)


def look_up(question: str, names: Sequence[str], texts: Sequence[str], seconds: float = math.inf) -> LookedUp | None:
    """Return what tables of the texts hold for the question: of the one that is most surely meant, of equals the first.
    `names` are those of the documents. Raises `CalculationError` after `seconds`."""
    deadline = perf_counter() + seconds
    language = detect_language(question) or "en"
    asked = _take_apart(question, language)
    best: LookedUp | None = None
    for number, (name, text) in enumerate(zip(names, texts, strict=True)):
        called = _analyse_name(name, language)
        # Nobody knows what the figures of a table without a header are.
        for table in filter(lambda each: any(each.headers), _read_tables(text, language)):
            if perf_counter() > deadline:
                raise CalculationError("There are too many tables for a question of this length.")
            found = _Reading(table, asked, called).answer(number, text)
            if found and (best is None or found.certainty > best.certainty):
                best = found
    return best


def _take_apart(question: str, language: Language) -> _Question:
    data = _read_phrases(language)
    words = []
    rest = question
    for written, day in find_days(question):
        words.append(_Word((day,), is_name=True))
        rest = rest.replace(written, " ")
    terms = frozenset(analyse_in(language, rest))
    measures = [(frozenset(analyse_in(language, measured)), pattern) for measured, pattern in data.measures]
    groups = [each for each, _ in measures]
    measured = frozenset[str]().union(*(each for each, pattern in measures if pattern.search(rest)))
    alike = []
    for how, adjective, nouns in _find_adjectives(rest) if language == "en" else ():
        nouns = nouns.union(*(each for each in groups if each & nouns))
        if how == "how":
            alike.append(nouns.union(analyse_in(language, adjective)))
        else:
            measured |= nouns
    aggregates = {
        name: frozenset(analyse_in(language, " ".join(found)))
        for name, pattern in data.aggregates.items()
        if (found := pattern.findall(rest))
    }
    for pattern in (*(said for _, said in data.measures), *data.aggregates.values(), data.kinds):
        rest = pattern.sub(" ", rest)
    for number, token in enumerate(rest.split()):
        own = analyse_in(language, token)
        has_digit = any(map(str.isdigit, token))
        bare = token.strip("\"'`“”(),.?!:;")
        # In German all nouns begin like names.
        is_capital = bare[:1].isupper() and number > 0 and language != "de"
        is_code = has_digit or _CODE.search(bare) is not None
        parts = [tuple(own)] if has_digit and own else [(term,) for term in own]
        words += [_Word(part, is_code or is_capital, is_code) for part in parts]
    said = frozenset(term for word in words for term in word.terms)
    alike += [each for each in groups if each & said]
    asked, carried = split_carried(question)
    typed = said.intersection(analyse_in(language, asked)) if carried else frozenset[str]()
    beside: dict[_Word, list[frozenset[str]]] = {word: [frozenset(), frozenset()] for word in words}
    for before, after in pairwise(words):
        beside[after][0] |= frozenset(before.terms)
        beside[before][1] |= frozenset(after.terms)
    lists = re.search(read_file(language, "reading")["questions"]["list"], question, re.IGNORECASE) is not None
    return _Question(tuple(beside), aggregates, terms, measured, alike, typed, beside, lists)


@dataclass(frozen=True, slots=True)
class _Phrases:
    aggregates: Mapping[str, re.Pattern[str]]
    measures: Sequence[tuple[str, re.Pattern[str]]]
    kinds: re.Pattern[str]


@cache
def _read_phrases(language: Language) -> _Phrases:
    data = read_file(language, "reading")["tables"]
    return _Phrases(
        {name: _compile(words) for name, words in data["aggregates"].items()},
        [(measured, _compile(words)) for measured, words in data["measures"]],
        _compile(data["kinds"]),
    )


def _compile(words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{words})\b", re.IGNORECASE)


def _analyse_name(name: str, language: Language) -> frozenset[str]:
    """Return the terms of a name, those of words that it joins among them: "LongJump" has "long"."""
    return frozenset(analyse_in(language, f"{name} {_JOINT.sub(' ', name)}"))


def _find_adjectives(question: str) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Yield how the adjectives of an English question are said, they themselves, and the nouns that measure them."""
    measures = _read_adjectives()
    for how, adjective, stem in _ADJECTIVE.findall(question.lower()):
        bases = {adjective, stem, f"{stem}e", stem[:-1], f"{stem[:-1]}y"} & measures.keys()
        yield from ((how, base, frozenset(analyse_in("en", measures[base]))) for base in bases)


@cache
def _read_adjectives() -> Mapping[str, str]:
    return dict(line.split(": ") for line in ADJECTIVES.read_text(encoding="utf-8").splitlines())


@lru_cache(maxsize=4)
def _read_tables(text: str, language: Language) -> tuple[_Table, ...]:
    tables = []
    headings = deque((place, each, _analyse_name(each, language)) for place, each in read_headings(text)[1:])
    headed = frozenset[str]().union(*(terms for _, _, terms in headings))
    path: list[tuple[int, frozenset[str]]] = []
    for relation in read_relations(text):
        while headings and headings[0][0] <= relation.spans[0][0]:
            _, heading, terms = headings.popleft()
            path = open_section(path, heading, terms)
        headers = [frozenset(analyse_in(language, _JOINT.sub(" ", column.name))) for column in relation.columns]
        above = frozenset[str]().union(*(terms for _, terms in path))
        table = _Table(relation, headers, _analyse_name(relation.caption, language), above, headed)
        for row, values in enumerate(relation.rows):
            for column, value in enumerate(values):
                if value is not None:
                    named, found = _read_cell(value, relation.columns[column].kind, language)
                    table.sizes[row, column] = len(named)
                    for term in found:
                        table.places[term].append((row, column))
        tables.append(table)
    return tuple(tables)


def _read_cell(value: Value, kind: str, language: Language) -> tuple[Collection[str], Collection[str]]:
    """Return the terms of a cell, and all that it is found by."""
    text = str(value)
    if kind == "date":
        return text[:10].split(), dict.fromkeys((text[:10], text[:7], text[:4]))
    if kind == "number":
        number = [str(int(value)) if isinstance(value, float) and value.is_integer() else text]
        return number, number
    terms = dict.fromkeys(analyse_in(language, text))
    return terms, terms


class _Reading:
    """A question read as one about a table."""

    def __init__(self, table: _Table, question: _Question, called: frozenset[str]) -> None:
        self._table, self._question, self._relation = table, question, table.relation
        # What another section is about is not said in this table, though the document's name has it.
        self._context = (called - (called & table.headed - table.path)) | table.caption
        self._about = self._context.union(*table.headers)
        asked = frozenset[str]().union(*(header for header in table.headers if header & question.terms))
        # "Life expectancy" is also said of a column "life_exp".
        short = {(each, term) for each in asked for term in question.terms if len(each) > 2 and term.startswith(each)}
        self._terms = question.terms | {each for each, _ in short}
        self._about |= {term for _, term in short}
        self._said: dict[int, dict[int, list[_Word]]] = {}
        """The words of the question that stand in cells, by row and column."""
        self._rows = self._choose_rows()
        self._named = self._find_naming(self._rows[0]) if self._rows else {}
        """The columns by whose cells the rows are named, and how fully."""
        if len(self._rows) == 1 and not self._named and not question.aggregates:
            self._named = self._find_naming(self._rows[0], _PARTLY)
        self._rows = self._add_rows() if self._named else []
        headed = frozenset[str]().union(*table.headers)
        self._alike = frozenset[str]().union(*(each for each in question.alike if not each & self._terms & headed))
        wanted = self._terms | self._alike | question.measured
        shares = {c: len(h & wanted) / len(h) for c, h in enumerate(table.headers) if h}
        self._columns = {column: share for column, share in shares.items() if share >= _PARTLY}
        """The columns that the question names by their header, and how fully."""
        # Rows that are named one by one are shown, and "total limit" may be the name of a column.
        named = [table.headers[column] for column, share in self._columns.items() if share >= _FULL]
        names = {
            tuple(word for column in self._named for word in self._said[row].get(column, ())) for row in self._rows
        }
        is_each = len(self._rows) == 1 or len(names) > 1
        self._aggregates = [
            name
            for name, said in question.aggregates.items()
            if not self._rows or not (is_each or (said and any(said < header for header in named)))
        ]

    def _choose_rows(self) -> list[int]:
        """Return the rows whose cells the question says most fully, with the rarest words."""
        rarity: dict[_Word, float] = {}
        needed = set(range(len(self._relation.rows)))
        is_measured = not self._question.aggregates.keys().isdisjoint(("sum", "avg", "most", "least"))
        measures = [header for column, header in enumerate(self._table.headers) if self._is_measure(column)]
        for word in self._question.words:
            whole, *parts = (self._table.places.get(term, []) for term in word.terms)
            found = whole or (set(parts[0]).intersection(*parts[1:]) if parts else ())
            held, is_needed = self._bind(word, found) if found else ((), False)
            if is_needed:
                needed &= {row for row, _ in held}
            if is_measured and frozenset(word.terms) in measures:
                held = ()
            for row, column in held:
                self._said.setdefault(row, {}).setdefault(column, []).append(word)
            rarity[word] = math.log(1 + len(self._relation.rows) / max(1, len({row for row, _ in held})))
        # A figure is of rows that are surely meant.
        least = _FULL if self._question.aggregates else 0.0
        scores: dict[int, float] = {}
        for row in needed & self._said.keys():
            shares: dict[_Word, float] = {}  # A figure that stands in two cells names a row once.
            for column, words in self._said[row].items():
                if (share := self._cover(row, column)) >= least:
                    shares |= {word: max(share, shares.get(word, 0.0)) for word in words}
            scores[row] = sum(share * rarity[word] for word, share in shares.items())
        most = max(scores.values(), default=0.0)
        rows = sorted(row for row, score in scores.items() if score > most - 1e-9)
        naming = [self._find_naming(row).keys() for row in rows]
        shared = set(range(len(self._relation.columns))).intersection(*naming)
        # A figure measures something else in each column.
        are_figures = all(self._is_measure(column) for columns in naming for column in columns)
        return [] if are_figures and all(naming) and not shared else rows

    def _bind(self, word: _Word, held: Collection[tuple[int, int]]) -> tuple[Collection[tuple[int, int]], bool]:
        """Return the places of a word in the columns whose name stands beside it, and whether only these rows can be
        meant: "difficulty 7" is of no length 7."""
        headers = self._table.headers
        asked = {column for column, header in enumerate(headers) if header and header <= self._terms}
        is_figure = word.terms[0].replace(".", "").isdecimal()
        for beside in self._question.beside[word]:
            columns = {column for column, header in enumerate(headers) if not beside.isdisjoint(header)}
            bound = [place for place in held if place[1] in columns]
            if is_figure and any(map(self._is_measure, columns & asked)):
                # "Population 2010" is of a year.
                return (bound, True) if bound else ([p for p in held if not self._is_measure(p[1])], False)
            # "The departure and arrival of Kiel" are two columns.
            others = {column for _, column in held} - columns
            if any(self._table.sizes[place] == 1 for place in bound) and not others & asked:
                return bound, False
        return held, False

    def _is_measure(self, column: int) -> bool:
        return self._relation.columns[column].kind == "number" and not self._is_time(column)

    def _is_key(self, column: int) -> bool:
        rows = self._relation.rows
        return len({row[column] for row in rows}) == len(rows)

    def _cover(self, row: int, column: int) -> float:
        """Return the share of a cell that the question says."""
        count = sum(len(word.terms) for word in self._said[row][column])
        return min(1.0, count / max(1, self._table.sizes[row, column]))

    def _find_naming(self, row: int, least: float = _FULL) -> dict[int, float]:
        """Return the columns whose cells name the row, with the share of each that the question says."""
        return {column: share for column in self._said[row] if (share := self._cover(row, column)) >= least}

    def _add_rows(self) -> list[int]:
        """Return the rows with those that other words name in one of the same columns: "plan A and plan B"."""
        first = self._said[self._rows[0]]
        added = set(self._rows)
        for column in self._find_naming(self._rows[0]):
            others = {c: first[c] for c in self._named if c != column}
            named = {
                row: set(said[column])
                for row, said in self._said.items()
                if column in said
                and self._cover(row, column) >= _FULL
                and all(said.get(c) == words for c, words in others.items())
            }
            if len(named) <= _MOST_ROWS:  # and none by a part of the words of another: "plan" beside "plan A"
                added.update(row for row, words in named.items() if not any(words < other for other in named.values()))
        return sorted(added)

    def answer(self, document: int, text: str) -> LookedUp | None:
        """Return what the table holds for the question; None where it does not tell which rows or columns are meant."""
        sure = self._judge()
        if sure == 0:
            return None
        if self._rows and not self._aggregates:
            return self._show(document, text, self._rows, sure) if len(self._rows) <= _MOST_ROWS else None
        rows = self._rows or range(len(self._relation.rows))
        for aggregate in self._aggregates:
            if aggregate == "count":
                if self._counts(is_whole=not self._rows):
                    return self._state(document, rows, "count", len(rows), sure)
                continue
            column = self._find_time() if aggregate in ("latest", "earliest") else self._find_measure()
            values = {} if column is None else {row: self._relation.rows[row][column] for row in rows}
            known = {row: value for row, value in values.items() if value is not None}
            if column is None or not known:
                continue
            if aggregate in ("sum", "avg"):
                numbers = [value for value in known.values() if not isinstance(value, str)]
                figure = math.fsum(numbers) if aggregate == "sum" else fmean(numbers)
                name = f"{aggregate}({self._relation.columns[column].name})"
                return self._state(document, list(known), name, figure, sure)
            # They are all numbers, or all dates.
            best = (max if aggregate in ("most", "latest") else min)(known.values(), key=_in_order)
            extreme = [row for row, value in known.items() if value == best]
            if len(extreme) <= _MOST_ROWS:
                return self._show(document, text, extreme, sure, column)
        return None

    def _judge(self) -> float:
        """Return how surely the question is about the table, 0-1."""
        in_rows = {word for row in self._rows for said in self._said[row].values() for word in said}
        about, words = self._about, self._question.words
        # "Star wars" is also said of the file "starwars.csv".
        joined = {word for pair in pairwise(words) if pair[0].terms[0] + pair[1].terms[0] in about for word in pair}
        in_table = in_rows | joined
        explained = [w for w in words if w in in_table or about.issuperset(w.terms) or w.terms[0] in about]
        left = set(words).difference(explained)
        if self._alike & about and all(self._alike.issuperset(word.terms) for word in left):
            explained, left = [*explained, *left], set()
        known = frozenset(term for word in explained for term in word.terms)
        if (
            not known
            or any(word.is_name for word in left)
            or (self._question.typed and not self._question.typed & known)
        ):
            return 0.0
        # A figure that measures a row is no name of it.
        has_code = any(word.is_code for word in in_rows) and not all(
            self._is_measure(column) and not self._is_key(column) for column in self._named
        )
        is_vague = not has_code and (left or len(explained) == 1)
        lists_rows = self._question.lists and len(self._rows) > 1 and len(left) <= 1
        if is_vague and not lists_rows and not self._aggregates and not self._columns.keys() - self._named.keys():
            return 0.0  # No column is asked for, so what the question asks may not be here.
        if not self._rows and any(term in self._table.places for word in left for term in word.terms):
            return 0.0  # It may be a part of a row's name.
        count = len(words)
        if left and not self._rows and max(self._columns.values(), default=0.0) >= _FULL:
            count -= 1  # "Which car has the most doors?": no cell says what the rows are.
        return len(explained) / count * max(self._named.values(), default=1.0)

    def _counts(self, *, is_whole: bool) -> bool:
        """Return True where nothing is said of what is counted but by which cells, or what the rows are: a word of
        another header would be a further condition."""
        keys = filter(self._is_key, range(len(self._relation.columns)))
        own = self._context.union(*(self._table.headers[column] for column in [*self._named, *keys]))
        others = frozenset[str]().union(*self._table.headers) - own
        in_rows = {word for row in self._rows[:1] for said in self._said[row].values() for word in said}
        left = [word for word in self._question.words if word not in in_rows]
        return not any(others.intersection(word.terms) for word in left) and not (
            is_whole and any(own.isdisjoint(word.terms) for word in left)
        )

    def _find_time(self) -> int | None:
        return next((column for column in range(len(self._relation.columns)) if self._is_time(column)), None)

    def _is_time(self, column: int) -> bool:
        if self._relation.columns[column].kind == "date":
            return True
        values = [row[column] for row in self._relation.rows]
        return self._relation.columns[column].kind == "number" and all(v is None or v in _YEARS for v in values)

    def _find_measure(self) -> int | None:
        """Return the column of figures that the question names; else the only one."""
        numbers = [c for c in range(len(self._relation.columns)) if c not in self._named and self._is_measure(c)]
        wanted = self._terms | self._question.measured
        said = {place: len(self._table.headers[place] & wanted) for place in numbers}
        best = max(numbers, default=None, key=lambda p: (said[p] / max(1, len(self._table.headers[p])), said[p]))
        if best is not None and said[best]:
            return best
        return best if len(numbers) == 1 and not self._question.measured else None

    def _show(
        self, document: int, text: str, rows: Sequence[int], sure: float, column: int | None = None
    ) -> LookedUp | None:
        relation = self._relation
        spans = tuple(relation.spans[row] for row in rows)
        caption = _read_caption(relation.lead)
        cells = [read_cells(relation, text, row) for row in rows]
        shown: Sequence[int] = range(len(relation.columns))
        header = [column.name for column in relation.columns]
        if max(len(" | ".join(row)) for row in (header, *cells)) > _LONGEST_ROW:
            asked = self._choose_columns() | (set() if column is None else {column})
            if not asked:
                return None
            naming = sorted(self._named, key=self._named.__getitem__, reverse=True)[:1]
            shown = sorted({*naming, *asked})
            if len(shown) > _MOST_CELLS:
                return None
        names = [relation.read_header(place) for place in shown]
        if is_record(relation, text):
            kept = [
                [f"- {name}: {row[p]}" for name, p in zip(names, shown, strict=True) if p and row[p]] for row in cells
            ]
            records = ("\n".join([f"{row[0]}:", *items]) for row, items in zip(cells, kept, strict=True))
            return LookedUp(document, relation.lead, "", tuple(records), spans, sure)
        lines = tuple(join_cells([row[place] for place in shown]) for row in cells)
        return LookedUp(document, relation.lead, _write_head(names, caption), lines, spans, sure)

    def _choose_columns(self) -> set[int]:
        """Return the columns whose headers have most words of the question, for each of its words."""
        in_rows = {word.terms[0] for row in self._rows for said in self._said[row].values() for word in said}
        counts = {c: len(h & self._terms - in_rows) for c, h in enumerate(self._table.headers)}
        chosen: set[int] = set()
        for term in self._terms - in_rows:
            columns = [column for column, header in enumerate(self._table.headers) if term in header]
            most = max((counts[column] for column in columns), default=0)
            chosen.update(column for column in columns if counts[column] == most)
        return chosen - self._named.keys()

    def _state(self, document: int, rows: Sequence[int], name: str, figure: float, sure: float) -> LookedUp | None:
        """Return a figure computed from rows, below what it is of."""
        relation = self._relation
        named = sorted(self._named)
        names = [relation.columns[column].name for column in named]
        same = [_same([relation.rows[row][column] for row in rows]) for column in named]
        shown = f"{figure:,.4f}".rstrip("0").rstrip(".") if isinstance(figure, float) else str(figure)
        head = _write_head([*names, name], _read_caption(relation.lead))
        spans = tuple(relation.spans[row] for row in rows)
        return LookedUp(document, relation.lead, head, (" | ".join([*same, shown]),), spans, sure)


def _in_order(value: Value) -> tuple[float, str]:
    return (0.0, value) if isinstance(value, str) else (value or 0.0, "")


def _same(values: Sequence[Value]) -> str:
    texts = list(dict.fromkeys(map(str, values)))
    return texts[0] if len(texts) == 1 else f"{min(texts)} … {max(texts)}"


def _read_caption(lead: str) -> str:
    return "\n".join(line for line in lead.split("\n") if "|" not in line)


def _write_head(names: Sequence[str], caption: str) -> str:
    return "\n".join(filter(None, (caption, join_cells(names), write_rule(len(names)))))
