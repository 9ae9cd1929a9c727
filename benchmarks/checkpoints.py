"""Measures the cost of saving states: LangGraph's saver beside ours, each saving only a turn's last state (`exit`) or
every step's.

    python -m benchmarks.checkpoints

On the answer graph over the sample library, without a language model. The variants take turns, so that
other load on the machine affects all alike, and medians count. Compare the rows with each other, not with those of
another machine. CPU is that of this process, without Postgres.
"""

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from typing import Literal
from uuid import uuid4

import numpy as np
import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.sql import SQL, Identifier

from app.adapters.embedded import open_servers
from app.adapters.postgres.checkpoints.saver import PackedSaver, open_saver
from app.adapters.postgres.migrations import upgrade
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_pool
from app.samples import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.shared import make_questions
from domain.scope import Scope
from domain.state import TurnInput
from graphs.answer import RECURSION_LIMIT, AnswerGraph
from graphs.speculation import speculate
from nodes.context import Context

CLIENTS = 32
ROUNDS = 3
"""In each round every variant runs once, with all clients at once; the median round counts."""
TURNS_A_THREAD = 2
"""Turns per thread."""
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")

Durability = Literal["exit", "async"]


@dataclass
class Way:
    """A saver and how it is used, with a database of its own, and what was measured."""

    name: str
    pool: Pool
    saver: AsyncPostgresSaver
    durability: Durability
    milliseconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    """Seconds of each round of `CLIENTS`."""
    turns: int = 0
    """All that were run, for what they took up."""

    async def open_thread(self) -> str:
        """Make a thread, as accepting a question does. Its states are open to its workspace alone."""
        thread_id = str(uuid4())
        async with borrow(self.pool, ALL_WORKSPACES) as connection:
            await connection.execute(
                "INSERT INTO threads (thread_id, workspace_id) VALUES (%s, 'default')", (thread_id,)
            )
        return thread_id

    async def take(self, graph: AnswerGraph, turn: TurnInput, thread_id: str, context: Context) -> None:
        """Run a turn to where its states are stored."""
        config = RunnableConfig(
            configurable={"thread_id": thread_id},
            metadata={"run_id": turn["run_id"], "workspace_id": turn["scope"]["workspace_id"], "mode": turn["mode"]},
            recursion_limit=RECURSION_LIMIT,
        )
        async with speculate(context) as ahead:
            await graph.ainvoke(turn, config, context=ahead, durability=self.durability)
        if isinstance(self.saver, PackedSaver):
            await self.saver.flush(thread_id)
        self.turns += 1

    async def weigh(self) -> tuple[float, float]:
        """Bytes a turn in the rows themselves, and with indexes and what else the tables take up."""
        async with borrow(self.pool, ALL_WORKSPACES) as connection:
            rows = whole = 0
            for table in TABLES:
                await connection.execute(SQL("VACUUM {}").format(Identifier(table)))
                query = SQL("SELECT coalesce(sum(pg_column_size(t.*)), 0)::bigint rows FROM {} t")
                rows += (await (await connection.execute(query.format(Identifier(table)))).fetchone() or {})["rows"]
                size = await connection.execute("SELECT pg_total_relation_size(%s) whole", (table,))
                whole += (await size.fetchone() or {})["whole"]
        return rows / self.turns, whole / self.turns


async def main() -> None:
    """Measure and print."""
    async with AsyncExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="askgraph-bench-")))
        servers = await stack.enter_async_context(open_servers(home))
        assert servers.database_url
        assert servers.redis_url
        await upgrade(servers.database_url)
        settings = read_settings(
            DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url, home=home, load_samples=False
        )
        services = await stack.enter_async_context(open_services(settings))
        await services.library.ingestion.add_paths("default", [FOLDER])
        await services.library.wait_for_indexes()
        turns = [make_turn(services, question) for question in await make_questions(services)]
        numbers = count()

        async def open_ways() -> list[Way]:
            async def open_way(name: str, durability: Durability, *, ours: bool) -> Way:
                url = await create_database(servers.database_url or "", next(numbers))
                if not ours:
                    # The role that serves may not create tables.
                    async with AsyncPostgresSaver.from_conn_string(url) as stock:
                        await stock.setup()
                    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as owner:
                        await owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC")
                pool = await stack.enter_async_context(open_pool(url))
                if ours:
                    saver = await stack.enter_async_context(open_saver(pool))
                    return Way(name, pool, saver.within("default"), durability)
                return Way(name, pool, AsyncPostgresSaver(pool), durability)

            return [
                await open_way("stock, exit", "exit", ours=False),
                await open_way("stock, every step", "async", ours=False),
                await open_way("ours, exit", "exit", ours=True),
                await open_way("ours, every step", "async", ours=True),
            ]

        ways = await open_ways()
        await compare(ways, services.runs.graph, turns, services.make_context)
        await show("the answer graph over the sample library, standard mode, no language model", ways)


def make_turn(services: Services, question: str) -> TurnInput:
    """A question as it enters the graph."""
    profile = services.modes["standard"].model_dump()
    return TurnInput(
        run_id=str(uuid4()),
        question=question,
        scope=Scope.within("default", None).to_json(),
        mode="standard",
        profile=profile,
    )


async def compare(
    ways: Sequence[Way], graph: AnswerGraph, turns: Sequence[TurnInput], make_context: Callable[[], Context]
) -> None:
    """Measure `ways` in turns: one client, then `CLIENTS` at once."""
    graphs = {way.name: graph.copy({"checkpointer": way.saver}) for way in ways}
    for way in ways:
        # What is prepared and cached once is nobody's.
        await way.take(graphs[way.name], turns[0], await way.open_thread(), make_context())
    threads: dict[str, str] = {}
    for number, turn in enumerate(turns):
        if number % TURNS_A_THREAD == 0:
            threads = {way.name: await way.open_thread() for way in ways}
        first = number % len(ways)
        for way in [*ways[first:], *ways[:first]]:
            started, used = perf_counter(), process_time()
            await way.take(graphs[way.name], turn, threads[way.name], make_context())
            way.milliseconds.append((perf_counter() - started) * 1000)
            way.cpu.append((process_time() - used) * 1000)

    for number in range(ROUNDS):
        first = number % len(ways)
        for way in [*ways[first:], *ways[:first]]:
            opened = [await way.open_thread() for _ in range(CLIENTS)]
            started = perf_counter()
            await asyncio.gather(
                *(
                    way.take(graphs[way.name], turns[client % len(turns)], thread_id, make_context())
                    for client, thread_id in enumerate(opened)
                )
            )
            way.together.append(perf_counter() - started)


async def show(title: str, ways: Sequence[Way]) -> None:
    """Print the table, and every step's cost beside that of the last state alone."""
    print(f"\nstates: {title} ({len(ways[0].milliseconds)} turns of one client, {CLIENTS} clients at once)")
    print(f"  {'':<20}{'p50 ms':>9}{'CPU ms':>9}{'turns/s':>9}{'bytes a turn':>14}{'in the tables':>15}")
    figures = {}
    for way in ways:
        p50, cpu = float(np.median(way.milliseconds)), float(np.median(way.cpu))
        rate = CLIENTS / float(np.median(way.together))
        rows, whole = await way.weigh()
        figures[way.name] = (p50, cpu, rate)
        print(f"  {way.name:<20}{p50:>9.1f}{cpu:>9.1f}{rate:>9.1f}{rows:>14,.0f}{whole:>15,.0f}")
    for name, base in (
        ("stock, every step", "stock, exit"),
        ("ours, every step", "stock, exit"),
        ("ours, every step", "ours, exit"),
    ):
        p50, cpu, rate = (a / b for a, b in zip(figures[name], figures[base], strict=True))
        print(f"  {name} / {base}: p50 {p50:.2f}, CPU {cpu:.2f}, turns/s {rate:.2f}")


async def create_database(url: str, number: int) -> str:
    """An empty database with the schema."""
    name = f"states_{number}"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    created = url.replace("@/askgraph?", f"@/{name}?")
    await upgrade(created)
    return created


if __name__ == "__main__":
    asyncio.run(main())
