"""Parser workers: processes that read files for this one.

A file that takes too long, takes too much memory or crashes its parser costs its worker and nothing else: the service
goes on answering, and stops when it is told to. Workers start when they are needed, are used again, and end with the
process that started them. They share nothing, so one that dies leaves the others as they are.

This bounds resources. It is no sandbox: a worker may open what the service may, but it gets none of its environment.
"""

import asyncio
import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from app.ingest.parser_process import HEADER, MEMORY_MB, NICENESS, NOTE, OUT_OF_MEMORY, SECONDS
from app.ingest.reading_progress import Listener
from app.support.turns import Turns
from domain.errors import CostlyDocument, Draining

SECONDS_PER_MB = 10.0
"""Computing time for each further megabyte of the file. The slowest format, reStructuredText, takes 4 s."""
PATIENCE = 10
"""A worker is also ended after this many times its computing time, in case it waits instead of
computing. A busy machine may give it a tenth of a processor."""
IDLE_SECONDS = 60.0
"""Time after which an idle worker is ended."""
DRAIN_SECONDS = 3.0
"""Time that files in work get once the process is told to end."""
WORN_MB = 256
"""A worker that has taken more memory is not used again: Python seldom gives memory back."""

_KEPT = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "TZ")
"""Environment variables that a worker gets. No keys are among them."""

Result = TypeVar("Result")


class ParserWorkers:
    """The parser workers of this process. Belongs to one event loop; `close` ends it."""

    def __init__(
        self,
        at_once: int | None = None,
        *,
        seconds: float = SECONDS,
        memory_mb: int = MEMORY_MB,
        niceness: int = NICENESS,
    ) -> None:
        """`seconds` is the computing time for a small file."""
        self.places = at_once or max(2, os.cpu_count() or 1)
        """Files that are read at once, beside as many short jobs."""
        self._turns = Turns(self.places)
        self._short_turns = Turns(self.places)
        self._seconds = seconds
        self._memory_mb = memory_mb
        self._niceness = niceness
        self._idle: list[_Worker] = []
        self._busy: dict[asyncio.Task[Any], _Worker] = {}
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(
        self,
        job: Callable[[], Result],
        size: int = 0,
        listener: Listener | None = None,
        owner: str = "",
        *,
        is_short: bool = False,
    ) -> Result:
        """Run a job on a file of `size` bytes in a worker. The job is pickled: a `functools.partial` of a function.
        `listener` hears of the pages that it has read. Owners, such as workspaces, take turns. Jobs that are short,
        such as drawing a page, have places of their own: they do not wait for whole files.

        A crash is tried once more, in a new process. Cancelling this ends the worker.

        Raises what the job raises, `CostlyDocument` where it reaches a limit or crashes, and `Draining` once the
        workers are closed.
        """
        seconds = self._seconds + size / 1e6 * SECONDS_PER_MB
        task = asyncio.current_task()
        assert task is not None
        async with (self._short_turns if is_short else self._turns).take(owner):
            # Not before its turn: it is a copy of the file.
            request = await asyncio.to_thread(pickle.dumps, (job, seconds))
            try:
                for is_last in (False, True):
                    idle = None if is_last else await self._take_idle()
                    worker = idle or await _Worker.start(self._memory_mb, self._niceness)
                    if self._is_closed:
                        await worker.end()
                        raise Draining
                    self._busy[task] = worker
                    try:
                        reply = await worker.perform(request, seconds * PATIENCE, listener)
                    except _Died as death:
                        if self._is_closed:
                            raise Draining from death
                        if is_last or death.is_late:
                            raise CostlyDocument(self._explain(death, seconds)) from death
                    else:
                        break
            finally:
                self._busy.pop(task, None)
            try:
                outcome, error, peak_mb = await asyncio.to_thread(pickle.loads, reply)
            except BaseException:
                await worker.end()
                raise
            if self._is_closed or peak_mb > WORN_MB:
                await worker.end()
            else:
                self._idle.append(worker)
                worker.expire(self._idle)
        if error is not None:
            raise error
        result: Result = outcome
        return result

    async def _take_idle(self) -> "_Worker | None":
        """Take a worker out of the idle ones that is still there: the operating system may have ended it."""
        while self._idle:
            worker = self._idle.pop()
            if worker.is_alive:
                return worker
            await worker.end()
        return None

    async def close(self, seconds: float = 0.0) -> None:
        """Take no more files, and end all workers: those at work after `seconds`."""
        self._is_closed = True
        if seconds and self._busy:
            await asyncio.wait(list(self._busy), timeout=seconds)
        workers = [*self._idle, *self._busy.values()]
        self._idle.clear()
        await asyncio.gather(*(worker.end() for worker in workers))

    def _explain(self, death: "_Died", seconds: float) -> str:
        if death.is_late:
            return f"Reading the file took more than {seconds:.0f} s. Split it, or save it in a simpler form."
        if death.status == OUT_OF_MEMORY:
            return f"Reading the file took more than {self._memory_mb:,} MB. Split it, or save it in a simpler form."
        return (
            "Reading the file crashed its reader twice, which damaged files do, and files that take more than "
            f"{self._memory_mb:,} MB of memory. Save it again, or split it."
        )


class _Died(Exception):
    """A worker ended without a reply."""

    def __init__(self, status: int | None, *, is_late: bool) -> None:
        self.status = status
        """The exit status, or the negative number of the signal."""
        self.is_late = is_late
        """True where it took too long, as it would again."""
        super().__init__(f"The parser worker ended with status {status}.")


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._expiry: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls, memory_mb: int, niceness: int = NICENESS) -> "_Worker":
        # The same modules as here, from the same places; -P: and none from the working directory.
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"PYTHONPATH": paths}
        environment["OPENBLAS_NUM_THREADS"] = "1"  # each would take address space
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                "-W",
                "ignore",
                "-m",
                "app.ingest.parser_process",
                str(memory_mb),
                str(os.getpid()),
                str(niceness),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment,
            )
        )
        try:
            return cls(await asyncio.shield(starting))
        except asyncio.CancelledError:
            # uvloop would not wait for the end of a process that is starting.
            await cls(await starting).end()
            raise

    @property
    def is_alive(self) -> bool:
        """False once the process has ended, or closed its side."""
        stdout = self._process.stdout
        assert stdout is not None
        return self._process.returncode is None and not stdout.at_eof()

    async def perform(self, request: bytes, seconds: float, listener: Listener | None) -> bytes:
        """Return the reply to a request. The worker is ended unless it replies. Raises `_Died`."""
        if self._expiry is not None:
            self._expiry.cancel()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        is_late = False
        try:
            async with asyncio.timeout(seconds) as deadline:
                stdin.write(len(request).to_bytes(HEADER))
                stdin.write(request)
                await stdin.drain()
                while (header := await stdout.readexactly(HEADER)) == NOTE:
                    done, total = [int.from_bytes(await stdout.readexactly(HEADER)) for _ in range(2)]
                    deadline.reschedule(asyncio.get_running_loop().time() + seconds)
                    if listener is not None:
                        listener(done, total)
                return await stdout.readexactly(int.from_bytes(header))
        except TimeoutError:
            is_late = True
        except (asyncio.IncompleteReadError, ConnectionError, RuntimeError):  # uvloop's, of a handle that is closed
            await self._process.wait()  # its status is its own, not that of being killed
        except BaseException:
            await self.end()
            raise
        await self.end()
        status = self._process.returncode
        raise _Died(status, is_late=is_late or status == -signal.SIGXCPU)

    def expire(self, idle: list["_Worker"]) -> None:
        """End after a while, unless it is used again, and leave the list of idle workers."""

        def end() -> None:
            idle.remove(self)
            self._kill()

        self._expiry = asyncio.get_running_loop().call_later(IDLE_SECONDS, end)

    async def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        if self._expiry is not None:
            self._expiry.cancel()
        self._kill()
        await self._process.wait()

    def _kill(self) -> None:
        """Kill the process, and the programs that it runs."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):  # it has not begun yet
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
