"""Sends the worst input of each kind to a service, and prints how long it kept the event loop from answering.

    python -m benchmarks.hostile_loop [PART OF A NAME]    # about ten minutes

A service on a fresh home, with the loopback model, gets one input after the other while `/healthz` is asked every few
milliseconds. `longest` is the longest wait for an answer: from `LIMIT` on, the input stops the loop, and the exit code
is 1. `cpu` is what the loop's thread computed during that wait; on a busy machine it may have waited for others.
"""

import asyncio
import io
import json
import os
import string
import sys
import tempfile
import time
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import httpx2

from benchmarks.shared import behave, start_model, start_service

LIMIT = 0.25
PAUSE = 0.005
WORDS = " ".join(a + b for a in string.ascii_lowercase for b in string.ascii_lowercase)
TABLES = "# Registry\n\nThe registry of plinths.\n\n" + "\n\n".join(["|plinth|b|\n|-|-|\n|c|d|"] * 600)
JSON = {"Content-Type": "application/json"}

Send = Callable[[httpx2.AsyncClient], Awaitable[object]]


def repeat(piece: str, length: int) -> str:
    """As many repetitions as fit."""
    return piece * (length // len(piece))


def post(path: str, body: object) -> Send:
    """Post JSON; a text is JSON already."""
    content = body if isinstance(body, str) else json.dumps(body)
    return lambda client: client.post(path, content=content, headers=JSON)


def ask(question: str, **fields: object) -> Send:
    return post("/api/chat?stream=false", {"question": question[:2000], **fields})


def upload(name: str, content: str | bytes, **fields: str) -> Send:
    data = content.encode() if isinstance(content, str) else content
    return lambda client: client.post("/api/documents", files={"files": (name, data)}, data=fields)


def get(path: str, headers: Mapping[str, str] | None = None, **params: str) -> Send:
    return lambda client: client.get(path, params=params, headers=headers)


def nest(depth: int) -> str:
    return "[" * depth + "]" * depth


def zip_of(name: str, content: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return held.getvalue()


def list_inputs() -> dict[str, Send]:
    """The inputs by name, in the order in which they are sent."""
    long = 950_000
    turns = [{"role": "user" if n % 2 == 0 else "assistant", "content": "漢。" * 40} for n in range(2999)]
    marks = {"role": "assistant", "content": "![" * (long // 2)}
    meta = json.dumps({f"k{n}": "v" * 50 for n in range(9000)})
    sets = {f"profile.k{n}": n for n in range(40_000)}
    calls = {"name": "ask", "arguments": {"question": "[1]" * 300_000}}
    inputs: dict[str, Send] = {
        "file of tiny tables": upload("tables.md", TABLES[:19_000]),
        "question about them": ask(f"plinth registry {WORDS}", mode="fast"),
        "file of marks": upload("marks.md", repeat("a [1]. ", 200_000)),
        "file of html": upload("deep.html", "<div>" * 100_000),
        "file of brackets": upload("brackets.md", "[" * 200_000),
        "file of json": upload("deep.json", nest(50_000)),
        "file of csv": upload("wide.csv", repeat("a,", 100_000) + "\n" + repeat("1,", 100_000)),
        "file of a zip bomb": upload("bomb.docx", zip_of("word/document.xml", b"<w:p>" * 20_000_000)),
        "many files": lambda client: client.post(
            "/api/documents", files=[("files", (f"{n}.md", b"# A\n\nText.")) for n in range(300)]
        ),
        "huge metadata": upload("meta.md", "# A\n\nText.", metadata=meta),
        "deep metadata": upload("meta.md", "# A\n\nText.", metadata='{"a":' * 10_000 + "1" + "}" * 10_000),
        "filter of many values": ask("How many holidays?", filter={"year": {"in": list(range(100_000))}}),
        "deep filter": post("/api/chat", '{"question": "?", "filter": ' + '{"and": [' * 20_000 + "]}" * 20_000 + "}"),
        "filter in words": get("/api/documents", where="year=1 or " * 700 + "year=1"),
        "history": post("/v1/chat/completions", {"model": "fast", "messages": turns}),
        "history of one": post("/v1/chat/completions", {"model": "fast", "messages": [*turns[:1], marks, *turns[:1]]}),
        "deep json": post("/api/chat", nest(400_000)),
        "long json": post("/api/chat", '{"question": "' + r"\\u0000" * (long // 7) + '"}'),
        "json of halves": post("/api/chat", '{"question": "' + r"\ud83d" * (long // 6) + '"}'),
        "many fields": post("/api/chat", {f"k{n}": n for n in range(60_000)}),
        "deep langgraph state": post("/langgraph/threads/t/state", '{"values": {"a": ' + nest(100_000) + "}}"),
        "langgraph input": post("/langgraph/runs/wait", {"assistant_id": "fast", "input": {"messages": turns}}),
        "langgraph notes": post("/langgraph/threads", {"metadata": {f"k{n}": ["x"] * 1900 for n in range(99)}}),
        "replay set": post("/api/threads/t/replay", {"run_id": "x", "set": sets}),
        "what if": post("/api/whatif", {"run_id": "x", "set": sets}),
        "eval set": post("/api/replays", {"runs": ["x"] * 100_000}),
        "mcp": post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": calls}),
        "mcp deep": post("/mcp", nest(400_000)),
        "embeddings": post("/v1/embeddings", {"model": "m", "input": ["漢。" * 1000] * 40}),
        "ag-ui": post("/ag-ui", {"threadId": "t", "runId": "r", "messages": turns}),
        "long header": get("/api/documents", {"X-Long": "a" * 20_000, "Cookie": "a=b; " * 5_000}),
        "key": get("/api/documents", {"Authorization": "Bearer " + "a" * 60_000}),
        "search": get("/api/search", q=repeat("漢。", 2000)),
        "assistant": post("/api/assistants", {"name": "x", "instructions": "a" * long}),
    }  # fmt: skip
    for name, piece in {
        "words": "aa bb ", "short words": "a ", "brackets": "[", "figures": "1 ", "ideographs": "漢。",
        "hyphens": "a-b-", "commas": "a, b and ", "questions": "what is a? ", "capitals": "AB CD ", "dots": "a.b.",
        "quotes": '"a" ',
    }.items():  # fmt: skip
        inputs[f"question of {name}"] = ask(f"What about holidays {repeat(piece, 1970)}?", mode="thorough")
    return inputs


ANSWERS = (
    "[1]",
    "漢。",
    "a\n: b [1]\n",
    "![",
    "http://a.b/c ",
    "| a | b [1] |\n",
    "a? ",
    "- a [1]\n",
    "a@b.c ",
    "<a",
    "`",
    " ",
)
"""What the model writes for ever, in pieces of many tokens."""


async def poll(address: str, loop_thread: Path, stopped: asyncio.Event) -> tuple[float, float]:
    """Ask for `/healthz` until stopped. Returns the longest wait and what the loop's thread computed during it."""
    longest = (0.0, 0.0)
    async with httpx2.AsyncClient(base_url=address, timeout=120) as client:
        while not stopped.is_set():
            began, before = time.perf_counter(), read_thread_cpu(loop_thread)
            await client.get("/healthz")
            longest = max(longest, (time.perf_counter() - began, read_thread_cpu(loop_thread) - before))
            await asyncio.sleep(PAUSE)
    return longest


def read_thread_cpu(thread: Path) -> float:
    fields = (thread / "stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(address: str, pid: int, name: str, send: Send) -> bool:
    """Send one input, and print what it did. Returns True where it stopped the loop."""
    stopped = asyncio.Event()
    polling = asyncio.create_task(poll(address, Path(f"/proc/{pid}/task/{pid}"), stopped))
    await asyncio.sleep(0.1)
    began = time.perf_counter()
    async with httpx2.AsyncClient(base_url=address, timeout=120) as client:
        try:
            answer = await send(client)
            said = str(getattr(answer, "status_code", ""))
        except httpx2.HTTPError as error:
            said = type(error).__name__
    took = time.perf_counter() - began
    stopped.set()
    longest, cpu = await polling
    stops = longest >= LIMIT
    print(
        f"{name:28} {said:>14} {took:7.2f} s   longest {longest:6.3f} s   cpu {cpu:5.2f} s {'STOPS' if stops else ''}"
    )
    return stops


async def run(part: str) -> int:
    stops = 0
    with tempfile.TemporaryDirectory() as home, start_model(0, 0) as model:
        with start_service(f"{home}/local") as (address, pid):
            await measure(address, pid, "(nothing)", get("/readyz"))
            for name, send in list_inputs().items():
                if part in name:
                    stops += await measure(address, pid, name, send)
        with start_service(f"{home}/asking", model) as (address, pid):
            for piece in ANSWERS:
                name = f"answer of {piece!r}"
                if part in name:
                    await behave(model, model_replies={"gpt-4.1-mini": repeat(piece, 300_000)})  # type: ignore[arg-type]
                    question = f"How many days of holiday does an employee have? {piece.strip()[:3]}"
                    stops += await measure(address, pid, name, ask(question, mode="thorough"))
    return stops


if __name__ == "__main__":
    sys.exit(asyncio.run(run(" ".join(sys.argv[1:]))) > 0)
