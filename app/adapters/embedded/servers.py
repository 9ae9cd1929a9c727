"""The client's side of the embedded servers: join those that run, or start them."""

import asyncio
import contextlib
import errno
import fcntl
import logging
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import Signals
from typing import Protocol

from app.adapters.embedded import supervisor
from app.adapters.embedded.folders import Folders
from app.adapters.embedded.postgres import Postgres
from app.adapters.embedded.privileges import ENVIRONMENT
from app.adapters.embedded.valkey import Valkey
from domain.errors import ConfigurationError, Unavailable

START_SECONDS = 60.0
"""Seconds that a server may take to answer: creation, or recovery after a crash, on a slow disk."""

STOP_SECONDS = 20.0
"""Seconds that the last client waits for the server to stop. A slower server stops all the same."""

POLL_SECONDS = 0.02

WATCH_SECONDS = 0.2
"""Seconds between a client's checks that the server is supervised."""

LAUNCHES = 4
"""How often a server that ends at once is started, the last time without the data that it can do without."""

LOG_LINES = 15


logger = logging.getLogger("askgraph.embedded")


@dataclass(frozen=True)
class Servers:
    """Addresses of the embedded servers; None for one that was not requested."""

    database_url: str | None
    """`postgresql://…?host=FOLDER`, as libpq, asyncpg and SQLAlchemy read it."""
    redis_url: str | None
    """`unix://PATH?db=0`, as redis-py reads it."""


class Server(Protocol):
    """The differences between the servers."""

    name: str
    stop: Signals
    url: str
    folders: Folders
    unavailable: type[Unavailable]
    essential: bool
    """False where the service runs without it."""

    def prepare(self, lock: int) -> list[str]: ...

    async def ping(self) -> None: ...

    def set_data_aside(self) -> None:
        """Move data that the server cannot read out of its way, where it can do without."""


@asynccontextmanager
async def open_servers(home: Path, *, postgres: bool = True, redis: bool = True) -> AsyncIterator[Servers]:
    """Run the embedded servers with their data in `home`, shared with other processes that do the same.

    A cache that does not start is logged, and its address leads nowhere. Raises `ConfigurationError` if this machine
    cannot run the servers, and `DatabaseUnavailable`, with the last lines of the server's log, if Postgres does not
    start.
    """
    if sys.platform != "linux":
        raise ConfigurationError(
            "The embedded servers run on Linux. Elsewhere, set DATABASE_URL (Postgres with pgvector) and REDIS_URL "
            "(Redis or Valkey)."
        )
    folders = Folders.make(home)
    async with AsyncExitStack() as stack:
        database_url = await stack.enter_async_context(_running(Postgres(folders))) if postgres else None
        redis_url = await stack.enter_async_context(_running(Valkey(folders))) if redis else None
        yield Servers(database_url, redis_url)


@asynccontextmanager
async def _running(server: Server) -> AsyncIterator[str]:
    lease = await _take_lease(server)
    watch: asyncio.Task[None] | None = None
    try:
        try:
            await _start(server)
            watch = asyncio.create_task(_watch(server))
        except Unavailable as error:
            if server.essential:
                raise
            logger.error("Going on without %s. %s", server.name, error.message)
        yield server.url
    finally:
        if watch is not None:
            watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watch
        os.close(lease)
        await _wait_until_stopped(server)


async def _take_lease(server: Server) -> int:
    """Take the shared lease, waiting while a supervisor shuts the server down."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (lease := _lock(server, "lease", fcntl.LOCK_SH)) is not None:
            return lease
        await asyncio.sleep(POLL_SECONDS)
    raise _failure(server, "an earlier one has not stopped")


async def _start(server: Server) -> None:
    """Return once the server answers, whichever process started it."""
    deadline = time.monotonic() + START_SECONDS
    launches = 0
    reason = "it does not answer"
    while time.monotonic() < deadline:
        if (lock := _lock(server, "supervisor", fcntl.LOCK_EX)) is not None:
            if launches == LAUNCHES:
                os.close(lock)
                raise _failure(server, "it ended at once")
            launches += 1
            if launches == LAUNCHES:
                server.set_data_aside()
            await asyncio.to_thread(_launch, server, lock)
        try:
            await server.ping()
        except Unavailable as error:
            reason = error.message
        else:
            return
        await asyncio.sleep(POLL_SECONDS)
    raise _failure(server, reason)


async def _watch(server: Server) -> None:
    """Start the server again, with a new supervisor, when one of them has ended: neither outlives the other."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        if (lock := _lock(server, "supervisor", fcntl.LOCK_EX)) is None:
            continue
        os.close(lock)
        logger.warning("%s has ended; starting it again", server.name)
        try:
            await _start(server)
        except (Unavailable, ConfigurationError) as error:
            logger.error("%s", error.message)


def _launch(server: Server, lock: int) -> None:
    """Prepare the server's files and pass them, with the lock, to a new supervisor."""
    try:
        command = server.prepare(lock)
        lease, held = (str(_lock_path(server, kind)) for kind in ("lease", "server"))
        arguments = [lease, held, str(_log_path(server)), str(int(server.stop)), *command]
        subprocess.run(
            [sys.executable, "-I", "-S", supervisor.__file__, *arguments],
            env=ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock,),
            # Ctrl-C reaches every process of the terminal's group, and the supervisor must outlive its clients.
            start_new_session=True,
            check=True,
        )
    except OSError as error:
        raise ConfigurationError(f"{server.name} cannot be started in {server.folders.home}: {error}.") from error
    finally:
        os.close(lock)


async def _wait_until_stopped(server: Server) -> None:
    """Wait for the supervisor to end, or return if other clients still need it.

    A leaving supervisor holds the lease exclusively. It may need a moment to get it, so a lease that can still be
    shared is checked several times.
    """
    deadline = time.monotonic() + STOP_SECONDS
    shared = 0
    while time.monotonic() < deadline and shared < 5:
        if (lock := _lock(server, "supervisor", fcntl.LOCK_EX)) is not None:
            os.close(lock)
            return
        if (lease := _lock(server, "lease", fcntl.LOCK_SH)) is not None:
            os.close(lease)
            shared += 1
        await asyncio.sleep(POLL_SECONDS)


def _lock(server: Server, kind: str, operation: int) -> int | None:
    """Return an open file that holds the lock until it is closed, or None if another process has a conflicting lock."""
    try:
        file = os.open(_lock_path(server, kind), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigurationError(f"The folder {server.folders.home} cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(file, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file


def _lock_path(server: Server, kind: str) -> Path:
    return server.folders.locks / f"{server.name}.{kind}"


def _log_path(server: Server) -> Path:
    return server.folders.logs / f"{server.name}.log"


def _failure(server: Server, reason: str) -> Unavailable:
    log = _log_path(server)
    lines: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        lines = log.read_text(errors="replace").splitlines()[-LOG_LINES:]
    if any(os.strerror(errno.ENOSPC) in line for line in lines):
        reason = f"the disk of {server.folders.home} is full, make room on it"
    return server.unavailable("\n".join([f"{server.name} did not start: {reason}. The end of {log}:", *lines]))
