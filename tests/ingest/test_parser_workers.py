"""Files are read by processes that can be killed."""

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from app.ingest.parser_process import MEMORY_MB, prepare_program
from app.ingest.parser_workers import ParserWorkers, _Worker
from app.ingest.preparation import prepare
from app.ingest.reading_progress import note_pages
from domain.documents import Chunk, ParsedDocument
from domain.errors import CostlyDocument, Draining, EmptyDocument

pytestmark = pytest.mark.usefixtures("parser_processes")

ENDLESS = partial(eval, "any(iter(int, 1))")
"""Holds the interpreter's lock, as a regular expression does: no thread could end it."""
GREEDY = partial(eval, "[bytearray(10_000_000) for _ in range(1000)]")
STUCK = partial(time.sleep, 600)


def read(data: bytes) -> "partial[tuple[ParsedDocument, list[Chunk]]]":
    return partial(prepare, "notes.md", data, media_type=None, max_bytes=10_000)


def list_processes() -> set[int]:
    """Return the numbers of the parser workers of this process."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
        if b"app.ingest.parser_process" in command and parent == os.getpid():
            found.add(int(process.name))
    return found


def list_children() -> list[str]:
    """Return the numbers of all processes that this one has started and not seen end."""
    return sorted(" ".join(path.read_text() for path in Path("/proc/self/task").glob("*/children")).split())


async def test_a_worker_reads_one_file_after_the_other(parsers: ParserWorkers) -> None:
    # A worker is not taken for worn because of what this process takes.
    ballast = b"x" * 400_000_000
    parsed, _ = await parsers.run(read(b"# Rain\n\nMeasured daily."))
    assert parsed.title == "Rain"
    worker = await parsers.run(os.getpid)
    with pytest.raises(EmptyDocument, match="The file is empty"):
        await parsers.run(read(b" "))
    assert await parsers.run(os.getpid) == worker != os.getpid()
    del ballast


async def test_the_pages_that_a_worker_has_read_are_told(parsers: ParserWorkers) -> None:
    # Two notes with a pause between them, and one that follows too soon.
    job = "[note(1, 83), note(2, 83), __import__('time').sleep(0.25), note(7, 83)]"
    told: list[tuple[int, int]] = []
    note = partial(eval, job, {"note": note_pages})
    assert len(await parsers.run(note, listener=lambda *pages: told.append(pages))) == 4
    assert told == [(1, 83), (7, 83)]
    assert len(await parsers.run(note)) == 4


@pytest.mark.parametrize(
    ("job", "says"),
    [
        (ENDLESS, "took more than 1 s"),
        (GREEDY, "took more than 300 MB"),
        (os.abort, "crashed its reader twice"),
    ],
)
async def test_a_file_that_takes_too_much_ends_its_worker_alone(job: "partial[object]", says: str) -> None:
    async with ParserWorkers(seconds=1, memory_mb=300) as parsers:
        reading = asyncio.create_task(parsers.run(read(b"# Rain")))
        with pytest.raises(CostlyDocument, match=says):
            await parsers.run(job)
        assert (await reading)[0].title == "Rain"
        assert (await parsers.run(read(b"# Snow")))[0].title == "Snow"


async def test_a_worker_that_is_killed_while_idle_is_replaced(parsers: ParserWorkers) -> None:
    before = await parsers.run(os.getpid)
    os.kill(before, signal.SIGKILL)
    await asyncio.sleep(0.2)
    assert await parsers._take_idle() is None
    assert await parsers.run(os.getpid) != before


async def test_a_worker_that_waits_for_ever_is_ended_too() -> None:
    async with ParserWorkers(seconds=0.1) as parsers:
        with pytest.raises(CostlyDocument, match="took more than"):
            await parsers.run(STUCK)


async def test_a_short_job_does_not_wait_for_files_in_work() -> None:
    async with ParserWorkers(at_once=1) as parsers:
        stuck = asyncio.create_task(parsers.run(STUCK))
        async with asyncio.timeout(60):
            await parsers.run(os.getpid, is_short=True)
        stuck.cancel()


async def test_cancelling_and_closing_end_workers(parsers: ParserWorkers) -> None:
    cancelled, closed = asyncio.create_task(parsers.run(STUCK)), asyncio.create_task(parsers.run(STUCK))
    while len(list_processes()) < 2:  # noqa: ASYNC110 - nobody announces a process
        await asyncio.sleep(0.01)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await parsers.close()
    with pytest.raises(Draining):
        await closed
    assert not list_processes()
    with pytest.raises(Draining):
        await parsers.run(os.getpid)


async def test_cancelling_ends_a_worker_that_starts() -> None:
    children = list_children()
    for steps in range(1, 6):
        starting = asyncio.create_task(_Worker.start(MEMORY_MB))
        for _ in range(steps):
            await asyncio.sleep(0)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).end()
        # One that has been told to end and is still there would count.
        assert list_children() == children


async def test_a_worker_gets_no_keys(parsers: ParserWorkers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert "OPENAI_API_KEY" not in await parsers.run(partial(eval, "dict(__import__('os').environ)"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a worker ends after its job")
def test_a_worker_ends_with_its_parent() -> None:
    script = (
        "import asyncio, os, time\n"
        "from functools import partial\n"
        "from app.ingest.parser_workers import ParserWorkers\n"
        "async def main():\n"
        "    parsers = ParserWorkers()\n"
        "    print(await parsers.run(os.getpid), flush=True)\n"
        "    await parsers.run(partial(time.sleep, 600))\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        worker = int(parent.stdout.readline())
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{worker}/cmdline").exists() and Path(f"/proc/{worker}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_program_has_the_time_that_its_worker_has_left(monkeypatch: pytest.MonkeyPatch) -> None:
    used = int(time.process_time())
    monkeypatch.setattr("app.ingest.parser_process.resource.getrlimit", lambda _: (used + 100, resource.RLIM_INFINITY))
    said = subprocess.run(
        ["sh", "-c", "ulimit -t"], preexec_fn=prepare_program(), capture_output=True, check=True
    ).stdout
    assert 90 < int(said) <= 101
