"""What several benchmarks need: servers in processes of their own, their CPU and memory, and questions."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import httpx2

QUESTIONS = (
    "How many days of holiday does an employee have?",
    "What is the warranty of the WS-400?",
    "How much does the WS-400 cost?",
    "Who approves an expense claim?",
    "How often is a barometer calibrated?",
    "When must a security incident be reported?",
    "How long does the battery of the WS-400 last?",
    "How long must a password be?",
)
ANSWERED = QUESTIONS[:3]
"""Those that the loopback model answers. Where it finds nothing, a reader waits until all quotes are chosen."""
_numbers = count(1)
MODELS = {"ASKGRAPH_MODEL_SMALL": "gpt-4.1-nano", "ASKGRAPH_MODEL_LARGE": "gpt-4.1-mini"}


def next_question(questions: tuple[str, ...] = QUESTIONS) -> str:
    """A question that no cache knows yet."""
    number = next(_numbers)
    return f"{questions[number % len(questions)]} (Reader {number})"


@contextmanager
def start(path: str, *arguments: str, **environment: str) -> Iterator[tuple[str, int]]:
    """A Python process that serves: its address and process id, once it answers at `path`. `PORT` among the arguments
    is a port that is free."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    command = [sys.executable, *(port if argument == "PORT" else argument for argument in arguments)]
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        address = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                httpx2.get(f"{address}{path}")
                break
            except httpx2.TransportError:
                assert process.poll() is None, f"{command} has ended"
                time.sleep(0.1)
        yield address, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


@contextmanager
def start_model(ttft: float, rate: int = 50) -> Iterator[str]:
    """The loopback model: its address. `ttft` is the seconds to its first token, `rate` its tokens per second."""
    options = ("--port", "PORT", "--ttft", f"{ttft}s", "--rate", str(rate))
    with start("/v1/models", "-m", "tests.wire.openai", *options) as (address, _):
        yield address


@contextmanager
def start_service(home: Path | str, model: str | None = None) -> Iterator[tuple[str, int]]:
    """`askgraph serve`: its address and process id. `model` is the address of the loopback model that it asks."""
    asked = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{model}/v1", **MODELS} if model else {}
    with start("/healthz", "-m", "app.cli", "serve", "--port", "PORT", ASKGRAPH_HOME=str(home), **asked) as served:
        yield served


async def behave(model: str, **behaviour: float) -> None:
    """Change how the loopback model behaves."""
    async with httpx2.AsyncClient() as http:
        await http.put(f"{model}/behaviour", json=behaviour)


def read_cpu(pid: int) -> float:
    """Seconds of CPU that a process has used, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_memory(pid: int) -> int:
    """Megabytes that a process occupies."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text("utf-8"))[0]) // 1024
