"""Checks that runs survive their processes: kills servers while they answer, and counts what is lost or done twice.

    python -m benchmarks.kills [--runs 200] [--processes 2] [--seed 1]    # about six minutes
    python -m benchmarks.kills --transcript                               # two cases, event by event; a minute

One embedded Postgres and Valkey, a loopback model at 50 tokens a second, `askgraph serve` processes, and one address in
front of them. Readers ask, some on in a conversation and some twice at once in one, and each run's process is killed
(SIGKILL) at a random moment, unless another run's kill has hit it before: while it is accepted, right after
that, at any time, or about when its answer ends. The process is started again. A reader that is cut off comes back to
the one address with `Last-Event-ID`. At the end it checks every run that was accepted, including
those whose reader never knew. The exit code is 1 if a run was lost or done twice.
"""

import argparse
import asyncio
import itertools
import os
import random
import re
import shutil
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import numpy as np
import orjson
import psycopg
from psycopg.rows import dict_row

from app.adapters.embedded import open_servers
from app.serving.server import SAMPLE_QUESTION
from benchmarks.streaming import ASKERS, MODELS, QUESTIONS, start
from domain.events import RESTART
from domain.streams import order_of

TTFT, RATE, LENGTH = 0.2, 50, 150
"""Of the model: seconds to its first token, tokens per second, and tokens of an answer, which so streams for three
seconds."""
AT_ONCE = 12
"""Concurrent conversations. The two cores also start a process every few seconds."""
CONVERSATIONS = ((1,), (1,), (1,), (1, 1), (1, 1, 1), (2,), (1, 2))
"""Number of concurrent questions in each round of a conversation."""
MOMENTS = ("any", "any", "any", "asked", "accepted", "end", "end", "end")
LATEST = 5.0
"""Seconds after the question, of a kill at any time."""
NARROW = 0.15
"""Seconds of the other moments: after the question was sent, and about the end of its answer."""
MAX_ATTEMPT = 3
"""A run that was begun so often is left alone: after five, it counts as the one that kills processes."""
PAUSE = 0.1
"""Before a reader tries again."""
DEADLINE = 90.0
"""Seconds that the last runs may take to end."""


@dataclass
class Replica:
    """An `askgraph serve` that can be killed and started again."""

    name: str
    environment: dict[str, str]
    log: Path
    port: int = 0
    process: asyncio.subprocess.Process | None = None
    ready: bool = False
    killed_at: float = 0.0
    kills: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "app.cli", "serve", "--port", str(self.port),
                env=os.environ | self.environment, stdout=log, stderr=log,
            )  # fmt: skip
        async with httpx2.AsyncClient(timeout=60) as http:
            while True:
                with suppress(httpx2.TransportError):
                    if (await http.get(f"{self.address}/healthz")).status_code == 200:
                        self.ready = True
                        return
                if self.process.returncode is not None:
                    raise RuntimeError(f"{self.name} has ended:\n{self.log.read_text('utf-8')[-2000:]}")
                await asyncio.sleep(0.05)

    async def kill(self) -> None:
        """`kill -9`."""
        assert self.process is not None
        self.ready = False
        self.killed_at = time.monotonic()
        self.kills += 1
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.terminate()
            await self.process.wait()


class Address:
    """One address in front of all replicas: a connection goes to the next one that is up, and ends with it."""

    def __init__(self, replicas: list[Replica]) -> None:
        self._turn = itertools.cycle(replicas)
        self._count = len(replicas)
        self.answering: dict[str, Replica] = {}
        """The latest connection of each reader, by the mark of the reader's requests."""
        self.url = ""

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with suppress(OSError):
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            target.close()

        head = await reader.read(65536)
        mark = re.search(rb"x-reader: (\S+)", head, re.IGNORECASE)
        for replica in itertools.islice(self._turn, self._count):
            if not replica.ready:
                continue
            try:
                upstream, downstream = await asyncio.open_connection("127.0.0.1", replica.port)
            except OSError:
                continue
            if mark:
                self.answering[mark[1].decode()] = replica
            downstream.write(head)
            await asyncio.gather(pass_on(reader, downstream), pass_on(upstream, writer))
            return
        writer.close()


@dataclass(frozen=True)
class Event:
    id: str
    type: str
    data: dict[str, Any]


@dataclass
class Connection:
    """A request for a run's events, and what it brought."""

    replica: str
    after: str | None = None
    events: list[Event] = field(default_factory=list)


@dataclass
class Reader:
    """A client that asked a question, and everything that it read of the run."""

    name: str
    question: str
    thread_id: str | None = None
    round: int = 0
    """Id of the conversation's thread."""
    run_id: str | None = None
    connections: list[Connection] = field(default_factory=list)
    refused: int = 0
    """Questions that were cut off before a run's id was received, and asked again."""
    text: str = ""
    ended: Event | None = None
    last_id: str | None = None
    killed_at: float | None = None
    """When the process that had the connection was killed, until the next event."""
    back: list[float] = field(default_factory=list)
    """Seconds from such a kill to the next event."""
    resumed: list[float] = field(default_factory=list)
    """Those of them after which the run was begun again."""
    problems: list[str] = field(default_factory=list)
    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    mark: int = LENGTH - 8
    """A number of pieces of the answer."""
    marked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when as many have come: by default, when the answer is about to end."""

    @property
    def ids(self) -> list[str]:
        return [event.id for connection in self.connections for event in connection.events if event.id]

    def take(self, event: Event) -> None:
        """Look at the next event."""
        if self.ended is not None:
            self.problems.append(f"{event.type} {event.id} after the end")
        attempt_before = order_of(self.last_id)[0] if self.last_id else 0
        began_again = bool(event.id) and order_of(event.id)[0] > max(attempt_before, 1)
        if event.id and self.last_id and order_of(event.id) <= order_of(self.last_id):
            self.problems.append(f"id {event.id} after {self.last_id}")
        if self.killed_at is not None:
            (self.resumed if began_again else self.back).append(time.monotonic() - self.killed_at)
            self.killed_at = None
        if began_again and (event.type, event.data.get("reason")) != ("correction", RESTART):
            self.problems.append(f"attempt {order_of(event.id)[0]} begins with {event.type}, not with a restart")
        if event.type == "content":
            self.text += event.data["token"]
        elif event.type == "correction":
            self.text = event.data["answer"]
        elif event.type in ("done", "error"):
            self.ended = event
            if event.type == "done" and self.text != event.data["answer"]:
                self.problems.append(f"was shown {self.text!r}, and the answer is {event.data['answer']!r}")
        self.last_id = event.id or self.last_id
        self.connections[-1].events.append(event)
        if sum(event.type == "content" for event in self.connections[-1].events) >= self.mark:
            self.marked.set()


class Client:
    """Asks at the one address, and comes back to it."""

    def __init__(self, address: Address) -> None:
        self._address = address
        # A connection for each request, because the address spreads connections.
        self._http = httpx2.AsyncClient(
            base_url=address.url, timeout=60, limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        )

    async def ask(self, reader: Reader) -> None:
        """Ask until the run has an id."""
        body = {"question": reader.question} | ({"thread_id": reader.thread_id} if reader.thread_id else {})
        while reader.run_id is None:
            if not await self._read(reader, "POST", "/api/chat", body):
                reader.refused += 1
                await asyncio.sleep(PAUSE)

    async def follow(self, reader: Reader) -> None:
        """Come back until the run has ended."""
        while reader.ended is None:
            await asyncio.sleep(PAUSE)
            await self._read(reader, "GET", f"/api/runs/{reader.run_id}/events")

    async def read(self, reader: Reader) -> None:
        """Ask, and read to the end, whatever happens in between."""
        await self.ask(reader)
        await self.follow(reader)

    async def get(self, path: str) -> Any:
        response = await self._http.get(path)
        response.raise_for_status()
        return response.json()

    async def _read(self, reader: Reader, method: str, path: str, body: dict[str, Any] | None = None) -> bool:
        """One request. False where nobody took it."""
        marks = {"X-Reader": reader.name} | ({"Last-Event-ID": reader.last_id} if reader.last_id else {})
        try:
            async with self._http.stream(method, path, json=body, headers=marks) as response:
                if response.status_code == 503:
                    return False
                response.raise_for_status()
                if reader.run_id is None:
                    reader.run_id = response.headers["x-run-id"]
                    reader.thread_id = response.headers["x-thread-id"]
                    reader.accepted.set()
                reader.connections.append(Connection(self._address.answering[reader.name].name, reader.last_id))
                async for event in read_events(response):
                    reader.take(event)
        except httpx2.TransportError:
            replica = self._address.answering.get(reader.name)
            if reader.run_id is None:
                return False
            if reader.killed_at is None and replica is not None and not replica.ready and reader.ended is None:
                reader.killed_at = replica.killed_at
        return True


async def read_events(response: httpx2.Response) -> AsyncIterator[Event]:
    """Complete events, as they come. httpx2's own reader gives one without an id that of its predecessor."""
    fields: dict[str, str] = {}
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif not line and "event" in fields:
            yield Event(fields.get("id", ""), fields["event"], orjson.loads(fields["data"]))
            fields = {}


@dataclass
class Deployment:
    """The measurements."""

    replicas: list[Replica]
    address: Address
    client: Client
    database_url: str
    environment: dict[str, str]


@asynccontextmanager
async def deploy(processes: int, folder: Path) -> AsyncIterator[Deployment]:
    """Servers, a model, processes, and the address in front of them."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    model_options = ("--ttft", f"{TTFT}s", "--rate", str(RATE), "--length", str(LENGTH))
    with start("/v1/models", "-m", "tests.wire.openai", "--port", "PORT", *model_options) as (model, _):
        async with open_servers(folder / "servers") as servers:
            assert servers.database_url
            assert servers.redis_url
            environment = {
                "ASKGRAPH_HOME": str(folder / "home"),
                "DATABASE_URL": servers.database_url,
                "REDIS_URL": servers.redis_url,
                "OPENAI_API_KEY": "none",
                "OPENAI_BASE_URL": f"{model}/v1",
                "OMP_NUM_THREADS": "1",
                "COLUMNS": "140",
            } | MODELS
            replicas = [
                Replica(f"process {number}", environment, folder / f"process-{number}.log")
                for number in range(1, processes + 1)
            ]
            try:
                # One after the other, because the first loads the sample library.
                for replica in replicas:
                    await replica.start()
                address = Address(replicas)
                async with address.listen():
                    yield Deployment(replicas, address, Client(address), servers.database_url, environment)
            finally:
                await asyncio.gather(*(replica.stop() for replica in replicas))


class Killer:
    """Kills the process that has a reader's connection, at the moment drawn for its run."""

    def __init__(self, deployment: Deployment, chance: random.Random, tasks: asyncio.TaskGroup) -> None:
        self._deployment = deployment
        self._tasks = tasks
        self._chance = chance
        self._starting: set[asyncio.Task[None]] = set()
        self.moments: Counter[str] = Counter()

    async def hunt(self, reader: Reader) -> None:
        """Until the reader has its end, or was cut off by a kill."""
        while True:
            moment = self._chance.choice(MOMENTS)
            if moment == "accepted":
                await reader.accepted.wait()
            elif moment == "end":
                await reader.marked.wait()
            if moment != "accepted":
                await asyncio.sleep(self._chance.uniform(0, LATEST if moment == "any" else NARROW))
            if reader.refused or len(reader.connections) > 1 or reader.ended is not None:
                return
            replica = self._deployment.address.answering.get(reader.name)
            if replica is not None and not await self._is_last_chance() and self._are_all_up():
                self.moments[moment] += 1
                await self._kill(replica)
                return
            await self.wait_until_up()

    async def _kill(self, replica: Replica) -> None:
        await replica.kill()
        task = self._tasks.create_task(replica.start())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _are_all_up(self) -> bool:
        """Otherwise they would be killed faster than they start."""
        return all(replica.ready for replica in self._deployment.replicas)

    async def wait_until_up(self) -> None:
        """Wait until all that were killed are up again."""
        if self._starting:
            await asyncio.wait(self._starting.copy())

    async def _is_last_chance(self) -> bool:
        """True if a kill may end a run that has survived too many."""
        rows = await fetch(
            self._deployment.database_url,
            "SELECT coalesce(max(attempt), 0) AS most FROM accepted_runs WHERE state IN ('queued', 'running')",
        )
        return bool(rows[0]["most"] >= MAX_ATTEMPT)


async def fetch(database_url: str, statement: Any) -> list[dict[str, Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        return await (await connection.execute(statement)).fetchall()


async def converse(deployment: Deployment, killer: Killer, rounds: tuple[int, ...], name: str) -> list[Reader]:
    """A conversation, while its processes are killed."""
    readers: list[Reader] = []
    thread_id: str | None = None
    for number_of_round, at_once in enumerate(rounds):
        if at_once > 1 and thread_id is None:
            thread_id = str(uuid4())
        asked = [
            Reader(f"{name}.{len(readers) + number}", next(_questions), thread_id, number_of_round)
            for number in range(1, at_once + 1)
        ]
        readers += asked
        hunts = [asyncio.create_task(killer.hunt(reader)) for reader in asked]
        await asyncio.gather(*(deployment.client.read(reader) for reader in asked))
        for hunt in hunts:
            hunt.cancel()
        for outcome in await asyncio.gather(*hunts, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        thread_id = asked[0].thread_id
    return readers


def plan(runs: int, chance: random.Random) -> list[tuple[int, ...]]:
    """Conversations of so many questions together."""
    planned: list[tuple[int, ...]] = []
    while (left := runs - sum(map(sum, planned))) > 0:
        rounds = chance.choice(CONVERSATIONS)
        planned.append(rounds if sum(rounds) <= left else (1,) * left)
    return planned


def _list_questions() -> Iterator[str]:
    """Each is new to the caches."""
    for asker, other, question in itertools.product(ASKERS, ASKERS, QUESTIONS):
        yield f"{asker} asks for {other}: {question}"


_questions = _list_questions()


async def measure(runs: int, processes: int, seed: int, folder: Path) -> bool:
    """Print what became of the runs. Whether none was lost and none done twice."""
    chance = random.Random(seed)
    async with deploy(processes, folder) as deployment, asyncio.TaskGroup() as tasks:
        killer = Killer(deployment, chance, tasks)
        began = time.monotonic()
        planned = iter(enumerate(plan(runs, chance), 1))
        readers: list[Reader] = []

        async def keep_conversing() -> None:
            for number, rounds in planned:
                readers.extend(await converse(deployment, killer, rounds, str(number)))
                so_far = f"{len(readers)} of {runs}, {sum(killer.moments.values())} kills"
                print(f"\r{so_far} ", end="", file=sys.stderr, flush=True)

        await asyncio.gather(*(keep_conversing() for _ in range(AT_ONCE)))
        await killer.wait_until_up()
        seconds = time.monotonic() - began
        print(file=sys.stderr)
        verdict = await check(deployment, readers)
        show(verdict, readers, killer, deployment.replicas, seconds)
    return not (verdict.lost or verdict.doubled or verdict.problems)


@dataclass
class Verdict:
    accepted: int = 0
    unheard: int = 0
    """Accepted, though their reader never heard of it and asked again."""
    completed: int = 0
    begun_again: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    repeated_ids: int = 0
    missing_ids: int = 0
    problems: list[str] = field(default_factory=list)


async def check(deployment: Deployment, readers: list[Reader]) -> Verdict:
    """Check every accepted run: in the database, in its thread's states, and at its reader."""
    deadline = time.monotonic() + DEADLINE
    rows: list[dict[str, Any]] = []
    while time.monotonic() < deadline:
        rows = await fetch(
            deployment.database_url,
            "SELECT run_id, thread_id, state, attempt, ended->>'code' AS code FROM accepted_runs",
        )
        if all(row["state"] not in ("queued", "running") for row in rows):
            break
        await asyncio.sleep(0.5)
    heard = {reader.run_id: reader for reader in readers}
    verdict = Verdict(accepted=len(rows), unheard=sum(row["run_id"] not in heard for row in rows))
    verdict.lost += [f"{run_id} was accepted and is not known" for run_id in heard.keys() - {r["run_id"] for r in rows}]
    threads: dict[str, list[str]] = {}
    for row in rows:
        threads.setdefault(row["thread_id"], []).append(row["run_id"])
        verdict.begun_again += row["attempt"] > 1
        if row["state"] == "done":
            verdict.completed += 1
        else:
            verdict.lost.append(
                f"{row['run_id']} is {row['state']} {row['code'] or ''} after {row['attempt']} attempts"
            )
    recorded = Counter(row["run_id"] for row in await fetch(deployment.database_url, "SELECT run_id FROM runs"))
    jobs = await fetch(deployment.database_url, "SELECT id, status, args->>'run_id' AS run FROM procrastinate_jobs")
    verdict.problems += [f"a job is left over: {job}" for job in jobs]
    for thread_id, run_ids in threads.items():
        await _check_thread(deployment, thread_id, run_ids, heard, verdict)
    for run_id in [run_id for run_ids in threads.values() for run_id in run_ids]:
        if recorded[run_id] != 1:
            verdict.problems.append(f"{run_id} has {recorded[run_id]} records")
        await _check_reading(deployment, run_id, heard.get(run_id), verdict)
    return verdict


async def _check_thread(
    deployment: Deployment, thread_id: str, run_ids: list[str], heard: dict[str | None, Reader], verdict: Verdict
) -> None:
    """Its turns are its runs, each once, in order; and no run has come to its end twice."""
    turns: list[str] = []
    ends: Counter[str] = Counter()
    for step in (await deployment.client.get(f"/api/threads/{thread_id}/history"))["steps"]:
        if "turns" in step["changed"]:
            turns = [turn["run_id"] for turn in step["changed"]["turns"]]
        if not step["next"]:
            ends[step["run_id"]] += 1
    verdict.lost += [f"{run_id} has no turn in its thread" for run_id in run_ids if run_id not in turns]
    verdict.doubled += [f"{run_id} has {turns.count(run_id)} turns" for run_id in run_ids if turns.count(run_id) > 1]
    verdict.doubled += [f"{run_id} came to its end {n} times" for run_id, n in ends.items() if n > 1]
    rounds = [heard[run_id].round for run_id in turns if run_id in heard]
    if rounds != sorted(rounds):
        verdict.problems.append(f"the turns of thread {thread_id} are of the rounds {rounds}, in this order")


async def _check_reading(deployment: Deployment, run_id: str, reader: Reader | None, verdict: Verdict) -> None:
    """Check that a later reader reads the same, and that the reader has missed nothing of the stream."""
    late = Reader(f"late.{run_id}", "", run_id=run_id)
    await deployment.client.follow(late)
    verdict.problems += [f"{run_id}, read late: {problem}" for problem in late.problems]
    if reader is None:
        return
    verdict.problems += [f"{run_id}: {problem}" for problem in reader.problems]
    verdict.repeated_ids += len(reader.ids) - len(set(reader.ids))
    missing = set(late.ids) - set(reader.ids)
    # Within an attempt the numbers follow each other.
    for before, after in itertools.pairwise([(0, 0), *map(order_of, reader.ids)]):
        if after[0] == before[0] and after[1] != before[1] + 1:
            missing |= {f"{after[0]}-{number}" for number in range(before[1] + 1, after[1])}
    verdict.missing_ids += len(missing)
    if missing:
        verdict.problems.append(f"{run_id}: never received {sorted(missing, key=order_of)}")
    if late.ended and reader.ended and late.ended != reader.ended:
        verdict.problems.append(f"{run_id}: ended as {reader.ended}, and later as {late.ended}")


async def transcribe(folder: Path) -> None:
    """Print two cases in full."""
    print("## One process: the client is cut off, the process killed and started again, the client resumes\n")
    async with deploy(1, folder / "one") as deployment:
        [process] = deployment.replicas
        reader = Reader("reader", SAMPLE_QUESTION, mark=12)
        asking = asyncio.create_task(deployment.client.ask(reader))
        await reader.marked.wait()
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        _show_connection(reader.connections[0])
        print("  the client cuts the connection\n")
        await asyncio.sleep(0.3)
        await process.kill()
        print(f"kill -9: {process.name} is gone, 0.3 s later, in the middle of the answer")
        await process.start()
        print(f"{process.name} is started again: {time.monotonic() - process.killed_at:.1f} s since the kill\n")
        await deployment.client.follow(reader)
        for connection in reader.connections[1:]:
            _show_connection(connection)
        await _show_end(deployment, reader)
    print("\n## Two processes behind one address: the one that answers is killed\n")
    async with deploy(2, folder / "two") as deployment:
        reader = Reader("reader", SAMPLE_QUESTION, mark=12)
        reading = asyncio.create_task(deployment.client.read(reader))
        await reader.marked.wait()
        killed = deployment.address.answering["reader"]
        await killed.kill()
        await reading
        for number, connection in enumerate(reader.connections):
            _show_connection(connection)
            if number == 0:
                print(f"  kill -9: {killed.name} is gone, in the middle of the answer\n")
        await _show_end(deployment, reader)


def _show_connection(connection: Connection) -> None:
    request = "POST /api/chat" if connection.after is None else f"GET .../events, Last-Event-ID: {connection.after}"
    print(f"connection to {connection.replica}: {request}")
    for kind, group in itertools.groupby(connection.events, key=attrgetter("type")):
        events = list(group)
        ids = events[0].id if len(events) == 1 else f"{events[0].id} ... {events[-1].id}"
        print(f"  {ids:<16}{kind:<11}{_describe(kind, events)}")


def _describe(kind: str, events: list[Event]) -> str:
    data = events[0].data
    if kind == "content":
        return f"{len(events)} pieces: {''.join(event.data['token'] for event in events)!r}"
    if kind == "thinking":
        return ", ".join(event.data["step"] for event in events)
    if kind == "correction":
        return f"reason {data['reason']!r}, answer {data['answer']!r}"
    if kind == "done":
        return f"answer {data['answer']!r}"
    return f"{len(data['citations'])} citations" if kind == "sources" else ""


async def _show_end(deployment: Deployment, reader: Reader) -> None:
    """Describe the run, its thread, and the events that were received twice or never."""
    status = await deployment.client.get(f"/api/runs/{reader.run_id}")
    print(f"\nGET /api/runs/{reader.run_id}: state {status['state']!r}, attempt {status['attempt']}")
    history = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "app.cli", "history", str(reader.thread_id),
        env=os.environ | deployment.environment, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    told, _ = await history.communicate()
    print(f"askgraph history {reader.thread_id}, without what each step changed:")
    print("".join(line for line in told.decode().splitlines(keepends=True) if not line.startswith("    ")))
    verdict = await check(deployment, [reader])
    steps = (await deployment.client.get(f"/api/threads/{reader.thread_id}/history"))["steps"]
    for turn in [step["changed"]["turns"] for step in steps if "turns" in step["changed"]][-1]:
        print(f"turn of the thread: run {turn['run_id']}, {turn['question']!r}, answer {turn['answer']!r}")
    print(f"ids received: {len(reader.ids)}, twice: {verdict.repeated_ids}, missing: {verdict.missing_ids}; "
          f"lost: {len(verdict.lost)}, doubled: {len(verdict.doubled)}")  # fmt: skip
    for problem in [*verdict.lost, *verdict.doubled, *verdict.problems]:
        print(f"  ! {problem}")


def show(verdict: Verdict, readers: list[Reader], killer: Killer, replicas: list[Replica], seconds: float) -> None:
    met = sum(len(reader.connections) > 1 or reader.refused > 0 for reader in readers)
    rows = [
        ("runs accepted", verdict.accepted),
        ("  of which no reader heard", verdict.unheard),
        ("  whose reader was cut off", met),
        ("  begun again by another process", verdict.begun_again),
        ("completed", verdict.completed),
        ("lost", len(verdict.lost)),
        ("doubled", len(verdict.doubled)),
        ("ids received", sum(len(reader.ids) for reader in readers)),
        ("  twice", verdict.repeated_ids),
        ("  missing", verdict.missing_ids),
        ("other problems", len(verdict.problems)),
    ]
    moments = ", ".join(f"{count} {moment}" for moment, count in sorted(killer.moments.items()))
    print(f"\n{len(replicas)} processes behind one address, {sum(r.kills for r in replicas)} kills ({moments}), "
          f"{seconds:.0f} s\n")  # fmt: skip
    for name, value in rows:
        print(f"  {name:<34}{value:>6}")
    print("\nfrom the kill to the reader's next event, s as p50 / p95")
    for name, times in (
        ("where the run was begun again", [t for reader in readers for t in reader.resumed]),
        ("where it was not: it waited", [t for reader in readers for t in reader.back]),
    ):
        shown = f"{np.percentile(times, 50):6.1f} / {np.percentile(times, 95):.1f}" if times else "     -"
        print(f"  {name:<34}{shown}  (n = {len(times)})")
    for problem in [*verdict.lost, *verdict.doubled, *verdict.problems][:40]:
        print(f"  ! {problem}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill processes while they answer, and see what becomes of runs.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transcript", action="store_true", help="two cases, event by event")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="askgraph-kills-"))
    if given.transcript:
        asyncio.run(transcribe(folder))
    elif not asyncio.run(measure(given.runs, given.processes, given.seed, folder)):
        print(f"\nThe processes' logs are in {folder}.")
        sys.exit(1)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
