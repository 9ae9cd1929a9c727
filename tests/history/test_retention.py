"""Deleting what is kept no longer, of real conversations."""

import asyncio
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from app.adapters.postgres import retention
from app.answering.requests import collect
from app.history.costs import parse_since, read_costs
from app.history.retention import apply_settings, override_policy, prune, read_policy
from app.settings import read_settings
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import ConfigurationError, InputError, UnknownCheckpoint
from domain.events import Done
from domain.history.retention import Policy, Pruned
from domain.runs import RunRequest
from domain.scope import Scope
from domain.state import TurnInput
from tests.asking import ask

TABLES = ["threads", "runs", "tapes", "accepted_runs", "state_packs"]
MONTH = Policy(timedelta(days=30))
STEPS_OF_A_MONTH = Policy(steps_for=timedelta(days=30))
STEPS = ["__start__", "route", "retrieve", "rerank", "grade", "generate"]


async def query(database_url: str, statement: Any, *params: Any) -> list[dict[str, Any]]:
    async with await psycopg.AsyncConnection.connect(database_url, row_factory=dict_row) as connection:
        cursor = await connection.execute(statement, params)
        return await cursor.fetchall() if cursor.description else []


async def age(database_url: str, *threads: str, days: int = 60) -> None:
    """Let the threads' runs have begun so many days earlier."""
    for statement in (
        "UPDATE threads SET created_at = created_at - make_interval(days => %s) WHERE thread_id = ANY (%s)",
        "UPDATE runs SET started_at = started_at - make_interval(days => %s) WHERE thread_id = ANY (%s)",
    ):
        await query(database_url, statement, days, list(threads))


async def count(database_url: str, thread_id: str) -> dict[str, int]:
    return {
        table: (
            await query(
                database_url,
                f"SELECT count(*) AS rows FROM {table} WHERE thread_id = %s",
                thread_id,
            )
        )[0]["rows"]
        for table in TABLES
    }


async def list_threads(database_url: str) -> set[str]:
    return {row["thread_id"] for row in await query(database_url, "SELECT thread_id FROM threads")}


async def replay(services: Services, run_id: str, **options: Any) -> tuple[Any, list[Any]]:
    async with services.make_run_manager() as turns:
        return await collect(await services.make_replayer(turns).run(Replay("default", run_id=run_id, **options)))


async def converse(services: Services, turns: int) -> list[Done]:
    """Questions in one thread, none of which is answered from the cache."""
    said: list[Done] = []
    questions = ["How long is the warranty of the Falke", "How long does the battery of the Falke last"]
    for number in range(turns):
        thread = said[0]["thread_id"] if said else None
        said.append(await ask(services, questions[number % 2] + "?" * (number + 1), thread_id=thread))
    assert not any(ended["cached"] for ended in said)
    return said


async def test_a_thread_past_its_age_goes_wholly_and_its_costs_stay(
    services: Services, library: dict[str, str], database_url: str
) -> None:
    old, young = await ask(services), await ask(services, "How long does the battery of the Falke last?")
    await age(database_url, old["thread_id"])
    before = await count(database_url, old["thread_id"])
    kept = await count(database_url, young["thread_id"])
    assert all(before.values()), before
    since = parse_since("90d")
    costs = await read_costs(services.runs.log, "default", since, "mode")

    planned = await prune(services.runs.retention, MONTH, dry_run=True)
    assert await count(database_url, old["thread_id"]) == before
    pruned = await prune(services.runs.retention, MONTH)
    assert pruned == planned
    assert (pruned.threads, pruned.runs, pruned.tapes) == (1, 1, 1)
    assert pruned.states == len(STEPS) + 1
    assert pruned.bytes > 10_000
    assert not any((await count(database_url, old["thread_id"])).values())
    assert await count(database_url, young["thread_id"]) == kept
    assert (await replay(services, young["run_id"], tape="strict"))[0]["type"] == "done"
    assert (await read_costs(services.runs.log, "default", since, "mode")) == costs
    assert costs["total"]["runs"] == 2
    left = await query(database_url, "SELECT * FROM pruned_runs")
    assert [row["run_id"] for row in left] == [old["run_id"]]
    assert "Falke" not in str(left)
    assert await prune(services.runs.retention, MONTH) == Pruned()


async def test_a_thread_in_which_a_run_is_not_over_stays(
    services: Services, library: dict[str, str], database_url: str
) -> None:
    ended = await ask(services)
    thread_id = ended["thread_id"]
    await age(database_url, thread_id)
    turn = TurnInput(run_id="next", question="?", scope=Scope("default").to_json(), mode="standard", profile={})
    lease = await services.runs.queue.accept(RunRequest("next", thread_id, "default", turn), wait=True)
    assert lease is not None
    before = await count(database_url, thread_id)
    assert await prune(services.runs.retention, MONTH) == Pruned()
    assert await count(database_url, thread_id) == before
    await query(database_url, "UPDATE accepted_runs SET state = 'stopped' WHERE run_id = 'next'")
    assert (await prune(services.runs.retention, MONTH)).threads == 1


async def test_workspaces_have_policies_of_their_own(
    services: Services, library: dict[str, str], database_url: str
) -> None:
    threads = {name: f"thread-of-{name}" for name in ("default", "acme", "legal")}
    for workspace, thread in threads.items():
        await ask(services, "Hello!", scope=Scope(workspace), thread_id=thread)
    await age(database_url, *threads.values(), days=10)
    policy = Policy.parse("90d,acme=7d,legal=keep")
    assert (await prune(services.runs.retention, policy)).threads == 1
    assert await list_threads(database_url) == {threads["default"], threads["legal"]}
    assert (await prune(services.runs.retention, override_policy(policy, "7d", None))).threads == 1
    assert await list_threads(database_url) == {threads["legal"]}
    assert await prune(services.runs.retention, override_policy(policy, "7d", "acme"), workspace_id="acme") == Pruned()
    assert (
        await prune(services.runs.retention, override_policy(policy, "7d", "legal"), workspace_id="legal")
    ).threads == 1


async def test_two_prunes_share_the_work_and_pass_over_what_is_in_use(
    services: Services, library: dict[str, str], database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    threads = [f"thread-{number}" for number in range(7)]
    for thread in threads:
        await ask(services, "Hello!", thread_id=thread)
    await age(database_url, *threads)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        # As accepting a run does.
        await connection.execute("UPDATE threads SET thread_id = thread_id WHERE thread_id = 'thread-3'")
        first, second = await asyncio.gather(
            prune(services.runs.retention, MONTH), prune(services.runs.retention, MONTH)
        )
    assert first.threads + second.threads == 6
    assert first.runs + second.runs == 6
    assert await list_threads(database_url) == {"thread-3"}
    assert (await prune(services.runs.retention, MONTH)).threads == 1


async def test_what_belongs_to_no_thread_goes(services: Services, library: dict[str, str], database_url: str) -> None:
    old, young = await ask(services), await ask(services, "Hello!")
    await query(database_url, "UPDATE state_packs SET thread_id = 'lost' WHERE thread_id = %s", old["thread_id"])
    await query(database_url, "DELETE FROM threads")
    await age(database_url, old["thread_id"])
    # Of states that are younger than an hour, the thread may be one of an evaluation that is asking.
    assert await prune(services.runs.retention, MONTH, workspace_id="default") == Pruned()
    pruned = await prune(services.runs.retention, MONTH)
    assert (pruned.runs, pruned.states) == (1, 0)
    await query(database_url, "UPDATE state_packs SET saved_at = now() - interval '2 hours' WHERE thread_id = 'lost'")
    pruned = await prune(services.runs.retention, MONTH)
    assert pruned.states == len(STEPS) + 1
    assert not any((await count(database_url, "lost")).values())
    assert (await count(database_url, young["thread_id"]))["state_packs"] > 0


async def test_older_runs_lose_their_steps_and_tapes_and_the_conversation_goes_on(
    services: Services, library: dict[str, str], database_url: str
) -> None:
    said = await converse(services, 3)
    thread_id = said[0]["thread_id"]
    full = await services.make_history_reader().read("default", thread_id)
    for table, column in (("state_packs", "saved_at"), ("runs", "started_at")):
        moved = f"UPDATE {table} SET {column} = {column} - interval '60 days' WHERE run_id = ANY (%s)"
        await query(database_url, moved, [said[0]["run_id"], said[2]["run_id"]])
    before = await count(database_url, thread_id)
    planned = await prune(services.runs.retention, STEPS_OF_A_MONTH, dry_run=True)
    assert await count(database_url, thread_id) == before
    assert await prune(services.runs.retention, STEPS_OF_A_MONTH, workspace_id="acme") == Pruned()
    pruned = await prune(services.runs.retention, STEPS_OF_A_MONTH)
    assert pruned == planned
    # Of the last run, too, the tape; its states are what the next turn begins from.
    assert (pruned.threads, pruned.runs, pruned.tapes, pruned.states) == (0, 0, 2, len(STEPS) + 1)
    left = await services.make_history_reader().read("default", thread_id)
    assert [step["checkpoint_id"] for step in left] == [step["checkpoint_id"] for step in full[len(STEPS) :]]
    assert left[1:] == full[len(STEPS) + 1 :]
    for options in ({"tape": "strict"}, {"tape": "off"}):
        with pytest.raises(UnknownCheckpoint, match="Its steps and its tape are gone"):
            await replay(services, said[0]["run_id"], **options)
    _, events = await replay(services, said[1]["run_id"], tape="strict")
    assert next(event["identical"] for event in events if event["type"] == "comparison")
    assert (await replay(services, said[2]["run_id"], tape="off"))[0]["type"] == "done"
    assert await prune(services.runs.retention, STEPS_OF_A_MONTH) == Pruned()
    ended = await ask(services, "And who handles claims?", thread_id=thread_id)
    assert "Petra Lindqvist" in ended["answer"]


async def test_a_branch_outlives_what_it_was_forked_from(
    services: Services, library: dict[str, str], database_url: str
) -> None:
    ended = await ask(services)
    branch, _ = await replay(services, ended["run_id"])
    await age(database_url, ended["thread_id"])
    assert (await prune(services.runs.retention, MONTH)).threads == 1
    again, _ = await replay(services, branch["run_id"])
    assert again["answer"] == ended["answer"]


async def test_a_policy_that_was_chosen_holds_for_every_process(services: Services) -> None:
    chosen = Policy(timedelta(days=90), {"acme": timedelta(hours=12), "legal": None}, None)
    await services.runs.retention.keep_policy(chosen)
    assert await read_policy(services.settings, services.runs.retention) == chosen


def test_a_policy_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert apply_settings(read_settings(), None) == Policy(None, {}, timedelta(days=30))
    chosen = Policy(timedelta(days=7), {"acme": None}, None)
    assert apply_settings(read_settings(), chosen) == chosen
    monkeypatch.setenv("ASKGRAPH_RETENTION", "90d, acme=12h,legal=keep")
    monkeypatch.setenv("ASKGRAPH_KEEP_STEPS", "keep")
    own = {"acme": timedelta(hours=12), "legal": None}
    # Of two that say how long, the environment does.
    assert apply_settings(read_settings(), Policy(timedelta(days=7))) == Policy(timedelta(days=90), own)
    monkeypatch.setenv("ASKGRAPH_KEEP_STEPS", "3m")
    with pytest.raises(ConfigurationError, match="'3m' is no span in h, d or w, nor keep"):
        read_settings()
    monkeypatch.setenv("ASKGRAPH_RETENTION", "90")
    with pytest.raises(ConfigurationError, match="'90' names no span"):
        read_settings()
    for unclear in ("soon", "3m"):
        with pytest.raises(InputError, match=f"'{unclear}' is not a span of time"):
            override_policy(Policy(), unclear, None)


async def test_ingestions_go_by_their_end(services: Services, database_url: str) -> None:
    policy = Policy(timedelta(days=30), {"legal": None, "acme": timedelta(days=7)})
    for workspace, days in (("default", 60), ("default", 20), ("legal", 60), ("acme", 20), ("acme", None)):
        accepted = await services.library.ingestions.accept(workspace, f"{days}.md", b"Words.")
        await query(
            database_url,
            "UPDATE ingestions SET ended_at = now() - make_interval(days => %s) WHERE ingestion_id = %s",
            days,
            accepted.ingestion_id,
        )
    counted = await prune(services.runs.retention, policy, dry_run=True)
    assert (counted.ingestions, counted.bytes > 0) == (2, True)
    assert (await prune(services.runs.retention, policy, workspace_id="default")).ingestions == 1
    assert (await prune(services.runs.retention, policy)).ingestions == 1
    left = await query(database_url, "SELECT workspace_id, source FROM ingestions ORDER BY 1, 2")
    assert [(row["workspace_id"], row["source"]) for row in left] == [
        ("acme", "None.md"),
        ("default", "20.md"),
        ("legal", "60.md"),
    ]
