"""Runs a worker: a process that executes runs and reads uploads for the servers."""

import asyncio
import signal
from importlib.metadata import version

from app.ingest.parser_workers import DRAIN_SECONDS as PARSING_SECONDS
from app.serving.shutdown import end_in_time
from app.settings import read_settings
from app.support.logs import configure_logs
from app.support.memory import give_back_memory, leave_what_is_open
from app.support.metrics import serve_metrics
from app.support.terminal import count, out
from app.wiring.services import open_services


async def run_worker(concurrency: int, metrics_port: int | None = None) -> int:
    """Take runs and uploads from the queue until told to stop, and serve metrics on the port. Returns the exit code."""
    settings = read_settings()
    configure_logs(settings.log_format)
    give_back_memory()
    if metrics_port is not None:
        serve_metrics(metrics_port)
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with open_services(settings) as services:
        # Prepared now, so that the first run need not wait.
        await services.models.judges.prepare()
        services.library.tend_indexes()
        async with services.make_run_manager() as manager:
            await manager.work(concurrency)
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, told.set)
            leave_what_is_open()
            out.print(
                f"[bold]askgraph {version('askgraph')} worker[/bold] is ready: {count(concurrency, 'run')} at once, "
                f"{services.parts['database']}"
            )
            await told.wait()
            end_in_time()
            await asyncio.gather(manager.drain(), services.library.parsers.close(PARSING_SECONDS))
    return 0
