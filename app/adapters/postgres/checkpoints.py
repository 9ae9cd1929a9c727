"""LangGraph's saved states in Postgres."""

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from app.adapters.postgres.pool import Pool, translated_errors


async def open_saver(pool: Pool) -> AsyncPostgresSaver:
    """The stock saver on our pool, its tables made. It migrates them itself, under names of its own."""
    saver = AsyncPostgresSaver(pool)
    with translated_errors():
        await saver.setup()
    return saver
