"""A conversation of which the database has lost a part."""

import psycopg

from app.answering.requests import Ask, collect
from app.api.perimeter.errors import status_of_failure
from app.history.state_check import check_states
from app.wiring.services import Services
from app.workbench.replay.replay import Replay
from domain.errors import DamagedState
from tests.asking import ask

SECOND = "How long does the battery of the Falke last?"


async def test_a_thread_whose_last_turn_is_damaged(
    services: Services, library: dict[str, str], database_url: str
) -> None:
    first = await ask(services, mode="fast")
    thread_id = first["thread_id"]
    intact = await services.make_history_reader().read("default", thread_id)
    second = await ask(services, SECOND, mode="fast", thread_id=thread_id)
    whole = await services.make_history_reader().read("default", thread_id)
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        cut = await connection.execute("""
            UPDATE state_packs SET pack = substring(pack FOR length(pack) - 20)
            WHERE number = (SELECT max(number) FROM state_packs)""")
        assert cut.rowcount == 1

    async with services.make_run_manager() as turns:
        ended, _ = await collect(await turns.ask(Ask(SECOND, thread_id=thread_id, mode="fast")))
        assert ended["type"] == "error"
        assert (ended["code"], ended["retryable"]) == ("damaged_state", False)
        assert status_of_failure(ended) == 409
        latest = whole[-1]["checkpoint_id"]
        assert ended["message"] == DamagedState(thread_id, latest).message
        assert f"thread {thread_id}, checkpoint {latest}" in ended["message"]
        # What can be read can be run on from, in a thread of its own.
        branch = Replay("default", thread_id, intact[1]["checkpoint_id"])
        ended, _ = await collect(await services.make_replayer(turns).run(branch))
        assert ended["type"] == "done"
        assert ended["answer"] == first["answer"]

    steps = await services.make_history_reader().read("default", thread_id)
    damaged = [step for step in steps if step["node"] == "damaged"]
    assert [step for step in steps if step["node"] != "damaged"] == intact
    assert steps[-1] == damaged[-1]
    assert {step["run_id"] for step in damaged} == {second["run_id"]}
    assert {step["checkpoint_id"] for step in damaged} >= {s["checkpoint_id"] for s in whole[len(intact) :]}

    found = await check_states(services.runs.saved_states, "default")
    assert {failure.checkpoint_id for failure in found.failures} == {step["checkpoint_id"] for step in damaged}
    assert all(not failure.readable and "Zstd" in failure.why for failure in found.failures)
    assert (await ask(services, SECOND, mode="fast"))["answer"] == second["answer"]
