"""Measures search among a million chunks of one workspace, with a workspace of 2 % beside it.

    nice python -m benchmarks.million load HOME [CHUNKS]    # about ten minutes of two cores, and 9 GB
    python -m benchmarks.million measure HOME

Rows are those that the document store would write: the same ids, terms, impacts and counts. They are copied before the
indexes and constraints of the chunks' tables exist, because a million chunks through `DocumentStore.load` would take
half an hour. The service itself builds the vector indexes. Vectors are made up (`benchmarks.corpus`).
"""

import asyncio
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import Any, LiteralString

import numpy as np
import orjson
import psycopg
from numpy.typing import NDArray
from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from app.adapters.embedded import open_servers
from app.adapters.postgres.documents.chunks import identify_chunks
from app.adapters.postgres.documents.store import document_id_of
from app.adapters.postgres.library.bm25 import K1, NOMINAL_LENGTH, TERM_IDS, B, term_id, weigh_chunk
from app.adapters.postgres.library.vocabulary import list_words
from app.adapters.postgres.pool import open_pool
from app.settings import read_settings
from app.wiring.services import open_services
from benchmarks import scale
from benchmarks.corpus import CHUNKS_PER_DOCUMENT, DIMENSION, make_documents, make_questions
from benchmarks.streaming import read_cpu
from domain.documents import embedding_text
from domain.ports.documents import DocumentContent
from domain.scope import Scope
from domain.text.terms import analyse

TABLES = ("chunks", "chunk_places", "chunk_terms", "chunk_tokens")
BATCH_DOCUMENTS = 500
BY_WORDS = 20
"""Questions whose lexical results are compared: each exact search reads most of the workspace."""

_COPIES: dict[str, LiteralString] = {
    "documents": "document_id, workspace_id, source, title, media_type, content_hash, characters, chunks, text",
    "chunks": "id, workspace_id, document_id, content_hash, heading_path, content, metadata, embedding",
    "chunk_places": "chunk_id, workspace_id, chunk_index, start_offset, end_offset, lines",
    "chunk_terms": "chunk_id, workspace_id, document_id, terms, impacts",
    "chunk_tokens": "chunk_id, workspace_id, tokens",
}
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_INT4, _TEXT = 23, 25
"""Types of array elements, as PostgreSQL numbers them."""


def name_workspaces(chunks: int) -> dict[str, int]:
    """Return the workspaces of a bench whose large one has this many chunks."""
    return {"large": chunks, "2 %": chunks // 50}


class Writer:
    """Makes the rows of one workspace, as binary COPY has them."""

    def __init__(self, workspace_id: str) -> None:
        self.workspace_id = workspace_id
        self.frequencies: Counter[int] = Counter()
        self.words: set[str] = set()
        self._terms: dict[str, list[int]] = {}
        self._workspace = _field(workspace_id.encode())

    def write(self, documents: Iterable[DocumentContent]) -> dict[str, bytes]:
        """Return what is to be copied into each table."""
        pieces: dict[str, list[bytes]] = {table: [_HEADER] for table in _COPIES}
        for document in documents:
            self._write_document(document, pieces)
        return {table: b"".join([*rows, b"\xff\xff"]) for table, rows in pieces.items()}

    def _write_document(self, content: DocumentContent, pieces: dict[str, list[bytes]]) -> None:
        document_id = document_id_of(self.workspace_id, content.source)
        owner, parsed = _field(document_id.bytes), content.parsed
        pieces["documents"].append(
            b"".join((
                b"\0\x09", owner, self._workspace, *map(_text, (
                    content.source, parsed.title, parsed.media_type, content.content_hash
                )), _int(len(parsed.text)), _int(len(content.chunks)), _text(parsed.text),
            ))
        )  # fmt: skip
        metadata = _json(f'{{"title": "{parsed.title}", "source": "{content.source}"}}')
        for chunk_id, chunk in identify_chunks(document_id, content.chunks).items():
            key = _field(chunk_id.bytes) + self._workspace
            vectors = content.embeddings[chunk.content_hash]
            headings = [_text(heading) for heading in chunk.heading_path]
            pieces["chunks"].append(
                b"".join((
                    b"\0\x08", key, owner, _text(chunk.content_hash), _array(_TEXT, len(headings), b"".join(headings)),
                    _text(chunk.text), metadata,
                    _field(struct.pack("!hh", len(vectors.embedding), 0) + vectors.embedding.astype(">f4").tobytes()),
                ))
            )  # fmt: skip
            pieces["chunk_places"].append(
                b"".join((b"\0\x06", key, _int(chunk.index), _int(chunk.start), _int(chunk.end), _json("[]")))
            )
            weights = self.weigh(embedding_text(parsed.title, chunk.heading_path, chunk.text, chunk.lead))
            self.frequencies.update(list(weights))
            ids = np.fromiter(weights, ">i4", len(weights))
            ids.sort()
            impacts = np.fromiter((weights[term] for term in ids.tolist()), ">f4", len(ids))
            elements = np.empty((len(ids), 2), ">i4")
            elements[:, 0], elements[:, 1] = 4, ids
            sparse = struct.pack("!iii", TERM_IDS, len(ids), 0) + ids.tobytes() + impacts.tobytes()
            pieces["chunk_terms"].append(
                b"".join((b"\0\x05", key, owner, _array(_INT4, len(ids), elements.tobytes()), _field(sparse)))
            )
            pieces["chunk_tokens"].append(b"".join((b"\0\x03", key, _field(vectors.tokens))))

    def weigh(self, text: str) -> dict[int, float]:
        """Return the impacts of a text's terms, as `bm25.weigh_chunk` does. Faster, because the texts are made of few
        different words."""
        terms: list[int] = []
        for word in text.split():
            if (known := self._terms.get(word)) is None:
                known = self._terms[word] = [term_id(self.workspace_id, term) for term in analyse(word)]
                self.words.add(word)
            terms += known
        counts = Counter(terms)
        length = K1 * (1 - B + B * len(terms) / NOMINAL_LENGTH)
        return {term: count * (K1 + 1) / (count + length) for term, count in counts.items()}


def _field(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


def _text(text: str) -> bytes:
    return _field(text.encode())


def _int(number: int) -> bytes:
    return struct.pack("!ii", 4, number)


def _json(text: str) -> bytes:
    return _field(b"\x01" + text.encode())


def _array(kind: int, length: int, elements: bytes) -> bytes:
    return _field(struct.pack("!iiiii", 1, 0, kind, length, 1) + elements)


def copy_rows(connection: Connection[Any], sizes: dict[str, int]) -> None:
    """Fill the workspaces. The tables are emptied and filled in one transaction, which therefore logs no rows."""
    connection.execute("TRUNCATE documents, chunks, term_frequencies, vocabulary, workspaces CASCADE")
    definitions = remove_definitions(connection)
    for name, size in sizes.items():
        started, written, writer = time.perf_counter(), 0, Writer(name)
        sample = next(make_documents(name, CHUNKS_PER_DOCUMENT)).chunks[0].text
        assert writer.weigh(sample) == weigh_chunk(name, sample)
        connection.execute("INSERT INTO workspaces (workspace_id, chunks) VALUES (%s, %s)", [name, size])
        contents = make_documents(name, size)
        while documents := list(islice(contents, BATCH_DOCUMENTS)):
            for table, rows in writer.write(documents).items():
                with connection.cursor().copy(f"COPY {table} ({_COPIES[table]}) FROM STDIN (FORMAT binary)") as copy:
                    copy.write(rows)
            written += sum(len(document.chunks) for document in documents)
            if written % 100_000 == 0:
                report("copy", f"{written:,} chunks of {name}", started)
        count_words(connection, writer)
        report("copy", f"{size:,} chunks of {name}", started)
    for definition in definitions:
        started = time.perf_counter()
        connection.execute(definition.encode())
        report("index", definition[:90], started)


def remove_definitions(connection: Connection[Any]) -> list[str]:
    """Remove the constraints and indexes of the chunks' tables, and return the statements that restore them."""
    connection.execute("SET LOCAL maintenance_work_mem = '1GB'")
    constraints = connection.execute(
        """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
           WHERE (conrelid = ANY(%(tables)s::regclass[]) OR confrelid = ANY(%(tables)s::regclass[]))
             AND contype IN ('p', 'f')
           ORDER BY contype = 'f'""",
        {"tables": list(TABLES)},
    ).fetchall()
    for table, name, _ in reversed(constraints):  # what refers to a key before the key
        drop = SQL("ALTER TABLE {} DROP CONSTRAINT {}")
        connection.execute(drop.format(Identifier(table), Identifier(name)))
    indexes = connection.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = ANY(%s)", [list(TABLES)]
    ).fetchall()
    for name, _ in indexes:
        connection.execute(SQL("DROP INDEX {}").format(Identifier(name)))
    keys = [f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}" for table, name, definition in constraints]
    # Not those of the graphs, which the service builds.
    return keys + [definition for _, definition in indexes if "hnsw" not in definition]


def count_words(connection: Connection[Any], writer: Writer) -> None:
    with connection.cursor().copy("COPY term_frequencies (workspace_id, term, chunks) FROM STDIN") as copy:
        for term, chunks in writer.frequencies.items():
            copy.write_row((writer.workspace_id, term, chunks))
    with connection.cursor().copy("COPY vocabulary (workspace_id, word, term) FROM STDIN") as copy:
        for word, term in list_words(writer.workspace_id, writer.words).items():
            copy.write_row((writer.workspace_id, word, term))


def report(kind: str, what: str, started: float) -> None:
    print(f"{kind:<7}{what:<95}{time.perf_counter() - started:7.1f} s", flush=True)


async def load(home: Path, chunks: int) -> None:
    """Copy the rows, then have the service build its graphs."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(open_servers(home))
        assert servers.database_url
        settings = read_settings(DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url, load_samples=False)
        services = await stack.enter_async_context(open_services(settings))
        await services.library.wait_for_indexes()

        def fill(url: str) -> None:
            with psycopg.connect(url) as connection:
                copy_rows(connection, name_workspaces(chunks))
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("VACUUM (ANALYZE)")

        started = time.perf_counter()
        await asyncio.to_thread(fill, servers.database_url)
        report("load", "all rows", started)
        started = time.perf_counter()
        services.library.tend_indexes()
        await services.library.wait_for_indexes()
        report("load", "graphs", started)


async def measure(home: Path) -> None:
    """Measure what was loaded."""
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(open_servers(home))
        url = servers.database_url
        assert url
        settings = read_settings(DATABASE_URL=url, REDIS_URL=servers.redis_url, load_samples=False)
        services = await stack.enter_async_context(open_services(settings))
        with psycopg.connect(url) as connection:
            rows = connection.execute("SELECT workspace_id, chunks FROM workspaces ORDER BY chunks DESC").fetchall()
            sizes: dict[str, int] = dict(rows)
            exact = find_nearest(connection, home, sizes)
        bench = scale.Bench(services, await stack.enter_async_context(open_pool(url)), url, sizes)
        for name in sizes:
            await measure_retrieval(bench, name)
        for name in sizes:
            await measure_recall(bench, name, exact[name], home)
        await bench.measure_addition()
        await measure_ingestion(bench)
        report_sizes(url)


def find_nearest(connection: Connection[Any], home: Path, sizes: Mapping[str, int]) -> dict[str, list[list[float]]]:
    """Return the scores of the chunks nearest to each question, by comparing all; kept for the next time."""
    kept = home / "nearest.json"
    if not kept.exists():
        kept.write_bytes(orjson.dumps({name: _compare_all(connection, name, size) for name, size in sizes.items()}))
    found: dict[str, list[list[float]]] = orjson.loads(kept.read_bytes())
    return found


def _compare_all(connection: Connection[Any], name: str, size: int) -> list[list[float]]:
    questions = np.array([q.embedding for q in make_questions(name, size, scale.QUESTIONS)[: scale.COMPARED]])
    best = np.full((len(questions), scale.LEG), -1.0)
    statement = "COPY (SELECT embedding FROM chunks WHERE workspace_id = {} OFFSET 0) TO STDOUT (FORMAT binary)"
    # Of a row: the number of its fields, the length of the first, and its number of dimensions.
    row = np.dtype([("head", "V6"), ("dimension", ">i4"), ("vector", ">f4", DIMENSION)])
    with connection.cursor().copy(SQL(statement).format(Literal(name))) as copy:
        data, is_first = bytearray(), True
        for piece in copy:
            data += piece
            if is_first:
                del data[: len(_HEADER)]
                is_first = False
            if len(data) > 20_000 * row.itemsize:
                best = _keep_best(best, questions, data, row)
        best = _keep_best(best, questions, data, row)
    return [sorted(scores, reverse=True) for scores in best.tolist()]


def _keep_best(
    best: NDArray[np.float64], questions: NDArray[np.float32], data: bytearray, row: np.dtype[Any]
) -> NDArray[np.float64]:
    """Compare all whole rows of the data, and remove them from it."""
    whole = len(data) // row.itemsize
    vectors = np.frombuffer(bytes(data[: whole * row.itemsize]), row)["vector"].astype(np.float32)
    del data[: whole * row.itemsize]
    return np.sort(np.concatenate([best, questions @ vectors.T], axis=1), axis=1)[:, -best.shape[1] :]


async def measure_retrieval(bench: scale.Bench, name: str) -> None:
    """Measure the node, after every question was asked once: time, and CPU of this process and of the server."""
    for question in bench.questions[name]:
        await bench.retrieve(name, question)
    with psycopg.connect(bench.url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchall()
    backends = [pid for (pid,) in rows]
    times, before, spent = [], sum(map(read_cpu, backends)), time.process_time()
    for question in bench.questions[name]:
        times.append(await scale.measure(bench.retrieve(name, question)))
    client = 1000 * (time.process_time() - spent) / len(times)
    server = 1000 * (sum(map(read_cpu, backends)) - before) / len(times)
    scale.compare(f"retrieve, {name}", times)
    scale.report("cpu", f"retrieve, {name}", f"client {client:.1f} ms, server {server:.1f} ms")


async def measure_recall(bench: scale.Bench, name: str, exact: list[list[float]], home: Path) -> None:
    """Compare both legs with searches that look at every chunk."""
    search, scope = bench.services.library.search, Scope(name)
    kept = home / f"by-words-{name.strip(' %')}.json"
    if not kept.exists():
        asked = bench.questions[name][:BY_WORDS]
        kept.write_bytes(orjson.dumps([await bench.search_lexical_exactly(scope, question) for question in asked]))
    by_words = orjson.loads(kept.read_bytes())
    for leg, best in (("dense", exact), ("lexical", by_words)):
        times, shares = [], []
        for question, scores in zip(bench.questions[name], best, strict=False):
            started = time.perf_counter()
            if leg == "dense":
                found = await search.search_dense(scope, question.embedding, scale.LEG)
            else:
                found = await search.search_lexical(scope, question.text, scale.LEG)
            times.append(1000 * (time.perf_counter() - started))
            shares.append([scale.recall([m.score for m in found], scores, n) for n in (scale.KEPT, scale.LEG)])
        scale.report("recall", f"{leg}, {name}", "@40 {:.3f}, @50 {:.3f}".format(*np.mean(shares, axis=0)))
        scale.compare(f"{leg} leg, {name}", times)


async def measure_ingestion(bench: scale.Bench) -> None:
    """A short document is read, embedded by the model, stored, and found."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        names = [f"quokka{number}" for number in range(8)]
        for name in names:
            Path(folder, f"{name}.md").write_text(f"# Note\n\nThe {name} eats eucalyptus.\n")  # noqa: ASYNC240
        for name in names:
            started = time.perf_counter()
            await bench.services.library.ingestion.add_paths("large", [Path(folder, f"{name}.md")])
            [best] = await bench.services.library.search.search_lexical(Scope("large"), name, 1)
            seconds.append(1000 * (time.perf_counter() - started))
            await bench.services.library.documents.delete("large", best.document_id)
    scale.compare("a short file read, embedded and found", seconds[1:])


def report_sizes(url: str) -> None:
    """Print what the tables and indexes take."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            """SELECT relname, pg_relation_size(oid) + coalesce(pg_relation_size(nullif(reltoastrelid, 0)), 0)
               FROM pg_class WHERE relkind IN ('r', 'i') ORDER BY 2 DESC LIMIT 12"""
        ).fetchall()
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row
    scale.report("disk", "database", f"{row[0] / 1e9:.2f} GB")
    for name, size in rows:
        scale.report("disk", name, f"{size / 1e6:,.0f} MB")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["load", home, *rest]:
            asyncio.run(load(Path(home), int(rest[0]) if rest else 1_000_000))
        case ["measure", home]:
            asyncio.run(measure(Path(home)))
        case _:
            sys.exit(__doc__)
