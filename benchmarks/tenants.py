"""Measures what row-level security costs: searches and whole turns with it and without, question by question.

    BENCH_CHUNKS=20000 python -m benchmarks.tenants    # a minute; 20,000 unless told, beside four smaller workspaces

Both sides are in one process, on one database, and take turns. `one` asks in one workspace; `five` in five by turns, so
that connections have to turn to another workspace.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from psycopg import AsyncCursor

from app.adapters.embedded import open_servers
from app.adapters.postgres import pool as pool_module
from app.adapters.postgres.library.library import PostgresLibrary
from app.adapters.postgres.pool import open_pool
from app.answering.requests import Ask, collect
from app.library import FOLDER
from app.settings import read_settings
from app.wiring.services import open_services
from benchmarks.corpus import Question, make_documents, make_questions
from domain.scope import Scope

CHUNKS = int(os.environ.get("BENCH_CHUNKS", "20000"))
WORKSPACES = {"large": CHUNKS} | {f"w{percent}": CHUNKS * percent // 100 for percent in (12, 8, 4, 2)}
QUESTIONS = 60
TURNS = 30
ASKED = ("How often is the torque wrench calibrated?", "Who may enter the server room?", "When is a password changed?")

Measured = Callable[[], Awaitable[Any]]


@asynccontextmanager
async def without_row_level_security() -> AsyncIterator[None]:
    """Open pools as on a server that has no role for us."""

    async def find_no_role(connection: Any) -> None:
        return None

    with patch.object(pool_module, "find_role", find_no_role):
        yield


async def measure_searches(protected: PostgresLibrary, bare: PostgresLibrary) -> None:
    """Both legs and the reading of what they found."""

    async def search(library: PostgresLibrary, workspace: str, question: Question) -> None:
        scope = Scope(workspace)
        dense = await library.search_dense(scope, question.embedding, 40)
        lexical = await library.search_lexical(scope, question.text, 40)
        await library.score_dense(scope, question.embedding, [match.chunk_id for match in lexical])
        await library.score_lexical(scope, question.text, [match.chunk_id for match in dense])
        await library.read_passages(scope, [match.chunk_id for match in dense[:20]])

    questions = {name: make_questions(name, size, QUESTIONS) for name, size in WORKSPACES.items()}
    by_turns = list(WORKSPACES)
    for label, places in (("one", ["large"] * QUESTIONS), ("five", (by_turns * QUESTIONS)[:QUESTIONS])):
        seconds: dict[str, list[float]] = {"with": [], "without": []}
        for number, place in enumerate(places):
            for side, library in (("with", protected), ("without", bare)):
                started = time.perf_counter()
                await search(library, place, questions[place][number])
                if number >= 10:
                    seconds[side].append(time.perf_counter() - started)
        report(f"search, {label} workspace{'s' * (label != 'one')}", seconds)
        print(f"    {await count_statements(lambda: search(protected, 'large', questions['large'][1]))}")


async def measure_turns(servers: Any, home: Path) -> None:
    """Whole turns over the sample documents, without a language model and without the cache."""
    settings = read_settings(
        DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url, home=home, answer_ttl_hours=1
    )
    async with AsyncExitStack() as stack:
        async with without_row_level_security():
            bare = await stack.enter_async_context(open_services(settings))
        protected = await stack.enter_async_context(open_services(settings))
        await protected.library.ingestion.add_paths("samples", [FOLDER])
        sides = {"with": protected, "without": bare}
        turns = {side: await stack.enter_async_context(services.make_run_manager()) for side, services in sides.items()}
        seconds: dict[str, list[float]] = {"with": [], "without": []}

        async def ask(side: str, number: int) -> None:
            # Its own question each time, so that no answer is in the cache.
            question = f"{ASKED[number % len(ASKED)]} {side} {number}"
            done, _ = await collect(await turns[side].ask(Ask(question, Scope("samples"))))
            assert done["type"] == "done", done

        for number in range(TURNS + 6):
            for side in ("with", "without") if number % 2 else ("without", "with"):
                started = time.perf_counter()
                await ask(side, number)
                if number >= 6:
                    seconds[side].append(time.perf_counter() - started)
        report("turn", seconds)
        print(f"    with:    {await count_statements(lambda: ask('with', 1000))}")
        print(f"    without: {await count_statements(lambda: ask('without', 1001))}")


async def count_statements(do: Measured) -> str:
    """Count the statements, and those that turn a connection, which travel with the statement that follows."""
    sent: list[str] = []
    execute = AsyncCursor.execute

    async def note(cursor: AsyncCursor[Any], query: Any, *args: Any, **options: Any) -> AsyncCursor[Any]:
        sent.append(str(query))
        return await execute(cursor, query, *args, **options)

    with patch.object(AsyncCursor, "execute", note):
        await do()
    turning = sum("askgraph.workspace" in query for query in sent)
    return f"{len(sent) - turning} statements, {turning} turns to a workspace"


def report(name: str, seconds: dict[str, list[float]]) -> None:
    """Print p10 and p50 of both sides, and the ratios. On a busy machine the p10 says more."""
    lines = {side: np.array(values) * 1000 for side, values in seconds.items()}
    low, middle = ([float(np.percentile(ms, share)) for ms in (lines["with"], lines["without"])] for share in (10, 50))
    figures = f"with {low[0]:.2f} / {middle[0]:.2f} ms  without {low[1]:.2f} / {middle[1]:.2f} ms"
    print(f"{name:<26} {figures}  ratio {low[0] / low[1]:.3f} / {middle[0] / middle[1]:.3f}")


async def main() -> None:
    """Load and measure."""
    home = Path(os.environ.get("BENCH_HOME") or tempfile.mkdtemp())
    async with AsyncExitStack() as stack:
        servers = await stack.enter_async_context(open_servers(home))
        assert servers.database_url
        await measure_turns(servers, home)
        settings = read_settings(DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url, home=home)
        async with open_services(settings) as services:
            for name, size in sorted(WORKSPACES.items(), key=lambda item: item[1]):
                if await services.library.documents.is_untouched(name):
                    started = time.perf_counter()
                    await services.library.documents.load(name, make_documents(name, size))
                    print(f"load {name}: {size / (time.perf_counter() - started):.0f} chunks/s")
        async with without_row_level_security():
            bare = await stack.enter_async_context(open_pool(servers.database_url))
        protected = await stack.enter_async_context(open_pool(servers.database_url))
        await measure_searches(PostgresLibrary(protected), PostgresLibrary(bare))


if __name__ == "__main__":
    asyncio.run(main())
