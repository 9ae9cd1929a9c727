"""`askgraph serve`, started, stopped and killed as its user would."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from app.serving.address import find_server
from app.settings import read_settings
from askgraph.frames import read_frames
from tests.conftest import find_programs

ASKGRAPH = Path(sys.executable).with_name("askgraph")


class Served:
    def __init__(self, process: subprocess.Popen[str], banner: str) -> None:
        self.process = process
        self.banner = banner
        match = re.search(r"(http://[\d.:]+)/", banner)
        assert match, banner
        self.address = match[1]

    def ask(self, question: str, **options: Any) -> dict[str, Any]:
        response = httpx.post(
            f"{self.address}/api/chat?stream=false", json={"question": question} | options, timeout=60
        )
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer


def environment(home: Path) -> dict[str, str]:
    return find_programs() | {"HOME": str(home), "ASKGRAPH_HOME": str(home / "data")}


@contextmanager
def serve(home: Path, **variables: str) -> Iterator[Served]:
    process = subprocess.Popen(
        [ASKGRAPH, "serve", "--port", "0"],
        env=environment(home) | {"COLUMNS": "300"} | variables,
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout
    banner = ""
    try:
        for line in process.stdout:
            banner += line
            if "Ctrl-C" in line:
                break
        yield Served(process, banner)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)
        process.stdout.close()


def find_servers(home: Path) -> list[str]:
    listed = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(home) in line and "askgraph serve" not in line]


def wait_until_gone(home: Path) -> None:
    deadline = time.monotonic() + 30
    while find_servers(home):
        assert time.monotonic() < deadline, find_servers(home)
        time.sleep(0.1)


def test_it_starts_with_samples_and_its_printed_line_works_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        command = next(line.strip() for line in served.banner.splitlines() if line.strip().startswith("curl -N"))
        printed = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=True).stdout
        *_, last = read_frames([printed.encode()])
        assert last.type == "done"
        done = json.loads(last.data)
        assert done["citations"], done["answer"]
        for part in ("database", "cache", "answerer", "embeddings", "without a key"):
            assert part in served.banner
        documents = httpx.get(f"{served.address}/api/documents").json()["documents"]
        assert len(documents) >= 5
        assert find_servers(tmp_path)
        found = find_server(read_settings(home=tmp_path / "data"))
        assert found is not None
        assert found.url == served.address
    assert served.process.returncode == 0
    assert find_server(read_settings(home=tmp_path / "data")) is None
    wait_until_gone(tmp_path)

    with serve(tmp_path) as again:
        listed = httpx.get(f"{again.address}/api/documents").json()["documents"]
        assert [d["updated_at"] for d in listed] == [d["updated_at"] for d in documents]
