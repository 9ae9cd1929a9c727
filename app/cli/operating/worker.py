import logging
from typing import Annotated

import typer

from app.cli.support.options import new_cli
from app.cli.support.running import run
from app.serving.worker import run_worker

cli = new_cli()


@cli.command()
def worker(
    concurrency: Annotated[int, typer.Option(help="Runs to execute at once.", min=1)] = 8,
    metrics_port: Annotated[int | None, typer.Option(help="Serve metrics for Prometheus on this port.")] = None,
) -> None:
    """Execute runs and read uploads for servers on the same database.

    It takes runs and uploads that are queued and those whose server has died. Ctrl-C lets current runs end, or leaves
    them to other processes.
    """
    run(run_worker(concurrency, metrics_port), log_level=logging.INFO)
