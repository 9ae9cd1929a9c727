"""What a process says of a run that it has lost without knowing it."""

from uuid import uuid4

import psycopg

from app.answering.records import adopt
from app.settings import Settings
from app.wiring.services import Services
from domain.runs import RunRequest
from domain.scope import Scope
from domain.state import TurnInput
from tests.asking import QUESTION, ask, read_state


async def test_states_of_an_attempt_that_another_one_has_followed_are_not_stored(
    services: Services, settings: Settings, library: dict[str, str]
) -> None:
    answered = await ask(services)
    thread_id, run_id = answered["thread_id"], str(uuid4())
    turn = TurnInput(
        run_id=run_id,
        question=QUESTION,
        scope=Scope.within("default", None).to_json(),
        mode="standard",
        profile=services.modes["standard"].model_dump(),
    )
    lease = await services.runs.queue.accept(RunRequest(run_id, thread_id, "default", turn), wait=False)
    assert lease is not None
    assert settings.database_url
    async with await psycopg.AsyncConnection.connect(settings.database_url.get_secret_value()) as connection:
        await connection.execute("UPDATE accepted_runs SET attempt = 2 WHERE run_id = %s", [run_id])

    async def write(attempt: int) -> list[str]:
        await services.runs.states.write(thread_id, adopt(turn, [], answered), attempt=attempt)
        await services.runs.states.flush("default", thread_id)
        return [past["run_id"] for past in (await read_state(services, thread_id))["turns"]]

    assert await write(1) == [answered["run_id"]]
    assert await write(2) == [run_id]
