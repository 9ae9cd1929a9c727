"""Takes jobs from procrastinate's queues. Import it only where jobs are taken, because that takes 0.2 s."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any

import procrastinate
from procrastinate import exceptions, jobs, retry, worker
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from app.adapters.postgres.pool import WAIT_SECONDS
from app.adapters.postgres.queue.jobs import RETRY_SECONDS, Job, Task
from app.adapters.postgres.queue.presence import FORGOTTEN_SECONDS, Presence

logger = logging.getLogger("askgraph.worker")

POLL_SECONDS = 1.0
"""Interval at which the queue is read. New jobs are announced by notifications; polling finds those whose notification
was lost, and jobs that are due."""


class _Again(Exception):
    """Raised by a job that is to be done again."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__()


class _Retry(retry.BaseRetryStrategy):
    def get_retry_decision(self, *, exception: BaseException, job: jobs.Job) -> retry.RetryDecision:
        if isinstance(exception, _Again):
            return retry.RetryDecision(retry_in={"milliseconds": round(1000 * exception.seconds)})
        return retry.RetryDecision(retry_in={"milliseconds": round(1000 * RETRY_SECONDS)})


@asynccontextmanager
async def open_worker(
    database_url: str, presence: Presence, tasks: Sequence[Task], *, drain_seconds: float
) -> AsyncIterator["Worker"]:
    """Take jobs until the context ends, or `stop` is called. Jobs in progress get `drain_seconds` from then to finish.
    At the end of the context those that did not are cancelled and put back into the queue. An outage of the database is
    waited out."""
    # procrastinate logs an outage at every attempt, with a traceback; `Presence` logs it once.
    logging.getLogger("procrastinate").setLevel(logging.CRITICAL)
    await presence.register()
    pool = AsyncConnectionPool(
        database_url,
        kwargs={"connect_timeout": int(WAIT_SECONDS), "application_name": "askgraph worker"},
        min_size=1,
        max_size=2,
        timeout=WAIT_SECONDS,
        reconnect_timeout=WAIT_SECONDS,
        check=AsyncConnectionPool.check_connection,
        configure=_configure,
        open=False,
    )
    async with pool:
        connector = procrastinate.PsycopgConnector()
        app = procrastinate.App(connector=connector)
        async with app.open_async(pool):
            workers = Worker([_Supervisor(app, task) for task in tasks])
            running = [asyncio.create_task(supervisor.run()) for supervisor in workers.supervisors]
            presence.rescue(workers.list_ids)
            try:
                yield workers
            finally:
                stopped = workers.stop()
                _, late = await asyncio.wait(running, timeout=max(0.0, stopped + drain_seconds - monotonic()))
                if late:
                    workers.cancel()
                    await asyncio.wait(late, timeout=WAIT_SECONDS)
                presence.rescue(None)


async def _configure(connection: AsyncConnection[Any]) -> None:
    # Not in `kwargs` above, because procrastinate passes it as well for the connection that it listens on.
    await connection.set_autocommit(True)


def _take_failure(task: asyncio.Task[Any]) -> None:
    """Log that procrastinate could not finish a job: the database is away, or another worker has the job."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.info("A job could not be finished: %r", error)


class Worker:
    """The workers of procrastinate in this process: one per queue, so that no queue waits for another."""

    def __init__(self, supervisors: Sequence["_Supervisor"]) -> None:
        self.supervisors = supervisors
        self._stopped: float | None = None

    def list_ids(self) -> list[int]:
        """Return the ids under which they are registered."""
        return [number for supervisor in self.supervisors if (number := supervisor.worker_id) is not None]

    def stop(self) -> float:
        """Stop taking jobs. Returns the monotonic time of the first call."""
        if self._stopped is None:
            self._stopped = monotonic()
            for supervisor in self.supervisors:
                supervisor.stop()
        return self._stopped

    def cancel(self) -> None:
        """Cancel the jobs in progress. They go back into the queue."""
        for supervisor in self.supervisors:
            supervisor.cancel()


class _Supervisor:
    """Restarts the worker of one queue whenever it stops."""

    def __init__(self, app: procrastinate.App, task: Task) -> None:
        async def perform(context: procrastinate.JobContext, /, **args: Any) -> None:
            assert context.job.id is not None
            current = asyncio.current_task()
            assert current is not None
            self._performing.add(current)
            current.add_done_callback(_take_failure)
            try:
                seconds = await task.perform(Job(context.job.id, context.job.attempts, args))
            except Exception:
                logger.exception("A job of the queue %s failed.", task.queue)
                seconds = RETRY_SECONDS
            finally:
                self._performing.discard(current)
            if seconds is None:
                return
            if context.job.queueing_lock is None:
                raise _Again(seconds)
            # One waiting job is enough. Another may have been queued meanwhile, and procrastinate could then not put
            # this one back: it would stay as if it was being done.
            again = app.configure_task(
                task.name,
                queue=task.queue,
                queueing_lock=context.job.queueing_lock,
                schedule_in={"milliseconds": round(1000 * seconds)},
            )
            with suppress(exceptions.AlreadyEnqueued):
                await again.defer_async(**args)

        performed = app.task(
            name=task.name,
            queue=task.queue,
            # If nobody takes jobs for a day, one job is enough for all the times that were missed.
            queueing_lock=task.name if task.cron else None,
            pass_context=True,
            retry=_Retry(),
        )(perform)
        if task.cron is not None:
            app.periodic(cron=task.cron)(performed)  # type: ignore[arg-type]  # the timestamp is among `args`
        self._worker = worker.Worker(
            app,
            queues=[task.queue],
            name=task.queue,
            concurrency=task.concurrency,
            fetch_job_polling_interval=POLL_SECONDS,
            # The worker also shuts down when the database is away, which is no reason to cancel jobs.
            shutdown_graceful_timeout=None,
            delete_jobs=jobs.DeleteJobCondition.ALWAYS,
            install_signal_handlers=False,
            stalled_worker_timeout=FORGOTTEN_SECONDS,
        )
        self._performing: set[asyncio.Task[Any]] = set()
        self._stopping = False

    @property
    def worker_id(self) -> int | None:
        return self._worker.worker_id

    async def run(self) -> None:
        while not self._stopping:
            try:
                await self._worker.run()  # type: ignore[no-untyped-call]
            except exceptions.ConnectorException as error:
                logger.info("The worker of the queue stopped: %r", error)
            except Exception:
                logger.exception("The worker of a queue failed.")
            if not self._stopping:
                await asyncio.sleep(RETRY_SECONDS)

    def stop(self) -> None:
        self._stopping = True
        self._worker.stop()  # type: ignore[no-untyped-call]

    def cancel(self) -> None:
        for task in self._performing:
            task.cancel()
