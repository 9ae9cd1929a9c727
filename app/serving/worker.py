"""Runs a worker: a process that executes runs and reads uploads for the servers."""

import asyncio
import signal
from importlib.metadata import version

from app.cli.terminal import count, out
from app.ingest.parser_workers import DRAIN_SECONDS as PARSING_SECONDS
from app.settings import read_settings
from app.wiring.services import open_services


async def run_worker(concurrency: int) -> int:
    """Take runs and uploads from the queue until told to stop. Returns the exit code."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with open_services(read_settings()) as services:
        # Prepared now, so that the first run need not wait.
        await services.models.judges.prepare()
        services.library.tend_indexes()
        async with services.make_run_manager() as manager:
            await manager.work(concurrency)
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, told.set)
            out.print(
                f"[bold]askgraph {version('askgraph')} worker[/bold] is ready: {count(concurrency, 'run')} at once, "
                f"{services.parts['database']}"
            )
            await told.wait()
            await asyncio.gather(manager.drain(), services.library.parsers.close(PARSING_SECONDS))
    return 0
