"""Migration 0015 gives the runs of older versions their outcomes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier, Placeholder
from psycopg.types.json import Jsonb

from app.adapters.embedded import Servers
from app.adapters.postgres.migrations import upgrade
from tests.conftest import create_database

CITATION = {"marker": 1}
NOTHING = "The documents do not answer this."
FOUND = {"code": "nothing_found", "searched": "the first query", "nearest": []}

RUNS: dict[str, tuple[dict[str, Any], str | None, list[dict[str, Any]]]] = {
    "failed": ({"error": "model_unavailable"}, None, []),
    "stopped": ({"error": "stopped", "answer": "The"}, None, []),
    "small talk": ({"route": "conversational"}, "conversed", []),
    "refusal": ({"route": "out_of_scope"}, "declined", []),
    "answer": ({"answer": "24 months [1].", "citations": [CITATION]}, "answered", []),
    "low": (
        {
            "answer": "The documents may answer this only in part. 24 months [1].",
            "citations": [CITATION],
            "confidence": 0.5,
        },
        "answered_with_caveat",
        [{"code": "low_confidence", "confidence": 0.5}],
    ),
    "missing": (
        {"answer": "24 months [1]. The sources do not mention “Oslo” or “2031”.", "citations": [CITATION]},
        "answered_with_caveat",
        [{"code": "missing_words", "words": ["Oslo", "2031"]}],
    ),
    "uncited": (
        {
            "answer": "Long.",
            "answered_by": "m",
            "warnings": ["The answer cites no source, so nothing shows that it comes from the documents."],
        },
        "answered_with_caveat",
        [{"code": "uncited"}],
    ),
    "abstention": (
        {"answer": f"{NOTHING} I searched for “x”.", "timings": {"abstain": 1.0, "total": 2.0}, "retries": 2},
        "abstained",
        [{**FOUND, "scope_is_empty": False}, {"code": "retries_spent", "retries": 2}],
    ),
    "empty": (
        {"answer": f"{NOTHING} There was nothing to search in: …", "timings": {"abstain": 1.0}},
        "abstained",
        [{**FOUND, "scope_is_empty": True}],
    ),
    "by a model": (
        {"answer": NOTHING, "answered_by": "m"},
        "abstained",
        [{"code": "model_abstained", "model": "m"}],
    ),
    "by quoting": ({"answer": NOTHING, "answered_by": "local"}, "abstained", [{"code": "nothing_quotable"}]),
    "withdrawn": (
        {"answer": NOTHING, "answered_by": "m", "verification": "reconciled"},
        "abstained",
        [{"code": "nothing_supported", "claims": 0}],
    ),
}
"""By name: columns of the run's row, and the outcome and reasons that they come to."""

BLANK = {
    "thread_id": "t", "workspace_id": "a", "mode": "fast", "question": "?", "started_at": "2026-11-01",
    "standalone_question": "?", "queries": ["the first query"], "route": "needs_retrieval", "retries": 0,
    "candidates": 0, "sources": 0, "confidence": 0.0, "verification": "skipped", "cached": False, "answer": "",
    "citations": [], "usage": [], "timings": {}, "warnings": [], "answered_by": "", "degraded": [], "prompts": {},
}  # fmt: skip


@pytest_asyncio.fixture
async def old_url(servers: Servers) -> AsyncIterator[str]:
    """A database as the version before 0015 left it."""
    async with create_database(servers, "template1") as url:
        await upgrade(url, "0014")
        yield url


async def insert(connection: AsyncConnection, table: str, row: dict[str, Any]) -> None:
    statement = SQL("INSERT INTO {} ({}) VALUES ({})").format(
        Identifier(table), SQL(", ").join(map(Identifier, row)), SQL(", ").join(map(Placeholder, row))
    )
    values = {key: Jsonb(value) if isinstance(value, dict | list) else value for key, value in row.items()}
    await connection.execute(statement, values)


async def test_runs_of_older_versions_get_their_outcome(old_url: str) -> None:
    async with await AsyncConnection.connect(old_url) as connection:
        await insert(connection, "threads", {"thread_id": "t", "workspace_id": "a"})
        for name, (columns, _, _) in RUNS.items():
            await insert(connection, "runs", {**BLANK, "run_id": name, **columns})
            ended = {"type": "error" if name == "failed" else "done", "answer": columns.get("answer", "")}
            await insert(
                connection,
                "accepted_runs",
                {
                    "workspace_id": "a", "run_id": name, "thread_id": "t", "request": {}, "state": "done",
                    "attempt": 1, "ended": ended, "job_id": 0,
                },
            )  # fmt: skip
    await upgrade(old_url)
    async with await AsyncConnection.connect(old_url) as connection:
        cursor = await connection.execute("SELECT run_id, outcome, outcome_reasons FROM runs")
        assert {row[0]: row[1:] for row in await cursor.fetchall()} == {
            name: (outcome, reasons) for name, (_, outcome, reasons) in RUNS.items()
        }
        ended = dict(await (await connection.execute("SELECT run_id, ended FROM accepted_runs")).fetchall())
    assert "outcome" not in ended.pop("failed")
    for name, event in ended.items():
        assert (event["outcome"], event["outcome_reasons"]) == RUNS[name][1:]
        assert event["abstained"] == (event["outcome"] == "abstained")
    framing = {name: (event["framing"]["opening"], event["framing"]["closing"]) for name, event in ended.items()}
    assert framing["low"] == (len("The documents may answer this only in part. "), 0)
    assert framing["missing"] == (0, len(" The sources do not mention “Oslo” or “2031”."))
    assert framing["answer"] == (0, 0)
