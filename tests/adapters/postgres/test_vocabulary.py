"""The cost of a correction, and the words that are stored. Its results are tested in the contract."""

from typing import Any

import pytest

from app.adapters.postgres.documents.store import PostgresDocumentStore
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.library.vocabulary import FIND_SIMILAR_WORDS, count_edits
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, Session, borrow
from domain.scope import Scope
from tests.contracts.corpus import store


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("falke", "falke", 0), ("fakle", "falke", 1), ("falk", "falke", 1), ("flake", "falke", 1), ("", "ab", 2),
     ("calibration", "calbrtaion", 2), ("ca", "abc", 3)],
)  # fmt: skip
def test_edits_are_counted_with_swaps(one: str, other: str, edits: int) -> None:
    assert count_edits(one, other) == count_edits(other, one) == edits


@pytest.mark.parametrize(
    ("words", "statements"), [(["warranty"], 1), (["waranty", "hundbook", "paragrpah"], 2), ([], 0)]
)
async def test_two_statements_suffice_for_any_number_of_words(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, words: list[str], statements: int
) -> None:
    await store(PostgresDocumentStore(pool), "a", "a.md", ["The warranty of the paragraph."])
    execute, run = Session.execute, []

    async def count(session: Session, query: str, **options: object) -> object:
        run.append(query)
        return await execute(session, query, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "execute", count)
    await PostgresLibrary(pool).suggest_words(Scope("a"), words, None, "en")
    assert len(run) == statements


async def test_codes_and_short_words_are_not_stored(pool: Pool) -> None:
    await store(
        PostgresDocumentStore(pool), "a", "a.md", ["The IL-6 cup of Åsa, room B204, has 3,000 readers' notes."], "T"
    )
    async with borrow(pool, ALL_WORKSPACES) as connection:
        rows = await (await connection.execute("SELECT word FROM vocabulary ORDER BY word")).fetchall()
    assert [row["word"] for row in rows] == ["notes", "readers", "room"]


async def test_a_word_is_deleted_with_the_last_chunk_of_its_stem(pool: Pool) -> None:
    documents = PostgresDocumentStore(pool)
    await store(documents, "a", "a.md", ["Station calibrated."], "")
    other = await store(documents, "a", "b.md", ["Station calibration."], "")
    await store(documents, "a", "a.md", ["Station."], "")

    async def read_words() -> list[str]:
        async with borrow(pool, ALL_WORKSPACES) as connection:
            rows = await (await connection.execute("SELECT word FROM vocabulary ORDER BY word")).fetchall()
        return [row["word"] for row in rows]

    assert await read_words() == ["calibrated", "calibration", "station"]
    await documents.delete("a", other.id)
    assert await read_words() == ["station"]


async def test_the_plan_is_good_without_statistics_of_the_workspace(pool: Pool) -> None:
    """A plan that looks up the similar words once for each known term would take minutes."""
    words = [f"{stem}{ending}" for stem in ("alpha", "beta", "gamma", "delta") for ending in range(1000)]
    async with borrow(pool, ALL_WORKSPACES) as connection:
        for workspace_id, some in (("a", words[:100]), ("b", words)):
            await connection.execute(
                "INSERT INTO vocabulary SELECT %s, word, n FROM unnest(%s::text[]) WITH ORDINALITY AS w (word, n)",
                (workspace_id, some),
            )
            await connection.execute(
                "INSERT INTO term_frequencies (workspace_id, term, chunks)"
                " SELECT %s, n, 1 FROM generate_series(1, %s::int) AS n",
                (workspace_id, len(some)),
            )
            if workspace_id == "a":
                await connection.execute("ANALYZE vocabulary, term_frequencies")
        plan = await (
            await connection.execute(
                f"EXPLAIN (ANALYZE, FORMAT JSON) {FIND_SIMILAR_WORDS}",
                {"workspace_id": "b", "variants": ["philosophical"], "long": ["philosophycal"], "similar": 20,
                 "prefix": None, "prefix_end": None, "document_ids": None, "groups": None},
                prepare=False,
            )
        ).fetchone()  # fmt: skip
    assert plan is not None
    assert max(_count_loops(plan["QUERY PLAN"][0]["Plan"])) <= 20


def _count_loops(plan: dict[str, Any]) -> list[int]:
    """Return the number of times that each scan of the words was executed."""
    own = [plan["Actual Loops"]] if plan.get("Relation Name") == "vocabulary" else [0]
    return own + [loops for part in plan.get("Plans", []) for loops in _count_loops(part)]
