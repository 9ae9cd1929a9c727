"""`PackedSaver` passes LangGraph's conformance suite, and its buffer loses nothing."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from operator import add
from typing import Annotated, Any, LiteralString
from uuid import uuid4

import pytest
import pytest_asyncio
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import ERROR
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, StateSnapshot, interrupt
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from psycopg_pool import PoolTimeout
from typing_extensions import TypedDict

from app.adapters.postgres import pool as pools
from app.adapters.postgres.checkpoints import buffer
from app.adapters.postgres.checkpoints.saver import PackedSaver, open_saver
from app.adapters.postgres.pool import ALL_WORKSPACES, Pool, borrow, open_pool
from domain.errors import DamagedState, DatabaseUnavailable, InputError
from domain.runs import NEW_THREAD

Do = Callable[[], Awaitable[None]]


@pytest_asyncio.fixture
async def saver(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[PackedSaver]:
    """A saver that stores nothing before it is asked to."""
    monkeypatch.setattr(buffer, "FLUSH_SECONDS", 3600.0)
    async with open_saver(pool) as opened:
        yield opened


@pytest_asyncio.fixture
async def elsewhere(database_url: str, saver: PackedSaver) -> AsyncIterator[PackedSaver]:
    """The saver of another process."""
    async with open_pool(database_url) as other, open_saver(other) as opened:
        yield opened


async def test_langgraphs_conformance_suite(pool: Pool) -> None:
    @checkpointer_test(name="PackedSaver")
    async def make() -> AsyncIterator[PackedSaver]:
        async with open_saver(pool) as opened:
            yield opened

    report = await validate(make)
    assert {name: (result.passed, result.failures) for name, result in report.results.items() if result.detected} == {
        name: (True, []) for name in ("put", "put_writes", "get_tuple", "list", "delete_thread")
    }


# Graphs


class State(TypedDict):
    seen: Annotated[list[str], add]
    kept: dict[str, list[int]]
    number: int


def thread(thread_id: str | None = None) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id or str(uuid4())}}


async def nothing() -> None:
    pass


def build(saver: BaseCheckpointSaver[str], between: Do = nothing, *, fails: list[int] | None = None) -> Any:
    """Build first → (left | right) → inner graph → asks → last. Every step calls `between`. `right` raises while `fails`
    is not empty."""

    def step(name: str) -> Any:
        async def run(state: State) -> dict[str, Any]:
            await between()
            if name == "right" and fails:
                fails.pop()
                raise ValueError("right failed")
            update: dict[str, Any] = {"seen": [name]}
            if name == "first":
                update |= {"kept": {"numbers": [1, 2, 3]}, "number": 1}
            return update

        return run

    async def asks(state: State) -> dict[str, Any]:
        answer = interrupt("Which?")
        return {"seen": [f"asked {answer}"]}

    inner = StateGraph(State)
    inner.add_node("inside", step("inside"))
    inner.add_node("further", step("further"))
    inner.add_edge(START, "inside")
    inner.add_edge("inside", "further")

    graph = StateGraph(State)
    for name in ("first", "left", "right", "last"):
        graph.add_node(name, step(name))
    graph.add_node("inner", inner.compile())
    graph.add_node("asks", asks)
    graph.add_edge(START, "first")
    graph.add_edge("first", "left")
    graph.add_edge("first", "right")
    graph.add_edge(["left", "right"], "inner")
    graph.add_edge("inner", "asks")
    graph.add_edge("asks", "last")
    graph.add_edge("last", END)
    return graph.compile(checkpointer=saver)


def describe(snapshot: StateSnapshot) -> dict[str, Any]:
    """Return what is the same in every run."""
    return {
        "values": snapshot.values,
        "next": snapshot.next,
        "metadata": {key: (snapshot.metadata or {}).get(key) for key in ("source", "step")},
        "has parent": snapshot.parent_config is not None,
        "tasks": [
            (task.name, task.path, task.error, [i.value for i in task.interrupts], task.result)
            for task in snapshot.tasks
        ],
    }


async def run_twice(graph: Any, config: RunnableConfig, durability: str = "async") -> list[dict[str, Any]]:
    """Return the history of a thread with two turns. Each has an interrupt; a step of the first fails and is run again."""
    with pytest.raises(ValueError, match="right failed"):
        await graph.ainvoke({"seen": ["question"], "kept": {}, "number": 0}, config, durability=durability)
    inputs: list[Any] = [None, Command(resume="this"), {"seen": ["again"]}, Command(resume="that")]
    for given in inputs:
        await graph.ainvoke(given, config, durability=durability)
    return [describe(snapshot) async for snapshot in graph.aget_state_history(config)]


@pytest.mark.parametrize(("durability", "flushes"), [("async", False), ("async", True), ("sync", True), ("exit", True)])
async def test_the_history_is_the_same_as_in_memory(
    saver: PackedSaver, elsewhere: PackedSaver, durability: str, flushes: bool
) -> None:
    """Covers subgraphs, parallel steps, failures, interrupts and results, however puts are grouped into writes."""
    expected = await run_twice(build(InMemorySaver(), fails=[1]), thread(), durability)
    config = thread()
    thread_id = config["configurable"]["thread_id"]

    async def flush() -> None:
        await saver.flush("", thread_id)

    graph = build(saver, flush if flushes else nothing, fails=[1])
    assert await run_twice(graph, config, durability) == expected
    results = [task[-1] for step in expected for task in step["tasks"]]
    assert durability == "exit" or {"seen": ["left"]} in results, "the graph wrote no result to compare"
    await saver.flush("", thread_id)
    assert [describe(s) async for s in build(elsewhere).aget_state_history(config)] == expected


async def test_a_failed_steps_finished_neighbour_is_not_run_again(saver: PackedSaver, elsewhere: PackedSaver) -> None:
    config, ran = thread(), []

    async def count() -> None:
        ran.append(1)

    with pytest.raises(ValueError, match="right failed"):
        await build(saver, count, fails=[1]).ainvoke({"seen": [], "kept": {}, "number": 0}, config)
    await saver.flush("", config["configurable"]["thread_id"])
    ran.clear()
    state = await build(elsewhere, count).ainvoke(None, config)
    assert state["seen"] == ["first", "left", "right", "first", "left", "right", "inside", "further"]
    assert len(ran) == 3, "right, inside and further"


async def test_a_step_that_is_cancelled_before_its_edge_is_chosen_is_taken_again(
    saver: PackedSaver, elsewhere: PackedSaver
) -> None:
    chosen = asyncio.Event()

    async def choose(state: State) -> str:
        if not chosen.is_set():
            chosen.set()
            await asyncio.Event().wait()
        return "last"

    async def take(state: State) -> dict[str, Any]:
        return {"seen": ["first"]}

    def continue_with(saver: PackedSaver) -> Any:
        graph = StateGraph(State)
        graph.add_node("first", take)
        graph.add_node("last", lambda state: {"seen": ["last"]})
        graph.add_edge(START, "first")
        graph.add_conditional_edges("first", choose, ["last"])
        return graph.compile(checkpointer=saver)

    async def begin() -> None:
        async for _ in continue_with(saver).astream({"seen": []}, config, stream_mode="custom"):
            pass

    config = thread()
    running = asyncio.create_task(begin())
    await chosen.wait()
    running.cancel()
    await asyncio.wait({running})
    await saver.flush("", config["configurable"]["thread_id"])
    assert (await continue_with(elsewhere).ainvoke(None, config))["seen"] == ["first", "last"]


async def test_two_turns_of_a_thread_at_once(saver: PackedSaver, elsewhere: PackedSaver) -> None:
    config = thread()
    graph = build(saver)
    await asyncio.gather(*(graph.ainvoke({"seen": [str(n)], "kept": {}, "number": n}, config) for n in range(2)))
    await saver.flush("", config["configurable"]["thread_id"])
    ids, parents = set(), set()
    async for found in elsewhere.alist(config):
        ids.add(found.config["configurable"]["checkpoint_id"])
        if found.parent_config:
            parents.add(found.parent_config["configurable"]["checkpoint_id"])
    assert parents <= ids
    ends = [s.values["seen"] async for s in build(elsewhere).aget_state_history(config) if s.next == ("asks",)]
    # The turn that begins later may continue the other.
    assert sorted([seen for seen in end if seen in ("0", "1")][-1] for end in ends) == ["0", "1"]


# Puts by hand


def put_into(config: RunnableConfig, parent: str | None = None) -> RunnableConfig:
    return {"configurable": {**config["configurable"], "checkpoint_ns": "", "checkpoint_id": parent}}


async def put(saver: PackedSaver, config: RunnableConfig, values: dict[str, Any], **metadata: Any) -> RunnableConfig:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = values
    checkpoint["channel_versions"] = dict.fromkeys(values, "1")
    at = put_into(config) | RunnableConfig(metadata=metadata)
    return await saver.aput(at, checkpoint, {"source": "loop", "step": 1, **metadata}, {})  # type: ignore[typeddict-item]


async def read(saver: PackedSaver, config: RunnableConfig) -> dict[str, Any] | None:
    found = await saver.aget_tuple({"configurable": {"thread_id": config["configurable"]["thread_id"]}})
    return None if found is None else found.checkpoint["channel_values"]


async def test_puts_are_stored_together_a_while_after_the_last_one(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(buffer, "FLUSH_SECONDS", 0.5)
    async with open_saver(pool) as opened, open_saver(pool) as elsewhere:
        config = thread()
        for number in range(3):
            await put(opened, config, {"kept": [number]})
        async with asyncio.timeout(20):
            while not [found async for found in elsewhere.alist(config)]:  # noqa: ASYNC110 - nobody announces it
                await asyncio.sleep(0.05)
        assert len([found async for found in elsewhere.alist(config)]) == 3
        async with borrow(pool, ALL_WORKSPACES) as connection:
            packs = await (await connection.execute("SELECT count(*) AS packs FROM state_packs")).fetchone()
        assert packs == {"packs": 1}


async def test_later_changes_of_a_value_do_not_reach_the_stored_one(saver: PackedSaver) -> None:
    config, value, parents = thread(), {"a": [1]}, {"": "x"}
    put_config = await put(saver, config, {"kept": value}, parents=parents)
    await saver.aput_writes(put_config, [("kept", value)], "task")
    value["a"].append(2)
    parents[""] = "y"
    found = await saver.aget_tuple(config)
    assert found is not None
    assert found.checkpoint["channel_values"] == {"kept": {"a": [1]}}
    assert found.pending_writes == [("task", "kept", {"a": [1]})]
    assert found.metadata["parents"] == {"": "x"}


async def test_a_thread_that_is_said_to_be_new_is_not_looked_for(saver: PackedSaver) -> None:
    config = thread()
    put_config = await put(saver, config | {"configurable": config["configurable"] | {NEW_THREAD: True}}, {"kept": [1]})
    assert await saver.aget_tuple({"configurable": config["configurable"] | {NEW_THREAD: True}}) is None
    assert NEW_THREAD not in put_config["configurable"]
    found = await saver.aget_tuple(config)
    assert found is not None
    assert NEW_THREAD not in found.metadata


async def test_other_processes_see_what_is_flushed_and_this_one_sees_everything(
    saver: PackedSaver, elsewhere: PackedSaver
) -> None:
    config = thread()
    thread_id = config["configurable"]["thread_id"]
    await put(saver, config, {"kept": [1]})
    assert await read(elsewhere, config) is None
    assert [found.metadata["step"] async for found in saver.alist(config, filter={"source": "loop"})] == [1]
    assert await read(elsewhere, config) == {"kept": [1]}
    await put(saver, config, {"kept": [2]})
    assert await read(saver, config) == {"kept": [2]}
    await put(saver, config, {"kept": [3]})
    assert len([found async for found in saver.alist(config)]) == 3
    await put(saver, config, {"kept": [4]})
    await saver.adelete_thread(thread_id)
    assert await read(saver, config) is None
    await saver.flush("", thread_id)
    assert await read(elsewhere, config) is None


async def test_readers_wait_for_a_write_in_flight_and_a_cancelled_write_loses_nothing(
    pool: Pool, saver: PackedSaver, elsewhere: PackedSaver
) -> None:
    config = thread()
    await put(saver, config, {"kept": [1]})
    async with borrow(pool, ALL_WORKSPACES) as blocker, blocker.transaction():
        await blocker.execute("LOCK state_packs IN EXCLUSIVE MODE")
        flushing = asyncio.create_task(saver.flush("", config["configurable"]["thread_id"]))
        waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while (await blocker.execute(waiting)).rowcount == 0:
            await blocker.execute("SELECT pg_sleep(0.01), pg_stat_clear_snapshot()")
        reading = asyncio.create_task(read(saver, config))
        await asyncio.sleep(0.05)
        assert not reading.done()
        await put(saver, config, {"kept": [2]})
        flushing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flushing
        assert await read(elsewhere, config) is None
    assert await reading == {"kept": [2]}
    assert len([found async for found in elsewhere.alist(config)]) == 2


async def test_everything_is_stored_once_the_database_is_back(
    database_url: str, pool: Pool, saver: PackedSaver, elsewhere: PackedSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "QUERY_SECONDS", 0.5)
    pool.timeout = 0.5
    monkeypatch.setattr(buffer, "RETRY_SECONDS", 3600.0)
    config = thread()
    name = str(conninfo_to_dict(database_url)["dbname"])
    async with await AsyncConnection.connect(database_url, dbname="postgres", autocommit=True) as admin:
        closing = SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        await admin.execute(closing.format(Identifier(name), SQL("false")))
        await admin.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))
        for number in range(2):
            await put(saver, config, {"kept": [number]})
            with pytest.raises(DatabaseUnavailable):
                await saver.flush("", config["configurable"]["thread_id"])
        monkeypatch.setattr(buffer, "MAX_BUFFERED", 0)
        with pytest.raises(DatabaseUnavailable):
            await put(saver, config, {"kept": [2]})
        await admin.execute(closing.format(Identifier(name), SQL("true")))
    monkeypatch.setattr(pools, "QUERY_SECONDS", 10.0)
    found: list[list[int]] = []
    # Either pool may still wait for its next attempt to connect.
    for _ in range(20):
        with suppress(DatabaseUnavailable, PoolTimeout):
            await saver.flush("", config["configurable"]["thread_id"])
            found = [each.checkpoint["channel_values"]["kept"] async for each in elsewhere.alist(config)]
            break
        await asyncio.sleep(0.2)
    assert found == [[1], [0]]


async def test_flush_raises_what_the_database_refused_and_later_puts_go_on(
    saver: PackedSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = thread()
    await put(saver, config, {"kept": [1]}, run_id="\ud800")
    with pytest.raises(InputError):
        await saver.flush("", config["configurable"]["thread_id"])
    await put(saver, config, {"kept": [2]})
    assert await read(saver, config) == {"kept": [2]}
    # If nobody waits, the error is kept for the next caller of flush.
    monkeypatch.setattr(buffer, "FLUSH_BYTES", 1)
    await put(saver, config, {"kept": [3]}, run_id="\ud800")
    while saver._buffer._threads:  # noqa: ASYNC110 - nothing signals the end
        await asyncio.sleep(0.01)
    with pytest.raises(InputError):
        await saver.flush("", config["configurable"]["thread_id"])
    await saver.flush("", config["configurable"]["thread_id"])


async def test_a_value_is_stored_once_a_pack_and_a_pack_is_read_without_those_before_it(
    pool: Pool, saver: PackedSaver
) -> None:
    config, value = thread(), os.urandom(50_000)
    parent: str | None = None
    for step in range(6):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"big": value, "small": [step]}
        checkpoint["channel_versions"] = {"big": "1", "small": str(step)}
        done = await saver.aput(put_into(config, parent), checkpoint, {"source": "loop", "step": step}, {})
        parent = done["configurable"]["checkpoint_id"]
        if step == 2:
            await saver.flush("", config["configurable"]["thread_id"])
    assert await read(saver, config) == {"big": value, "small": [5]}
    async with borrow(pool, ALL_WORKSPACES) as connection:
        sizes = await (await connection.execute("SELECT length(pack) AS size FROM state_packs")).fetchall()
        assert all(50_000 < row["size"] < 55_000 for row in sizes)
        await connection.execute("DELETE FROM state_packs WHERE number = (SELECT min(number) FROM state_packs)")
    found = [each.checkpoint["channel_values"] async for each in saver.alist(config)]
    assert found == [{"big": value, "small": [step]} for step in (5, 4, 3)]


async def test_the_latest_state_is_the_last_one_stored_whatever_the_clocks_say(
    saver: PackedSaver, elsewhere: PackedSaver
) -> None:
    config, behind = thread(), empty_checkpoint()
    first = await put(saver, config, {"kept": [1]})
    await saver.flush("", config["configurable"]["thread_id"])
    behind |= {"id": "1ef00000-0000-6000-8000-000000000000", "channel_values": {"kept": [2]}}
    behind["channel_versions"] = {"kept": "2"}
    at = put_into(config, first["configurable"]["checkpoint_id"])
    second = await elsewhere.aput(at, behind, {"source": "loop", "step": 2}, {})
    await elsewhere.aput_writes(second, [("kept", [3])], "task")
    await elsewhere.flush("", config["configurable"]["thread_id"])
    await saver.aput_writes(second, [("kept", [4]), (ERROR, "failed")], "task")
    latest = await saver.aget_tuple(config)
    assert latest is not None
    assert (latest.checkpoint["id"], latest.parent_config) == (behind["id"], first)
    assert latest.pending_writes == [("task", ERROR, "failed"), ("task", "kept", [3])]
    ids = [each.checkpoint["id"] async for each in saver.alist(config)]
    assert ids == [behind["id"], first["configurable"]["checkpoint_id"]]
    before = [each.config async for each in saver.alist(config, before=second)]
    assert before == [first]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE state_packs SET pack = substring(pack FOR length(pack) / 2)",
        "UPDATE state_packs SET pack = set_byte(pack, length(pack) / 2, 255 - get_byte(pack, length(pack) / 2))",
        "UPDATE state_packs SET pack = ''",
    ],
)
async def test_a_damaged_pack_raises_damaged_state(pool: Pool, saver: PackedSaver, damage: LiteralString) -> None:
    config = thread()
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"said": [f"The answer to question {n} is {n * n}." for n in range(50)]}
    checkpoint["channel_versions"] = {"said": "1"}
    await saver.aput(put_into(config, None), checkpoint, {"source": "loop", "step": 0}, {})
    assert await read(saver, config) == checkpoint["channel_values"]
    async with borrow(pool, ALL_WORKSPACES) as connection:
        await connection.execute(damage)
    for reading in (saver.aget_tuple(config), anext(saver.alist(config))):
        with pytest.raises(DamagedState, match=f"thread {config['configurable']['thread_id']}, checkpoint "):
            await reading


async def test_closing_stores_what_is_buffered(pool: Pool, elsewhere: PackedSaver) -> None:
    config = thread()
    async with open_saver(pool) as opened:
        await put(opened, config, {"kept": [1]})
    assert await read(elsewhere, config) == {"kept": [1]}
