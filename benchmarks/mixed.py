"""Uses a service in all ways at once, and counts what is lost, doubled or fails, and what it takes in memory.

    python -m benchmarks.mixed [MINUTES]    # 10 by default

A loopback model in one process, `askgraph serve` on a fresh home with the sample library in another. Readers ask new
questions and ones that are answered already, some stop their answers, others upload files and wait until they are
read, look at pages of a PDF, and open conversations. The exit code is 1 if a run or file was lost or doubled, or a
request failed.
"""

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count

import httpx2
import orjson

from benchmarks.load import read_memory
from benchmarks.streaming import MODELS, QUESTIONS, start

HANDS = {"ask": 12, "repeat": 4, "stop": 3, "upload": 3, "look": 2, "browse": 2}
"""How many do what at the same time."""
RATE = 40
"""Tokens a second of an answer."""
WARM_SECONDS = 15
"""Caches, pools and parser workers are full after that; memory is counted from there."""


class Load:
    """Everybody who uses the service, and what became of it."""

    def __init__(self, service: str, seconds: float) -> None:
        self.http = httpx2.AsyncClient(base_url=service, timeout=60, limits=httpx2.Limits(max_connections=100))
        self.ends = time.monotonic() + seconds
        self.counts = Counter[str]()
        self.runs: dict[str, str] = {}
        """How each accepted run ended for its reader."""
        self.files: dict[str, str] = {}
        """How the reading of each accepted file ended."""
        self._numbers = count()

    async def keep(self, act: Callable[[], Awaitable[None]], name: str) -> None:
        """Do something again and again until the time is over."""
        while time.monotonic() < self.ends:
            try:
                await act()
                self.counts[name] += 1
            except (httpx2.HTTPError, AssertionError, KeyError) as error:
                self.counts[f"{name} failed: {type(error).__name__} {error}"[:120]] += 1

    async def ask(self) -> None:
        number = next(self._numbers)
        await self._read(f"Reader {number} asks: {QUESTIONS[number % len(QUESTIONS)]}")

    async def repeat(self) -> None:
        await self._read(QUESTIONS[next(self._numbers) % 3])
        await asyncio.sleep(0.2)

    async def stop(self) -> None:
        await self._read(f"Reader {next(self._numbers)} stops: {QUESTIONS[0]}", stop_after=3)

    async def upload(self) -> None:
        number = next(self._numbers)
        text = f"# Note {number}\n\n" + "".join(f"Shelf {number}-{row} holds {row} boxes.\n\n" for row in range(40))
        sent = {"files": (f"note-{number}.md", text.encode())}
        accepted = await self.http.post("/api/documents?wait=false", files=sent)
        assert accepted.status_code == 202, accepted.text
        self.files[f"note-{number}.md"] = "lost"
        state = "queued"
        while state in ("queued", "running"):
            await asyncio.sleep(0.2)
            state = (await self.http.get(accepted.headers["location"])).json()["state"]
        self.files[f"note-{number}.md"] = state

    async def look(self) -> None:
        listed = (await self.http.get("/api/documents")).json()["documents"]
        manual = next(each for each in listed if each["pages"])
        number = next(self._numbers)
        page = f"/api/documents/{manual['id']}/pages/{number % manual['pages'] + 1}.webp?dpi={60 + number % 50}"
        picture = await self.http.get(page)
        assert picture.status_code == 200, picture.text
        await asyncio.sleep(0.2)

    async def browse(self) -> None:
        threads = (await self.http.get("/api/threads?limit=20")).json()["threads"]
        for thread in threads[:3]:
            opened = await self.http.get(f"/api/threads/{thread['thread_id']}")
            assert opened.status_code == 200, opened.text
        await asyncio.sleep(0.2)

    async def _read(self, question: str, stop_after: int = 0) -> None:
        """Ask, and read to the end; stop the answer after so many tokens."""
        async with self.http.stream("POST", "/api/chat", json={"question": question}) as response:
            assert response.status_code == 200, response.status_code
            run_id, tokens, ends, event = response.headers["x-run-id"], 0, list[str](), ""
            self.runs[run_id] = "lost"
            async for line in response.aiter_lines():
                if line.startswith("event: "):
                    event = line[7:].strip()
                    tokens += event == "content"
                    if event in ("done", "error"):
                        ends.append(event)
                    if stop_after and event == "content" and tokens == stop_after:
                        (await self.http.post(f"/api/runs/{run_id}/cancel")).raise_for_status()
                elif event == "error" and line.startswith("data: "):
                    ends[-1] = f"error {orjson.loads(line[6:])['code']}"
        self.runs[run_id] = ends[0] if len(ends) == 1 else "lost" if not ends else "doubled"

    async def compare(self) -> Counter[str]:
        """Compare what readers saw with what the service holds."""
        found = Counter[str]()
        for run_id, ended in self.runs.items():
            kept = (await self.http.get(f"/api/runs/{run_id}")).json()
            found[f"run {ended}, kept as {kept.get('state')}"] += 1
        held = Counter(each["source"] for each in (await self.http.get("/api/documents")).json()["documents"])
        for source, state in self.files.items():
            found[f"file {state}" if held[source] == 1 else f"file {state}, held {held[source]} times"] += 1
        return found


async def main(service: str, pid: int, minutes: float) -> bool:
    """Print what happened; return True if nothing was lost, doubled or failed."""
    load = Load(service, 60 * minutes)
    people = [load.keep(getattr(load, name), name) for name, hands in HANDS.items() for _ in range(hands)]
    busy = asyncio.gather(*people)
    await asyncio.sleep(WARM_SECONDS)
    memory = [read_memory(pid)]
    while not busy.done():
        await asyncio.wait([busy], timeout=60)
        memory.append(read_memory(pid))
    await busy
    found = await load.compare()
    print(f"{minutes:g} minutes: {', '.join(f'{number:,} × {name}' for name, number in sorted(load.counts.items()))}")
    print(f"kept: {', '.join(f'{number:,} × {name}' for name, number in sorted(found.items()))}")
    print(f"memory of the service, MB, each minute: {' '.join(map(str, memory))}")
    good = {"run done, kept as done", "run done, kept as stopped", "file done"}
    return set(load.counts) <= set(HANDS) and set(found) <= good


if __name__ == "__main__":
    with (
        tempfile.TemporaryDirectory() as home,
        start("/v1/models", "-m", "tests.wire.openai", "--port", "PORT", "--ttft", "100ms", "--rate", str(RATE)) as (
            model,
            _,
        ),
        start(
            "/healthz", "-m", "app.cli", "serve", "--port", "PORT", ASKGRAPH_HOME=home, OPENAI_API_KEY="none",
            OPENAI_BASE_URL=f"{model}/v1", **MODELS,
        ) as (service, pid),
    ):  # fmt: skip
        sys.exit(0 if asyncio.run(main(service, pid, float(sys.argv[1]) if len(sys.argv) > 1 else 10)) else 1)
