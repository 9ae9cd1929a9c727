"""`askgraph worker`, started and stopped as its user would."""

import asyncio
import signal
import sys
from pathlib import Path
from uuid import uuid4

from app.settings import Settings
from app.wiring.services import Services
from domain.runs import RunRequest
from domain.scope import Scope
from domain.state import TurnInput
from tests.conftest import HANDBOOK, find_programs

ASKGRAPH = Path(sys.executable).with_name("askgraph")


async def test_a_worker_reads_uploads_takes_over_runs_and_ends_in_order(services: Services, settings: Settings) -> None:
    assert settings.database_url
    assert settings.redis_url
    await services.library.ingestions.accept("default", "handbook.md", HANDBOOK)
    run_id = str(uuid4())
    turn = TurnInput(
        run_id=run_id,
        question="How long is the warranty of the Falke?",
        scope=Scope.within("default", None).to_json(),
        mode="fast",
        profile=services.modes["fast"].model_dump(),
    )
    lease = await services.runs.queue.accept(RunRequest(run_id, "thread-1", "default", turn), wait=True)
    assert lease is not None

    process = await asyncio.create_subprocess_exec(
        ASKGRAPH,
        "worker",
        env={
            **find_programs(),
            "DATABASE_URL": settings.database_url.get_secret_value(),
            "REDIS_URL": settings.redis_url.get_secret_value(),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        assert b"is ready" in await process.stdout.readline()
        async with asyncio.timeout(30):
            while await services.library.documents.find("default", "handbook.md") is None:  # noqa: ASYNC110 - elsewhere
                await asyncio.sleep(0.1)
            await services.runs.queue.hand_back(lease)
            while (status := await services.runs.queue.get("default", run_id)) is None or status.ended is None:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert (status.state, status.attempt) == ("done", 2)
        assert status.ended["type"] == "done"
        assert "36 months" in status.ended["answer"]
    finally:
        process.send_signal(signal.SIGTERM)
        _, code = await process.communicate(), process.returncode
    assert code == 0


STUCK = """
import asyncio, time, uvloop
from app.serving import shutdown, worker

shutdown.STOP_SECONDS = 2

async def main():
    asyncio.get_running_loop().run_in_executor(None, time.sleep, 300)
    await worker.run_worker(1)

uvloop.run(main())
"""


async def test_a_process_with_a_thread_that_never_returns_ends_in_time(settings: Settings) -> None:
    assert settings.database_url
    assert settings.redis_url
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        STUCK,
        env={
            **find_programs(),
            "DATABASE_URL": settings.database_url.get_secret_value(),
            "REDIS_URL": settings.redis_url.get_secret_value(),
        },
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout
        assert b"is ready" in await process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 1
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
