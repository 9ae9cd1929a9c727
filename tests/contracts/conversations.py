"""The contracts of `RunLog` and `ThreadStore`. An adapter's tests inherit from the classes and provide the
fixtures `runs` and `threads`, over an empty store, and `queue`, which stores records too."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
import pytest_asyncio

from domain.errors import ThreadBusy
from domain.history.lineage import NO_LINEAGE, Lineage, UsedDocument
from domain.history.run_lists import RunFilter, parse_run_filter
from domain.ports.runs import RunLog, RunQueue, ThreadStore
from domain.runs import RunRecord, Spending
from domain.scope import Scope
from domain.state import Usage
from tests.contracts.run_queue import ENDED_ID, FAILED, START, begin, end, request

GREETING = RunRecord("run-1", "thread-1", "a", "fast", "Hello", START)
ANSWER = RunRecord(
    run_id="run-2",
    thread_id="thread-1",
    workspace_id="a",
    mode="thorough",
    question="How long?",
    started_at=START + timedelta(seconds=5),
    standalone_question="How long is the warranty?",
    queries=["warranty", "warranty months"],
    route="needs_retrieval",
    retries=1,
    candidates=20,
    sources=5,
    top_score=0.71,
    confidence=0.83,
    verification="supported",
    cached=True,
    answer='36 months [1]. "Quoted" and 🏛.',
    citations=[
        {
            "marker": 1,
            "document_id": "4b7c",
            "title": "Handbook",
            "chunk_id": "9f",
            "chunk_index": 3,
            "page": 2,
            "heading_path": ["Warranty"],
            "start": 10,
            "end": 40,
            "text": "36 months",
            "score": 0.9,
        }
    ],
    usage=[
        {
            "node": "generate",
            "model": "m",
            "calls": 1,
            "input_tokens": 900,
            "output_tokens": 40,
            "cost": 0.002,
            "estimated": False,
        }
    ],
    cost=0.002,
    timings={"retrieve": 12.5, "total": 80.25},
    warnings=["The embedding model did not answer."],
    error="model_timeout",
    forked_from={"thread_id": "t", "checkpoint_id": "c", "changed": ["mode"]},
)


RECORDS = [GREETING, ANSWER]


async def keep(queue: RunQueue, run: RunRecord) -> None:
    """Store the record with the end of its run."""
    lease = await queue.accept(request(run.thread_id, run.workspace_id, run.run_id), wait=False)
    assert lease is not None
    assert await queue.end(lease, "failed", FAILED, ENDED_ID, run)


class RunLogContract:
    @pytest.mark.parametrize("run", RECORDS)
    async def test_reads_back_what_was_recorded(self, runs: RunLog, queue: RunQueue, run: RunRecord) -> None:
        await keep(queue, run)
        assert await runs.get("a", run.run_id) == run

    async def test_lists_runs_newest_first_as_the_filter_and_the_groups_say(
        self, runs: RunLog, queue: RunQueue
    ) -> None:
        of_group = replace(GREETING, run_id="run-3", scope=Scope.within("a", groups=["staff"]).to_json())
        for run in (GREETING, ANSWER, of_group):
            await keep(queue, run)
        everything = RunFilter(START)

        async def list_ids(asker: Scope, wanted: RunFilter) -> list[str]:
            return [run.run_id for run in await runs.list_runs(asker, wanted)]

        assert await list_ids(Scope("a"), everything) == ["run-2", "run-3", "run-1"]
        assert await list_ids(Scope("a"), replace(everything, after=(START, "run-3"))) == ["run-1"]
        assert await list_ids(Scope("a"), replace(everything, since=START + timedelta(seconds=1))) == ["run-2"]
        assert await list_ids(Scope("a"), replace(everything, limit=1)) == ["run-2"]
        assert await list_ids(Scope.within("a", groups=["board"]), everything) == ["run-2", "run-3", "run-1"]
        assert await list_ids(Scope("b"), everything) == []
        costly = parse_run_filter("cost > 0.001 and error = model_timeout or mode = nothing")
        [answer] = await runs.list_runs(Scope("a"), replace(everything, alternatives=costly))
        assert (answer.run_id, answer.ms, answer.citations, answer.replay) == ("run-2", 80.25, 1, True)

    async def test_workspaces_do_not_see_each_other(self, runs: RunLog, queue: RunQueue) -> None:
        await keep(queue, GREETING)
        assert await runs.get("b", GREETING.run_id) is None
        await keep(queue, replace(GREETING, workspace_id="b", thread_id="thread-2", question="Other"))
        assert await runs.get("a", GREETING.run_id) == GREETING


def spend(node: str, model: str, cost: float | None, calls: int = 1, *, estimated: bool = False) -> Usage:
    return Usage(
        node=node, model=model, calls=calls, input_tokens=1000, output_tokens=50, cost=cost, estimated=estimated
    )


SPENT = [
    ("a", "standard", "paid", START, False, [spend("route", "nano", 0.015625), spend("generate", "mini", 0.0625)]),
    (
        "a",
        "standard",
        "paid again",
        START + timedelta(hours=1),
        False,
        [spend("generate", "mini", 0.125, calls=2, estimated=True)],
    ),
    ("a", "standard", "cached", START + timedelta(hours=1), True, []),
    ("a", "fast", "local", START, False, []),
    ("b", "fast", "paid", START, False, [spend("generate", "ours", None, calls=3), spend("generate", "mini", 0.5)]),
    ("a", "fast", "old", START - timedelta(days=8), False, [spend("generate", "mini", 9.0)]),
]


class CostContract:
    """The log sums up costs."""

    @pytest_asyncio.fixture(autouse=True)
    async def spent(self, queue: RunQueue) -> None:
        for workspace, mode, name, at, cached, usage in SPENT:
            await keep(queue, RunRecord(name, f"of {workspace}", workspace, mode, "?", at, cached=cached, usage=usage))

    async def test_costs_are_summed_by_mode(self, runs: RunLog) -> None:
        costs, total = await runs.sum_costs(None, START - timedelta(days=7), "mode")
        assert costs == [
            Spending("fast", 2, 0, 4, 2000, 100, 0.5, 3, 0, 0),
            Spending("standard", 3, 1, 4, 3000, 150, 0.203125, 0, 2, 0),
        ]
        assert total == Spending(None, 5, 1, 8, 5000, 250, 0.703125, 3, 2, 0)

    async def test_costs_are_summed_by_node_and_model(self, runs: RunLog) -> None:
        costs, _ = await runs.sum_costs(None, START, "node")
        assert [(s.name, s.runs, s.cached, s.calls) for s in costs] == [
            ("generate", 3, 0, 7),
            ("route", 1, 0, 1),
            (None, 2, 1, 0),
        ]
        costs, _ = await runs.sum_costs(None, START, "model")
        assert [(s.name, s.calls, s.unpriced) for s in costs] == [
            ("mini", 4, 0),
            ("nano", 1, 0),
            ("ours", 3, 3),
            (None, 0, 0),
        ]

    async def test_a_workspace_sees_its_own_costs_only(self, runs: RunLog) -> None:
        costs, total = await runs.sum_costs("b", START, "workspace")
        assert costs == [replace(total, name="b")]
        assert (total.runs, total.calls, total.cost) == (1, 4, 0.5)
        everywhere, _ = await runs.sum_costs(None, START, "workspace")
        assert [s.name for s in everywhere] == ["b", "a"]

    async def test_where_nothing_ran_nothing_was_spent(self, runs: RunLog) -> None:
        costs, total = await runs.sum_costs("nobody", START, "node")
        assert costs == []
        assert total == Spending(None, 0, 0, 0, 0, 0, 0.0, 0, 0, 0)


class ThreadStoreContract:
    async def test_lists_conversations_the_latest_first(self, threads: ThreadStore, queue: RunQueue) -> None:
        for thread_id in ("one", "two", "one", "three"):
            assert await end(queue, await begin(queue, request(thread_id, question=f"What of {thread_id}?")))
        await queue.accept(request("elsewhere", "b"), wait=True)
        running = await begin(queue, request("two", question="Is it 100% two_fold?"))
        await queue.accept(request("two"), wait=True)
        listed = await threads.list(Scope("a"), 2)
        assert [(c.thread_id, c.title, c.turns, c.running) for c in listed] == [
            ("two", "What of two?", 3, running.request.run_id),
            ("three", "What of three?", 1, None),
        ]
        assert listed[0].created_at <= listed[0].updated_at
        past = listed[-1].updated_at, listed[-1].thread_id
        [rest] = await threads.list(Scope("a"), 2, after=past)
        assert (rest.thread_id, rest.turns) == ("one", 2)
        assert await threads.get(Scope("a"), "one") == rest
        assert await threads.get(Scope("b"), "one") is None
        found_by = {"100% TWO_": ["two"], "what of t": ["two", "three"], "t%": [], "_": ["two"]}
        # An answer's words count as well.
        for words, found in {**found_by, "36 Months [": ["two", "three", "one"]}.items():
            assert [c.thread_id for c in await threads.list(Scope("a"), 9, words=words)] == found, words

    async def test_a_conversation_has_the_name_that_it_is_given(self, threads: ThreadStore, queue: RunQueue) -> None:
        await begin(queue, request("one"))
        renamed = await threads.rename(Scope("a"), "one", "Rain gauges")
        assert renamed is not None
        assert renamed.title == "Rain gauges"
        assert await threads.list(Scope("a"), 9, words="rain") == [renamed]
        assert await threads.list(Scope("a"), 9, words="warranty") == [renamed]
        assert await threads.rename(Scope("b"), "one", "Theirs") is None

    async def test_a_conversation_is_open_to_whoever_may_read_a_turn_of_it(
        self, threads: ThreadStore, queue: RunQueue
    ) -> None:
        # A document that the store does not know is for those whose groups are not limited.
        hidden = Lineage((UsedDocument("4b7c", 1, shown=True),))
        found = Lineage((UsedDocument("4b7c", 1, shown=False),), ("an earlier run",))
        runs = {}
        for thread_id, lineage in (("hidden", hidden), ("both", hidden), ("both", found), ("open", NO_LINEAGE)):
            lease = await begin(queue, request(thread_id, question=f"What of {thread_id}?", groups=["board"]))
            assert await end(queue, lease, lineage=lineage)
            runs[lease.request.run_id] = lineage
        running = await begin(queue, request("running", groups=["board"]))
        board, staff = Scope.within("a", groups=["board"]), Scope.within("a", groups=["staff"])
        names = ["hidden", "both", "open", "running"]
        for asker, open_to in ((Scope("a"), names), (board, ["both", "open", "running"]), (staff, ["both", "open"])):
            assert {each.thread_id for each in await threads.list(asker, 9)} == set(open_to)
            assert [name for name in names if await threads.is_open_to(asker, name)] == open_to
            assert await threads.is_open_to(asker, "nowhere")
        assert await threads.list(staff, 9, words="hidden") == []
        assert {each.thread_id for each in await threads.list(staff, 9, words="36 months")} == {"both", "open"}
        assert [turn.request.run_id for turn in await queue.list_turns(staff, "both", 9)] == [
            run_id for run_id, lineage in runs.items() if lineage is found
        ]
        everything = {*runs, running.request.run_id, "unknown"}
        assert await queue.list_readable(Scope("a"), everything, steps=True) == everything
        readable = {run_id for run_id, lineage in runs.items() if lineage is not hidden} | {"unknown"}
        assert await queue.list_readable(staff, everything) == readable
        assert await queue.list_readable(board, everything) == readable | {running.request.run_id}
        assert await queue.list_readable(staff, everything, steps=True) == readable - {
            run_id for run_id, lineage in runs.items() if lineage is found
        }

    async def test_who_asked_in_a_conversation_is_known(
        self, threads: ThreadStore, queue: RunQueue, runs: RunLog
    ) -> None:
        for thread_id, caller in (("one", "ann"), ("one", "ben"), ("one", "ann"), ("two", "ann"), ("three", "")):
            assert await end(queue, await begin(queue, request(thread_id, caller=caller)))
        await keep(queue, replace(ANSWER, thread_id="four"))
        beginners = [await threads.find_beginner("a", name) for name in ("one", "two", "three", "four", "none")]
        assert beginners == ["ann", "ann", "", "", None]
        assert await threads.find_beginner("b", "one") is None
        assert [c.thread_id for c in await threads.list(Scope("a"), 9, caller="ben")] == ["one"]
        assert [c.thread_id for c in await threads.list(Scope("a"), 9, caller="ann")] == ["two", "one"]

    async def test_replays_and_what_was_refused_are_no_conversation(
        self, threads: ThreadStore, queue: RunQueue
    ) -> None:
        await threads.claim("a", "branch")
        assert await end(queue, await begin(queue, request("branch", forked_from={"thread_id": "one"})))
        assert await threads.list(Scope("a"), 9) == []
        lease = await begin(queue, request("one"))
        before = await threads.list(Scope("a"), 9)
        with pytest.raises(ThreadBusy):
            await queue.accept(request("one", question="Refused?"), wait=False)
        assert await threads.list(Scope("a"), 9) == before
        assert await threads.list(Scope("a"), 9, words="Refused") == []
        await end(queue, lease)
        await begin(queue, request("branch", question="And then?"))
        assert [c.title for c in await threads.list(Scope("a"), 1)] == ["And then?"]

    async def test_a_claimed_thread_exists(self, threads: ThreadStore) -> None:
        assert not await threads.exists("a", "thread-1")
        await threads.claim("a", "thread-1")
        await threads.claim("a", "thread-1")
        assert await threads.exists("a", "thread-1")

    async def test_each_workspace_may_have_a_thread_of_this_id(self, threads: ThreadStore) -> None:
        await threads.claim("a", "thread-1")
        assert not await threads.exists("b", "thread-1")
        names = [f"w{i}" for i in range(8)]
        await asyncio.gather(*(threads.claim(name, "thread-1") for name in names for _ in range(2)))
        assert all([await threads.exists(name, "thread-1") for name in names])
