"""Made tables with a question about one cell, because the public rows have none that may be shipped.

A question is answered by the row that it names, in the column that it names. It is not answered where the table lacks
the row, or the column.
"""

import random
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_WORDS = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
_MONTHS = ["January", "March", "April", "May", "July", "August", "October", "December"]


@dataclass(frozen=True)
class TableQuestion:
    question: str
    title: str
    units: list[str]
    """Header, separator and rows, as the service writes tables."""
    row: int | None
    """The unit that answers; None where none does."""
    cell: tuple[int, int] = (0, 0)
    """Characters of the answer in it."""


def make_tables(names: Sequence[str], most: int, rng: random.Random) -> Iterator[TableQuestion]:
    """Up to `most` questions. `names` are of things and people, for the rows."""
    for _ in range(most):
        kinds = rng.sample(_WORDS["columns"], rng.randint(1, 4))
        columns = [(rng.choice(kind["names"]), kind["values"]) for kind in kinds]
        rows = rng.sample(names, rng.randint(3, 9))
        absent = next(name for name in rng.sample(names, 20) if name not in rows)
        lines = [[row, *(_value(kind, names, rng) for _, kind in columns)] for row in rows]
        number, column = rng.randrange(len(rows)), rng.randrange(len(columns))
        name, kind = columns[column]
        template = rng.choice(_WORDS["asked"]["plain"] + _WORDS["asked"][kind])
        draw = rng.random()
        if draw < 0.25:
            asked, answer = template.format(column=name.lower(), row=absent), None
        elif draw < 0.45 and "{column}" in template:
            others = [c for each in _WORDS["columns"] if each["values"] != kind for c in each["names"]]
            other = next(c for c in rng.sample(others, 12) if c not in [known for known, _ in columns])
            asked, answer = template.format(column=other.lower(), row=rows[number]), None
        elif draw < 0.45:
            continue
        else:
            asked, answer = template.format(column=name.lower(), row=rows[number]), number
        header = " | ".join(["Name", *(known for known, _ in columns)])
        units = [header, " | ".join(["---"] * (len(columns) + 1)), *(" | ".join(line) for line in lines)]
        if answer is None:
            yield TableQuestion(asked, rng.choice(["", "Overview"]), units, None)
            continue
        start = sum(len(cell) + 3 for cell in lines[number][: column + 1])
        cell = (start, start + len(lines[number][column + 1]))
        yield TableQuestion(asked, rng.choice(["", "Overview"]), units, number + 2, cell)


def _value(kind: str, names: Sequence[str], rng: random.Random) -> str:
    match kind:
        case "money":
            return f"{rng.choice('$€£')}{rng.choice([rng.randint(2, 99), rng.randint(1, 90) * 100]):,}"
        case "date":
            return f"{rng.randint(1, 28)} {rng.choice(_MONTHS)} {rng.randint(2001, 2029)}"
        case "count":
            return str(rng.choice([rng.randint(1, 60), rng.randint(100, 9000)]))
        case "hours":
            return f"{rng.randint(6, 11)}:{rng.choice(['00', '30'])}-{rng.randint(14, 21)}:00"
        case "percent":
            return f"{rng.randint(1, 60)}{rng.choice(['', '.5'])}%"
    return rng.choice(names)
