"""What Redis does for askgraph, in a cluster of three servers, reached by one of them."""

import asyncio
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

import pytest
import redis

from app.adapters.embedded.valkey import find_program
from app.adapters.redis.answers import RedisAnswerCache
from app.adapters.redis.connection import RedisServer, locate
from app.adapters.redis.conversations import RedisConversations
from app.adapters.redis.erasure import RedisEraser
from domain.history.erasure import Needles
from domain.ports.streams import RunStreams
from tests.adapters.test_run_streams import impatient  # noqa: F401
from tests.contracts.answer_cache import ANSWER, KEY, AnswerCacheContract
from tests.contracts.conversation_index import ConversationIndexContract
from tests.contracts.run_streams import PATIENCE_SECONDS, RunStreamsContract, append, make_events, read
from tests.contracts.usage_counter import UsageCounterContract

SLOTS = [(0, 5460), (5461, 10922), (10923, 16383)]


class Cluster:
    """Clients of its servers, each of which holds a third of the slots at the beginning."""

    def __init__(self, ports: list[int]) -> None:
        self.servers = [redis.Redis(port=port, retry_on_error=[redis.exceptions.ConnectionError]) for port in ports]
        self.url = f"redis://127.0.0.1:{ports[-1]}/0"
        self.moved = 0

    def join(self, buses: list[int]) -> None:
        for server, slots in zip(self.servers, SLOTS, strict=True):
            _wait_for(server.ping)
            server.cluster("ADDSLOTSRANGE", *slots)
        for server, bus in zip(self.servers[1:], buses[1:], strict=True):
            port = server.connection_pool.connection_kwargs["port"]
            self.servers[0].cluster("MEET", "127.0.0.1", port, bus)
        for server in self.servers:
            _wait_for(lambda server=server: server.cluster("INFO")["cluster_state"] == "ok")  # type: ignore[misc]

    def move(self, *keys: str) -> None:
        """Give the slots of these keys, without what is in them, to another server than before."""
        self.clear()
        self.moved += 1
        taker = self.servers[self.moved % len(self.servers)].cluster("MYID").decode()
        for slot in {self.servers[0].cluster("KEYSLOT", key) for key in keys}:
            for server in self.servers:
                server.cluster("SETSLOT", slot, "NODE", taker)

    def clear(self) -> None:
        for server in self.servers:
            server.flushall()


def _wait_for(holds: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            if holds():
                return
        except redis.exceptions.ConnectionError:
            pass
        assert time.monotonic() < ends
        time.sleep(0.02)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    reserved = [socket.create_server(("127.0.0.1", 0)) for _ in range(6)]
    ports = [each.getsockname()[1] for each in reserved]
    for each in reserved:
        each.close()
    options = ["--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes"]
    processes = [
        subprocess.Popen(
            [find_program(), *options, "--port", str(port), "--cluster-port", str(bus)],
            cwd=tmp_path_factory.mktemp("valkey"),
            stdout=subprocess.DEVNULL,
        )
        for port, bus in zip(ports[:3], ports[3:], strict=True)
    ]
    cluster = Cluster(ports[:3])
    try:
        cluster.join(ports[3:])
        yield cluster
    finally:
        for server, process in zip(cluster.servers, processes, strict=True):
            server.close()
            process.terminate()
            process.wait()


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """Empty."""
    running.clear()
    return running


@pytest.fixture
def redis_url(cluster: Cluster) -> str:
    return cluster.url


class TestAnswerCache(AnswerCacheContract):
    pass


class TestRunStreams(RunStreamsContract):
    pass


class TestUsageCounter(UsageCounterContract):
    pass


class TestConversations(ConversationIndexContract):
    pass


async def test_keys_that_move_are_found_where_they_are(
    cluster: Cluster, redis_server: RedisServer, streams: RunStreams, caplog: pytest.LogCaptureFixture
) -> None:
    answers, index = RedisAnswerCache(redis_server), RedisConversations(redis_server, "test")
    following = asyncio.create_task(read(streams, "r"))
    for _ in cluster.servers:
        await answers.put(KEY, ANSWER)
        await index.remember("key", "place")
        cluster.move(*(locate(owner) for owner in (KEY.workspace_id, "key", "r")))
        await answers.put(KEY, ANSWER)
        assert await answers.find(KEY) == ANSWER
        assert await index.find("key") is None
    events = make_events(1, 5)
    append(streams, "r", events)
    assert await following == events
    assert not [record for record in caplog.records if record.name == "askgraph.redis"]


async def test_workspaces_share_the_servers(cluster: Cluster, redis_server: RedisServer) -> None:
    answers = RedisAnswerCache(redis_server)
    keys = [replace(KEY, workspace_id=f"workspace {number}") for number in range(30)]
    await asyncio.gather(*(answers.put(key, ANSWER) for key in keys))
    assert [await answers.find(key) for key in keys] == [ANSWER] * 30
    assert all(server.dbsize() > 5 for server in cluster.servers)


async def test_what_is_erased_is_found_first_and_then_gone(redis_server: RedisServer, streams: RunStreams) -> None:
    answers = RedisAnswerCache(redis_server)
    eraser = RedisEraser(redis_server, answers)
    run_ids = [str(uuid4()) for _ in range(9)]
    needles = Needles("a", tuple(run_ids))
    assert await eraser.search(needles) == 0
    await answers.put(KEY, ANSWER)
    for run_id in run_ids:
        append(streams, run_id, make_events(1, 1))
    await streams.flush(run_ids[-1])
    assert await eraser.search(needles) == 9
    assert await eraser.erase("a", run_ids, dry_run=True) == await eraser.erase("a", run_ids) == 10
    assert await eraser.search(needles) == 0
