"""Answers questions from tables without a language model: one query each, and the rows that it read."""

from collections.abc import Sequence
from pathlib import PurePath
from time import process_time

from app.adapters.calculation.composing import Composed, Reading, read_tables, split_name, take_apart
from app.adapters.calculation.queries import answer
from app.adapters.calculation.relations import Relation, is_record, read_cells
from app.adapters.calculation.results import LookedUp, Result
from domain.errors import CalculationError
from domain.text.languages import detect_language
from domain.text.tables import join_cells, write_rule
from domain.text.terms import analyse_in

_MOST_ROWS, _MOST_LISTED, _LONGEST_ROW = 8, 20, 350
"""Rows that are shown: of those that are named, and of a list; and size of a row that is shown whole. Of a wider one
only the cells that name it, and those that are asked for."""
_SURE, _AMBIGUOUS = 0.95, 0.6
"""Certainty where all is said in full, and its share where another table would answer as well. Checked on questions
about tables: docs/measurements.md."""


def look_up(
    question: str, sources: Sequence[str], titles: Sequence[str], texts: Sequence[str], seconds: float
) -> LookedUp | None:
    """Return what a table of the texts holds for the question: of the one that is most surely meant, of equals the
    first. `sources` are the paths of the documents. Raises `CalculationError` after `seconds`."""
    deadline = process_time() + seconds
    language = detect_language(question) or "en"
    asked = take_apart(question, language)
    found: list[tuple[Composed, int, int, Relation]] = []
    for number, (source, title, text) in enumerate(zip(sources, titles, texts, strict=True)):
        # The folder says what the file is about, those above it where it is kept.
        name = " ".join((title, *PurePath(source).parts[-2:]))
        called = frozenset(analyse_in(language, f"{name} {split_name(name)}"))
        for place, table in enumerate(read_tables(text, language), 1):
            if process_time() > deadline:
                raise CalculationError("There are too many tables, or the question is too long.")
            # Nobody knows what the figures of a table without a header are.
            if any(table.headers) and (composed := Reading(asked, table, called).compose()):
                found.append((composed, number, place, table.relation))
    found.sort(key=lambda each: -each[0].certainty)
    for composed, number, place, relation in found:
        others = [each for each in found if each[0].certainty == composed.certainty]
        sure = composed.certainty * (_SURE if len(others) == 1 else _AMBIGUOUS)
        try:
            result = answer(composed.sql.replace("{table}", f"t{place}"), [sources[number]], [texts[number]], seconds)
        except CalculationError:
            continue
        if shown := _show(composed, relation, result, PurePath(sources[number]).name, texts[number]):
            return LookedUp(number, relation.lead, shown[0], shown[1:], result.used[0].spans, sure, composed.sql)
    return None


def _show(composed: Composed, relation: Relation, result: Result, name: str, text: str) -> tuple[str, ...]:
    """Return a head, and the lines below it; nothing where there are no rows, or too many."""
    used, working = result.used[0], f"{composed.working.replace('{name}', name)}:" if composed.working else ""
    if not composed.sql.startswith("SELECT *"):
        value = result.rows[0][0]
        written = f"{value:,.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
        head = "\n".join((working, join_cells(result.columns), write_rule(1)))
        return (head, written) if value is not None and used.is_known else ()
    if not used.is_known or len(used.spans) > (_MOST_LISTED if working else _MOST_ROWS):
        return ()
    rows = [relation.spans.index(span) for span in used.spans]
    if composed.columns and all(relation.rows[row][composed.columns[-1]] is None for row in rows):
        return ()
    cells = [read_cells(relation, text, row) for row in rows]
    places: Sequence[int] = range(len(relation.columns))
    if max(len(" | ".join(row)) for row in ([c.name for c in relation.columns], *cells)) > _LONGEST_ROW:
        places = sorted({0, *composed.columns})
    names = [relation.read_header(place) for place in places]
    if is_record(relation, text):
        items = ([f"- {n}: {row[p]}" for n, p in zip(names, places, strict=True) if p and row[p]] for row in cells)
        return working, *("\n".join((f"{row[0]}:", *each)) for row, each in zip(cells, items, strict=True))
    caption = "\n".join(line for line in relation.lead.split("\n") if "|" not in line)
    head = "\n".join(filter(None, (working or caption, join_cells(names), write_rule(len(names)))))
    return head, *(join_cells([row[place] for place in places]) for row in cells)
