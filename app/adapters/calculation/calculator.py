"""A `Calculator` on SQLite, in processes that can be killed.

Tables are read when a query asks for them: reading them from a text of a megabyte takes less than a second, and a
worker remembers the last ones. So nothing more is stored, and nothing can fall behind the documents.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from app.adapters.calculation.results import LookedUp, Result, Used
from app.ingest.parser_workers import ParserWorkers
from domain.documents import DocumentText, Passage
from domain.errors import CalculationError, CostlyDocument
from domain.ports.calculation import Calculation, LookUp
from domain.ports.library import Library
from domain.scope import Scope
from domain.text.blocks import Span

SECONDS = 2.0
"""Time of a query, without that for reading the tables."""
MEMORY_MB = 256
WORKER_SECONDS = 8.0
"""Computing time of a worker for one query: for reading the tables, and for what holds up SQLite's own limit."""
MAX_CHARACTERS = 5_000_000
"""Size of the documents of one query."""
LOOKED_THROUGH = 2_000_000
"""Size of those that are looked through for a question: about as much as the time allows on a slow machine."""
LOOKING_SECONDS = 2.0
"""Computing time for that, while a step waits 5 s."""
PASSAGES = 3
"""Passages that show the rows of a query."""
BUDGET = 1_500
"""Characters of each."""
_NEAR = 200
"""Characters between two rows that are shown with what stands between them."""


class SqliteCalculator:
    """Runs queries over the tables of a library's documents. A worker starts with the first query, and ends a minute
    after the last."""

    def __init__(self, library: Library, *, at_once: int | None = None, seconds: float = SECONDS) -> None:
        self._library = library
        # A reader waits for them.
        self._workers = ParserWorkers(at_once, seconds=WORKER_SECONDS, memory_mb=MEMORY_MB, niceness=0)
        self._seconds = seconds
        self._looking: set[asyncio.Task[LookedUp | None]] = set()

    async def aclose(self) -> None:
        await self._workers.close()
        await asyncio.gather(*self._looking, return_exceptions=True)

    async def calculate(self, scope: Scope, sql: str, document_ids: Sequence[str]) -> Calculation:
        asked = list(dict.fromkeys(document_ids))
        read = {each.id: each for each in await self._library.read_texts(scope, asked) if each.text}
        for document_id in asked:
            if document_id not in read:
                raise CalculationError(f"There is no document {document_id!r} whose tables can be read.")
        texts = [each.text for each in read.values()]
        if sum(map(len, texts)) > MAX_CHARACTERS:
            raise CalculationError("The documents are too long to compute with at once. Name fewer.")
        job = partial(run_query, sql, [each.source for each in read.values()], texts, self._seconds)
        try:
            result: Result = await self._workers.run(job, owner=scope.workspace_id)
        except CostlyDocument as error:
            raise CalculationError("The query took too much time or memory.") from error
        used, note = await self._show(scope, result, texts, asked)
        return Calculation(result.columns, result.rows, result.is_cut, used, note)

    async def look_up(self, scope: Scope, question: str, document_ids: Sequence[str]) -> LookUp | None:
        room = LOOKED_THROUGH
        held: list[DocumentText] = []
        for document in await self._library.read_texts(scope, document_ids):
            if document.text and len(document.text) <= room:
                held.append(document)
                room -= len(document.text)
        if not held:
            return None
        sources, titles, texts = zip(*((each.source, each.title, each.text) for each in held), strict=True)
        job = partial(look_up, question, sources, titles, texts, LOOKING_SECONDS)
        looking = asyncio.create_task(self._workers.run(job, owner=scope.workspace_id))
        self._looking.add(looking)
        looking.add_done_callback(self._forget)
        try:
            # It goes on without a reader whose time is up, so that its worker is ready for the next question.
            found: LookedUp | None = await asyncio.shield(looking)
        except CostlyDocument as error:
            raise CalculationError("They took too much time or memory.") from error
        if found is None:
            return None
        document_id, text = held[found.document].id, held[found.document].text
        places = [place for place, _ in _join(found.spans)]
        said = [
            [line for line, row in zip(found.lines, found.spans, strict=False) if _holds(place, row)]
            for place in places
        ]
        if len(found.lines) != len(found.spans):  # figures of all of them
            places, said = places[:1], [list(found.lines)]
        chunks = await asyncio.gather(
            *(self._library.read_outline(scope, document_id, BUDGET, each) for each in places)
        )
        passages = (_cut(over, text, place, found.lead) for over, place in zip(chunks, places, strict=True))
        shown = ("\n".join(filter(None, [found.head, *lines])) for lines in said)
        placed = tuple((each, says) for each, says in zip(passages, shown, strict=True) if each is not None)
        return LookUp(placed, found.certainty, found.sql) if placed else None

    def _forget(self, looking: asyncio.Task[LookedUp | None]) -> None:
        self._looking.discard(looking)
        if not looking.cancelled():
            looking.exception()  # nobody may wait for it any more

    async def _show(
        self, scope: Scope, result: Result, texts: Sequence[str], document_ids: Sequence[str]
    ) -> tuple[tuple[Passage, ...], str]:
        """Return the rows that a result was computed from, as far as they fit, and what that leaves out."""
        shown: list[tuple[Used, Span, int]] = []
        for used in sorted(result.used, key=lambda each: not each.is_known):
            stretches = _join(used.spans) if used.is_known else _join(used.spans)[:1]
            shown += [(used, span, count) for span, count in stretches]
        shown = shown[:PASSAGES]
        chunks = await asyncio.gather(
            *(self._library.read_outline(scope, document_ids[used.document], BUDGET, span) for used, span, _ in shown)
        )
        passages = [
            _cut(over, texts[used.document], span, used.lead)
            for over, (used, span, _) in zip(chunks, shown, strict=True)
        ]
        notes = []
        if not all(used.is_known for used in result.used):
            notes.append("No row matched, or which did is not known: the table's first rows are shown.")
        count = sum(len(used.spans) for used in result.used if used.is_known)
        if count > (seen := sum(count for used, _, count in shown if used.is_known)):
            notes.append(f"It was computed from {count:,} rows, {seen:,} of which are shown.")
        return tuple(passage for passage in passages if passage is not None), " ".join(notes)


def run_query(sql: str, sources: Sequence[str], texts: Sequence[str], seconds: float) -> Result:
    """Answer a query over the tables of documents, within some seconds. Raises `CalculationError`."""
    # Only workers load the SQL parser: it takes half a second, and 25 MB.
    from app.adapters.calculation.queries import answer

    return answer(sql, sources, texts, seconds)


def look_up(
    question: str, sources: Sequence[str], titles: Sequence[str], texts: Sequence[str], seconds: float
) -> LookedUp | None:
    """Answer a question from the tables of documents, within some seconds; None where it is not clear how."""
    from app.adapters.calculation.looking_up import look_up

    return look_up(question, sources, titles, texts, seconds)


def _join(spans: Sequence[Span]) -> list[tuple[Span, int]]:
    """Return the stretches of text that hold rows, each with the number of them. Rows near each other share one. Those
    with the first of `spans` come first."""
    rank = {span: place for place, span in enumerate(spans)}
    joined: list[tuple[Span, list[Span]]] = []
    for start, end in sorted(spans):
        (first, last), rows = joined[-1] if joined else ((0, 0), [])
        if rows and start - last <= _NEAR and end - first <= BUDGET:
            joined[-1] = (first, end), [*rows, (start, end)]
        else:
            joined.append(((start, min(end, start + BUDGET)), [(start, end)]))
    joined.sort(key=lambda each: min(rank[row] for row in each[1]))
    return [(span, len(rows)) for span, rows in joined]


def _holds(place: Span, row: Span) -> bool:
    return place[0] <= row[0] < place[1]


def _cut(over: Sequence[Passage], text: str, span: Span, lead: str) -> Passage | None:
    """Return a part of a document's text as a passage in the name of the first of the chunks that it overlaps."""
    if not over:
        return None
    start, end = span
    lines = {line.start: line for chunk in over for line in chunk.lines if line.start < end and start < line.end}
    return replace(over[0], text=text[start:end], start=start, end=end, lines=tuple(lines.values()), lead=lead)
