"""The program of a parser worker: `python -m app.ingest.parser_process MEMORY_MB PARENT NICENESS`.

It reads requests from its standard input and writes replies to its standard output, each pickled, with its length in
front. `app/ingest/parser_workers.py` starts it.
"""

import ctypes
import gc
import os
import pickle
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.ingest.reading_progress import listening
from domain.errors import AskgraphError, OversizedDocument

SECONDS = 30.0
"""Computing time for a small file. 190 pages of PDF (1.4 MB) take 4 s, 5 MB of Markdown 10 s."""
MEMORY_MB = 1024
"""Address space of a worker. An empty one takes 60 MB, the largest files that are read about 700 MB."""
SCAN_MEMORY = 2
"""How many times as much a worker may take that recognises text on scans, which takes 900 MB beside the file."""
MAX_REPLY = 128 * 2**20
"""Largest reply in bytes. Ten million characters of text with their chunks and links take 20 to 80 MB."""
NICENESS = 5
"""Of a worker that reads files: questions are answered first."""
NEW_OBJECTS = 100_000
"""New containers until the collector looks at them: a large file takes a fifth less time than with Python's 700."""

HEADER = 8
"""Bytes before a message, which say how long it is."""
NOTE = bytes(HEADER)
"""What stands before a note of progress, in the place of a reply's length: two numbers, the pages read and all."""
OUT_OF_MEMORY = 77
"""Exit status of a worker that has reached its memory limit."""

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Perform requests until there are no more."""
    memory = int(sys.argv[1]) * 2**20
    os.setpgrp()  # the parent ends this process with the programs that it runs
    end_with(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the parent decides
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory * SCAN_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(int(sys.argv[3]))
    gc.set_threshold(NEW_OBJECTS)
    requests = sys.stdin.buffer
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints is no reply
    try:

        def send(message: bytes) -> None:
            replies.write(message)
            replies.flush()

        def pass_on(done: int, total: int) -> None:
            send(NOTE + done.to_bytes(HEADER) + total.to_bytes(HEADER))

        while header := requests.read(HEADER):
            with listening(pass_on):
                reply = _perform(requests.read(int.from_bytes(header)))
            send(len(reply).to_bytes(HEADER) + reply)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def _perform(request: bytes) -> bytes:
    """Run the request's job, and return its result, its error, and the memory that this process has taken at most."""
    job: Callable[[], Any]
    job, seconds = pickle.loads(request)
    _limit_time(seconds)
    result: Any = None
    error: Exception | None = None
    try:
        result = job()
    except MemoryError:
        raise
    except AskgraphError as failure:
        error = failure
    except Exception:  # noqa: BLE001 - the parent raises it; not every exception can be pickled
        error = RuntimeError(traceback.format_exc())
    reply = _pickle(result, error)
    if len(reply) > MAX_REPLY:
        return _pickle(None, OversizedDocument("The file's text has more parts than this service reads. Split it."))
    return reply


def _pickle(result: Any, error: Exception | None) -> bytes:
    return pickle.dumps((result, error, _read_peak() // 2**10), protocol=pickle.HIGHEST_PROTOCOL)


def _read_peak() -> int:
    """Return the most memory that this process has taken, in kB."""
    with suppress(OSError):
        # `getrusage` begins at what the parent had taken when it started this process.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 2**10 if sys.platform == "darwin" else peak


def _limit_time(seconds: float) -> None:
    """End this process once it has computed for so long from now on."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(usage.ru_utime + usage.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def prepare_program() -> Callable[[], None]:
    """Return what a program that this process starts does first: it takes no more time than this process has left, and
    ends with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    usage, parent = resource.getrusage(resource.RUSAGE_SELF), os.getpid()
    left = soft if soft == resource.RLIM_INFINITY else max(1, soft - int(usage.ru_utime + usage.ru_stime))

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (left, hard))
        end_with(parent)

    return prepare


def end_with(parent: int) -> None:
    """End this process when its parent ends, even by a crash. Elsewhere than on Linux it ends after the current job."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")  # if the machine runs out of memory, end this one
        if os.getppid() != parent:
            sys.exit()


if __name__ == "__main__":
    main()
