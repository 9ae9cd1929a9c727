"""What was once enough to stop a service, done to `askgraph serve` from outside. docs/operations/attacks.md lists all
attacks with their tests; here are those that need a server, its memory, its sockets or its disk."""

import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.ingest.parser_process import MEMORY_MB
from app.ingest.parser_workers import ParserWorkers
from app.ingest.preparation import prepare
from domain.errors import DocumentError
from tests.ingest.hostile_files import FILES
from tests.serving.test_serve import Served, serve

QUESTION = "How many days of holiday does an employee have?"
IDLE = 500
MEGABYTE = b"100000\r\n" + b"x" * 2**20 + b"\r\n"
"""A chunk of a body that does not say how long it is."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("attacked"), ASKGRAPH_MAX_DOCUMENT_MB="1") as running:
        yield running


def upload(served: Served, name: str, data: bytes, query: str = "") -> dict[str, Any]:
    response = httpx.post(f"{served.address}/api/documents{query}", files={"files": (name, data)}, timeout=120)
    body: dict[str, Any] = response.json()
    return body


def read_memory(served: Served) -> int:
    """Return the most megabytes that the server has taken so far."""
    found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{served.process.pid}/status").read_text())
    assert found
    return int(found[1]) // 1024


def test_front_matter_of_spaces_is_refused_and_questions_are_answered(served: Served) -> None:
    name = "spaces-in-front-matter.md"
    [report] = upload(served, name, FILES[name]())["documents"]
    assert (report["status"], report["code"]) == ("failed", "empty_document")
    assert "30 days" in served.ask(QUESTION)["answer"]


@pytest.mark.parametrize("path", ["/api/chat", "/api/documents"])
def test_a_body_without_a_length_is_refused_and_not_kept(served: Served, path: str) -> None:
    before = read_memory(served)
    host, port = served.address.removeprefix("http://").split(":")
    kind = "application/json" if path == "/api/chat" else "multipart/form-data; boundary=b"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    )
    part = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(head + b"%x\r\n%b\r\n" % (len(part), part))
        # The server answers at its limit, and reads on for five seconds, so that the client learns why.
        with suppress(OSError):
            for _ in range(300):
                client.sendall(MEGABYTE)
        assert b" 413 " in client.recv(1000)
    assert read_memory(served) < before + 60
    assert "30 days" in served.ask(QUESTION)["answer"]


@pytest.mark.field
def test_sockets_that_send_nothing_are_closed(served: Served) -> None:
    host, port = served.address.removeprefix("http://").split(":")
    with ExitStack() as stack:
        opened = [stack.enter_context(socket.create_connection((host, int(port)), timeout=60)) for _ in range(IDLE)]
        for half in opened[::2]:
            half.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert "30 days" in served.ask(QUESTION)["answer"]
        for client in opened:
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""


@pytest.mark.field
def test_a_server_ends_amid_files_that_take_long_and_the_next_one_can_drop_them(tmp_path: Path) -> None:
    data = FILES["attributes.html"]()
    with serve(tmp_path, ASKGRAPH_LOAD_SAMPLES="false") as served:
        accepted = [
            upload(served, f"{number}.html", data + b"%d" % number, "?wait=false")["ingestions"][0]["ingestion_id"]
            for number in range(4)
        ]
        wait_for(served, accepted, {"running"})
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(timeout=60) == 0
    with serve(tmp_path, ASKGRAPH_LOAD_SAMPLES="false") as again:
        wait_for(again, accepted, {"running"})
        assert again.ask(QUESTION)["outcome"] == "abstained"
        for each in accepted:
            assert httpx.delete(f"{again.address}/api/ingestions/{each}", timeout=30).status_code == 200
        wait_for(again, accepted, {"cancelled"}, all_of_them=True)


def wait_for(served: Served, accepted: list[str], states: set[str], *, all_of_them: bool = False) -> None:
    deadline = time.monotonic() + 60
    while True:
        listed = [httpx.get(f"{served.address}/api/ingestions/{each}", timeout=30).json() for each in accepted]
        reached = [each["state"] in states for each in listed]
        if all(reached) if all_of_them else any(reached):
            return
        assert time.monotonic() < deadline, listed
        time.sleep(0.1)


# One of each format; the others of it are ended by the same limits.
ALIKE = "nested-b.html nested-b-twice.html attributes.html brackets.md merged-rows-many.docx empty-paragraphs.docx"


@pytest.mark.parametrize(
    "name",
    [
        "nested-main.html",
        "divs.md",
        "body-in-a-binary-part.docx",
        "inflating-content.pdf",
        *(
            pytest.param(name, marks=pytest.mark.field)
            for name in f"{ALIKE} nested-forms.pdf nested-forms-endless.pdf".split()
        ),
    ],
)
@pytest.mark.usefixtures("parser_processes")
async def test_what_fills_the_memory_is_read_or_refused_within_the_limits_of_a_worker(name: str) -> None:
    reading = partial(prepare, name, FILES[name](), media_type=None, max_bytes=50_000_000)
    async with ParserWorkers(at_once=1, seconds=1) as parsers:
        limits = partial(eval, "[__import__('resource').getrlimit(each)[0] for each in (9, 0)]")
        memory, seconds = await parsers.run(limits)
        assert memory == MEMORY_MB * 2**20
        assert 0 < seconds < 10
        with suppress(DocumentError):
            await parsers.run(reading)
        assert await parsers.run(partial(sum, (1, 2))) == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", disk], capture_output=True, text=True, check=False
    )
    if mounting.returncode:
        pytest.skip(f"A disk that is full within moments has to be mounted, which only root may: {mounting.stderr}")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


@pytest.mark.field
def test_a_full_disk_is_said_and_questions_are_answered_once_there_is_room(small_disk: Path) -> None:
    with serve(small_disk) as served:
        assert "30 days" in served.ask(QUESTION)["answer"]
        ballast = small_disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(2**16))
        # What is preallocated takes some questions more.
        for number in range(60):
            asked = {"question": f"Number {number} asks: how long is the parental leave?"}
            refused = httpx.post(f"{served.address}/api/chat", json=asked, timeout=60)
            if refused.status_code == 503:
                break
        assert refused.json()["error"]["code"] == "database_full"
        assert httpx.get(f"{served.address}/healthz").status_code == 200
        ready = httpx.get(f"{served.address}/readyz", timeout=30)
        assert (ready.status_code, ready.json()["status"]) == (503, "down")
        assert ready.json()["problem"]
        ballast.unlink()
        assert "30 days" in served.ask(QUESTION)["answer"]
        assert httpx.get(f"{served.address}/readyz", timeout=30).status_code == 200
