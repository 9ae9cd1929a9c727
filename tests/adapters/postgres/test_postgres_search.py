"""Searches choose between plans, and all plans lead to the same result."""

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain
from uuid import UUID

import numpy as np
import pytest
import pytest_asyncio

from app.adapters.postgres.documents.frequencies import CHUNKS
from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library import bm25, dense, lexical
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_session
from app.adapters.postgres.vectors import vector_index
from domain.scope import Scope
from domain.text.terms import analyse
from tests.contracts.corpus import DIMENSION, content_of, store, vector_of

WORDS = [f"word{n}" for n in range(40)]


def paragraph(number: int) -> str:
    """Texts whose words follow Zipf's law, as in real texts."""
    draws = np.random.default_rng(number).zipf(1.5, 20) % len(WORDS)
    return " ".join(WORDS[draw] for draw in draws) + f" paragraph{number}"


@pytest_asyncio.fixture
async def filled(pool: Pool) -> PostgresLibrary:
    """A library in which workspace a holds 40 of 440 chunks, in 4 documents, and b the others."""
    documents = PostgresDocumentStore(pool)
    await asyncio.gather(
        *(store(documents, "a", f"{n}", [paragraph(10 * n + i) for i in range(10)], title="") for n in range(4)),
        *(store(documents, "b", f"{n}", [paragraph(1000 + 50 * n + i) for i in range(50)], title="") for n in range(8)),
    )
    return PostgresLibrary(pool)


async def test_the_index_finds_what_comparing_all_finds(
    filled: PostgresLibrary, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = tuple(d.id for d in (await PostgresDocumentStore(pool).list("a"))[:2])
    scopes = [Scope("a"), Scope("b"), Scope("a", ids)]
    queries = [vector_of(f"question {n}") for n in range(10)]
    exact = [[await filled.search_dense(scope, query, 10) for query in queries] for scope in scopes]
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    await vector_index.tend_indexes(pool)
    found = [[await filled.search_dense(scope, query, 10) for query in queries] for scope in scopes]
    for wanted, got in zip(chain(*exact), chain(*found), strict=True):
        assert len(got) == len(wanted) == 10
        assert [m.score for m in got] == sorted((m.score for m in got), reverse=True)
        assert len({m.chunk_id for m in wanted} & {m.chunk_id for m in got}) >= 9
    assert {m.document_id for matches in found[2] for m in matches} <= set(ids)


async def read_index(pool: Pool, workspace_id: str) -> bool | None:
    """Return True if the workspace's index can be used, False if it is unfinished, None if there is none."""
    async with borrow(pool, ALL_WORKSPACES) as connection:
        name = vector_index.name_index(workspace_id)
        cursor = await connection.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name])
        row = await cursor.fetchone()
    return row["indisvalid"] if row else None


async def test_a_large_workspace_has_an_index(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    documents = PostgresDocumentStore(pool)
    await store(documents, "a'b", "x", WORDS[:5])
    assert await read_index(pool, "a'b") is None
    await store(documents, "a'b", "y", WORDS[:1])
    await documents.wait_for_indexes()
    assert await read_index(pool, "a'b")
    for n in range(4):
        await documents.replace("c", content_of(f"{n}", WORDS[:3]))
    assert await read_index(pool, "c")
    for workspace_id, chunks in (("a'b", 6), ("c", 12)):
        found = await PostgresLibrary(pool).search_dense(Scope(workspace_id), vector_of(WORDS[0]), 100)
        assert len(found) == chunks
    document = await store(documents, "a'b", "x", WORDS[:2])
    assert await read_index(pool, "a'b")
    await documents.delete("a'b", document.id)
    await documents.wait_for_indexes()
    assert await read_index(pool, "a'b") is None
    assert await read_index(pool, "c")


async def test_the_index_is_used(filled: PostgresLibrary, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    await vector_index.tend_indexes(pool)
    ids = tuple(d.id for d in (await PostgresDocumentStore(pool).list("a"))[:2])
    for scope in (Scope("a"), Scope("a", ids)):
        query = dense.SEARCH if scope.document_ids is None else dense.SEARCH_IN_DOCUMENTS
        async with open_session(pool, "a") as session:
            rows = await session.fetch(
                f"EXPLAIN (ANALYZE, FORMAT JSON) {dense.fit_dimension(query, DIMENSION)}",
                prepare=False,
                embedding=vector_of("question"),
                limit=5,
                exact_rows=5,
                index=vector_index.name_index("a"),
                embedder=None,
                document_ids=[UUID(i) for i in ids],
            )
        plan = json.dumps(rows[0]["QUERY PLAN"])
        scans = re.findall(r'"Index Name": "(\w+)"[^{}]*?"Actual Loops": (\d+)', plan.replace("\\n", " "))
        assert (vector_index.name_index("a"), "1") in scans
        assert ("chunks_by_document", "1") not in scans


async def test_a_build_that_fails_is_repeated(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    documents = PostgresDocumentStore(pool)
    await store(documents, "a", "x", WORDS[:10])
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    monkeypatch.setattr(vector_index, "LOCK_TIMEOUT", "50ms")
    async with borrow(pool, ALL_WORKSPACES) as other, other.transaction():
        await other.execute("INSERT INTO chunks SELECT * FROM chunks WHERE false")
        await store(documents, "a", "y", WORDS[10:12])
        await documents.wait_for_indexes()
    assert "could not be built" in caplog.text
    assert await read_index(pool, "a") is False
    assert len(await PostgresLibrary(pool).search_dense(Scope("a"), vector_of(WORDS[0]), 100)) == 12
    await store(documents, "a", "z", WORDS[12:14])
    await documents.wait_for_indexes()
    assert await read_index(pool, "a")


async def test_an_index_left_unfinished_by_a_crash_is_built_at_start(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(PostgresDocumentStore(pool), "a", "x", WORDS[:10])
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    documents = PostgresDocumentStore(pool)
    assert await read_index(pool, "a") is None
    documents.tend_indexes()
    await documents.wait_for_indexes()
    assert await read_index(pool, "a")


@asynccontextmanager
async def builds_held_up(pool: Pool) -> AsyncIterator[None]:
    """Open a transaction that every build waits for."""
    async with borrow(pool, ALL_WORKSPACES) as other, other.transaction():
        await other.execute("INSERT INTO chunks SELECT * FROM chunks WHERE false")
        yield


async def reach_tending(pool: Pool, count: int) -> None:
    """Wait until this many connections build indexes, each waiting for a transaction."""
    async with borrow(pool, ALL_WORKSPACES) as connection:
        while True:
            cursor = await connection.execute(
                "SELECT wait_event_type FROM pg_stat_activity"
                " WHERE application_name = 'askgraph index' AND datname = current_database()"
            )
            if [row["wait_event_type"] for row in await cursor.fetchall()] == ["Lock"] * count:
                return
            await connection.execute("SELECT pg_sleep(0.01)")


async def test_many_changes_wait_for_no_build_and_share_a_connection(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    here, elsewhere = PostgresDocumentStore(pool), PostgresDocumentStore(pool)
    async with builds_held_up(pool):
        await store(here, "a", "x", WORDS[:10])
        await reach_tending(pool, 1)
        await asyncio.gather(*(store(here, "a", f"{n}", [WORDS[n]]) for n in range(8)))
        await reach_tending(pool, 1)
        # Another process leaves the work to the one that is doing it.
        await store(elsewhere, "b", "x", WORDS[:10])
        await elsewhere.wait_for_indexes()
        await reach_tending(pool, 1)
        assert len(await PostgresLibrary(pool).search_dense(Scope("a"), vector_of(WORDS[0]), 100)) == 18
    await here.wait_for_indexes()
    assert await read_index(pool, "a")
    assert await read_index(pool, "b")
    await reach_tending(pool, 0)


async def test_closing_ends_a_build(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    monkeypatch.setattr(vector_index, "CLOSE_SECONDS", 0.1)
    documents = PostgresDocumentStore(pool)
    await documents.close()
    async with builds_held_up(pool):
        await store(documents, "a", "x", WORDS[:10])
        await reach_tending(pool, 1)
        await documents.close()
        assert not [task for task in asyncio.all_tasks() if "VectorIndexes" in repr(task)]
    await reach_tending(pool, 0)
    assert await read_index(pool, "a") is False
    await documents.clear("a")
    assert await read_index(pool, "a") is None


async def test_a_role_that_may_not_build_an_index_stores_and_searches(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vector_index, "EXACT_ROWS", 5)
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute("REVOKE CREATE ON SCHEMA public FROM pg_database_owner, public")
    documents = PostgresDocumentStore(pool)
    await store(documents, "a", "x", WORDS[:10])
    await documents.wait_for_indexes()
    assert "could not be built" in caplog.text
    assert len(await PostgresLibrary(pool).search_dense(Scope("a"), vector_of(WORDS[0]), 100)) == 10


async def test_lexical_scores_are_bm25(filled: PostgresLibrary) -> None:
    texts = [paragraph(n) for n in range(40)]
    counts = [Counter(analyse(text)) for text in texts]
    query = "word1 word7 paragraph13 word30"
    expected = dict.fromkeys(texts, 0.0)
    for term in analyse(query):
        frequency = sum(term in count for count in counts)
        idf = math.log(1 + (40 - frequency + 0.5) / (frequency + 0.5))
        for text, count in zip(texts, counts, strict=True):
            norm = 1.2 * (1 - 0.75 + 0.75 * count.total() / bm25.NOMINAL_LENGTH)
            expected[text] += idf * count[term] * (1.2 + 1) / (count[term] + norm)
    matches = await filled.search_lexical(Scope("a"), query, 10)
    passages = await filled.read_passages(Scope("a"), [m.chunk_id for m in matches])
    best = sorted(expected.items(), key=lambda item: -item[1])[:10]
    assert [m.score for m in matches] == pytest.approx([score for _, score in best], rel=1e-5)
    assert [expected[p.text] for p in passages] == pytest.approx([score for _, score in best])


async def test_candidates_by_rare_terms_include_the_best_chunks(
    filled: PostgresLibrary, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = tuple(d.id for d in (await PostgresDocumentStore(pool).list("b"))[:3])
    queries = ["paragraph1001 word1 word2", "word9 word1 word2 word3 paragraph1120", "word1 word2 word3", "word1"]
    for scope in (Scope("b"), Scope("b", ids)):
        complete = [await filled.search_lexical(scope, query, 400) for query in queries]
        with monkeypatch.context() as patch:
            for module in (bm25, lexical):
                patch.setattr(module, "CANDIDATES", 60)
            patch.setattr(bm25, "ENOUGH", 5)
            some = [await filled.search_lexical(scope, query, 400) for query in queries]
        for wanted, got in zip(complete, some, strict=True):
            assert 0 < len(got) <= min(60, len(wanted))
            assert set(got) <= set(wanted)
        assert [matches[0] for matches in some[:2]] == [matches[0] for matches in complete[:2]]


@pytest.mark.parametrize(
    ("chunks", "frequencies", "held"),
    [
        # Few chunks: every one that holds a term.
        (1_000, {1: 10, 2: 900}, [([], [1, 2])]),
        # The rare term alone, and the two others together.
        (100_000, {1: 350, 2: 4_000, 3: 5_000}, [([], [1]), ([2], [3])]),
        # A common term only where the others are not enough.
        (100_000, {1: 350, 2: 400, 3: 60_000}, [([], [1, 2])]),
        (20_000, {1: 50, 2: 100, 3: 3_000}, [([], [1, 2, 3])]),
        # Not at all where it would bring more than can be scored.
        (100_000, {1: 50, 2: 100, 3: 6_000, 4: 60_000}, [([], [1, 2]), ([3], [4])]),
        # Terms that many chunks hold select together.
        (100_000, {1: 9_000, 2: 9_500, 3: 9_900}, [([1], [2])]),
    ],
)
def test_plan_selects_by_the_greatest_weights_until_there_are_enough(
    chunks: int, frequencies: dict[int, int], held: list[tuple[list[int], list[int]]]
) -> None:
    weights = bm25.weigh_terms(dict.fromkeys(frequencies, 1.0), chunks, frequencies)
    assert sorted(bm25.plan_search(weights, chunks, frequencies).held) == sorted(held)


def test_plan_for_part_of_the_chunks_selects_more() -> None:
    frequencies = {1: 600, 2: 4_000}
    weights = bm25.weigh_terms(dict.fromkeys(frequencies, 1.0), 100_000, frequencies)
    assert bm25.plan_search(weights, 100_000, frequencies).held == [([], [1])]
    assert bm25.plan_search(weights, 100_000, frequencies, share=0.5).held == [([], [1, 2])]


async def test_chunks_with_two_common_words_are_found_beside_those_with_a_rare_one(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bm25, "CANDIDATES", 8)
    texts = ["lynx", *["owl hawk"] * 3, *["owl"] * 4, *["hawk"] * 8]
    birds = [f"{text} {number}" for number, text in enumerate(texts)]
    await PostgresDocumentStore(pool).replace("w", content_of("birds", birds))
    found = await PostgresLibrary(pool).search_lexical(Scope("w"), "lynx owl hawk", 4)
    passages = await PostgresLibrary(pool).read_passages(Scope("w"), [match.chunk_id for match in found])
    assert sorted(passage.text.rsplit(" ", 1)[0] for passage in passages) == ["lynx", *["owl hawk"] * 3]


async def test_ids_are_accepted_in_any_form(filled: PostgresLibrary, pool: Pool) -> None:
    [first, *_] = await PostgresDocumentStore(pool).list("a")
    hexadecimal = first.id.replace("-", "").upper()
    for document_id in (first.id, first.id.upper(), hexadecimal):
        scope = Scope("a", (document_id, "no id"))
        assert len(await filled.search_dense(scope, vector_of("question"), 100)) == 10
        assert {m.document_id for m in await filled.search_lexical(scope, "word1 word2", 100)} == {first.id}


def test_a_term_that_no_chunk_holds_weighs_nothing() -> None:
    assert bm25.weigh_terms(Counter([1, 2]), 10_000, {2: 0}) == {}


async def test_term_frequencies_follow_every_change(pool: Pool) -> None:
    documents = PostgresDocumentStore(pool)

    async def read_frequencies() -> dict[int, int]:
        async with borrow(pool, ALL_WORKSPACES) as connection:
            rows = await (await connection.execute("SELECT term, chunks FROM term_frequencies")).fetchall()
        return {row["term"]: row["chunks"] for row in rows if row["chunks"] and row["term"] != CHUNKS}

    def count(*texts: str) -> dict[int, int]:
        return Counter(bm25.term_id("a", term) for text in texts for term in set(analyse(text)))

    document = await store(documents, "a", "x", ["red blue", "red green green"], title="")
    assert await read_frequencies() == count("red blue", "red green")
    await store(documents, "a", "x", ["red blue", "yellow"], title="")
    assert await read_frequencies() == count("red blue", "yellow")
    await asyncio.gather(*(store(documents, "a", f"{n}", ["red", "blue"], title="") for n in range(6)))
    assert await read_frequencies() == count("red blue", "yellow", *["red", "blue"] * 6)
    await documents.delete("a", document.id)
    assert await read_frequencies() == count(*["red", "blue"] * 6)


async def test_words_of_documents_weigh_nothing_for_those_who_may_not_read_them(pool: Pool) -> None:
    documents, stored = PostgresDocumentStore(pool), PostgresLibrary(pool)
    us, both = frozenset({"us"}), frozenset({"us", "board"})
    for name, text in (("a", "redundancies plinth"), ("b", "gardeners plinth"), ("c", "plinth")):
        await store(documents, "a", name, [text], title="")

    async def weigh(groups: frozenset[str] | None) -> dict[str, float]:
        scope, query = Scope("a", groups=groups), "redundancies gardeners"
        scores = {match.chunk_id: match.score for match in await stored.search_lexical(scope, query, 10)}
        # The other process remembers nothing.
        for library in (stored, PostgresLibrary(pool)):
            again = await library.score_lexical(scope, query, [*scores])
            assert {match.chunk_id: match.score for match in again} == scores
        first = min(scores)
        [related] = await stored.score_related(scope, "nothing", {first: 1.0}, [first])
        return scores | {"related": related.score}

    before = await weigh(us)
    assert before == await weigh(None)
    texts = [f"The redundancies of March {number}." for number in range(6)]
    hidden = await store(documents, "a", "hidden", texts, groups=("board",))
    assert await weigh(us) == before
    assert await stored.suggest_words(Scope("a", groups=us), ["march"], None, "en") == {}
    seen = await weigh(both)
    assert seen == await weigh(None) != before
    # However they came to be hidden.
    await documents.set_groups("a", hidden.id, ["us"])
    assert await weigh(us) == await weigh(None)
    await store(documents, "a", "hidden", texts[:3], groups=("board", "staff"))
    assert await weigh(us) == before
    arrival = await documents.number_arrival("a")
    known = await documents.get("a", hidden.id)
    assert known is not None
    await documents.set_metadata("a", known, arrival, {}, groups=["board"])
    assert await weigh(us) == before
    assert len(await weigh(both)) == len(await weigh(None))
    await documents.delete("a", hidden.id)
    assert await weigh(both) == await weigh(us) == before
    async with borrow(pool, ALL_WORKSPACES) as connection:
        left = await connection.execute(
            "SELECT groups, sum(chunks) AS n FROM term_frequencies GROUP BY 1 HAVING sum(chunks) <> 0"
        )
        assert [row["groups"] for row in await left.fetchall()] == [[]]


async def test_token_vectors_stay_with_their_chunk(pool: Pool) -> None:
    documents, stored = PostgresDocumentStore(pool), PostgresLibrary(pool)
    await store(documents, "a", "x", ["red", "blue"])
    await store(documents, "a", "x", ["green", "red", "blue", "red"])
    ids = [m.chunk_id for m in await stored.search_dense(Scope("a"), vector_of("red"), 10)]
    texts = {p.chunk_id: p.text.encode() for p in await stored.read_passages(Scope("a"), ids)}
    assert sorted(texts.values()) == [b"blue", b"green", b"red", b"red"]
    assert await stored.read_tokens(Scope("a"), [*ids, "no id"]) == texts
    assert await stored.read_tokens(Scope("b"), ids) == {}


async def test_token_vectors_are_found_by_the_place_of_their_chunk(pool: Pool) -> None:
    documents, stored = PostgresDocumentStore(pool), PostgresLibrary(pool)
    document = await store(documents, "a", "x", ["green", "red", "blue", "red"])
    other = await store(documents, "a", "y", ["green"])
    chunks = await stored.read_around(
        Scope("a"), [m.chunk_id for m in await stored.search_dense(Scope("a"), vector_of("red"), 1)], 9, 9
    )
    _, second, third, _ = sorted(chunks, key=lambda chunk: chunk.start)
    places = [(document.id, second.end - 1, third.start + 1), (document.id, second.start, second.end), ("no id", 0, 9)]
    found = await stored.read_token_chunks(Scope("a"), places)
    assert {(each.document_id, each.start, each.text, each.title, each.tokens) for each in found} == {
        (document.id, second.start, "red", document.title, b"red"),
        (document.id, third.start, "blue", document.title, b"blue"),
    }
    assert len(found) == 2
    assert [each.text for each in await stored.read_token_chunks(Scope("a"), [(other.id, 0, 5)])] == ["green"]
    assert await stored.read_token_chunks(Scope("b"), places) == []
    assert await stored.read_token_chunks(Scope("a"), []) == []
