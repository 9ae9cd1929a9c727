"""While another process changes the documents, no answer is of before a change that was acknowledged."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE

import redis.asyncio

from app.runs.cache import decode_done
from app.runs.manager import RunManager
from app.runs.recall import Recall
from app.runs.requests import Ask, collect
from app.wiring.services import Services
from domain.events import Done
from tests.asking import QUESTION

STEPS = 15
"""Every third deletes; the others replace the fact by one that is named after the step."""

CHANGE = """
import asyncio, sys
from app.adapters.redis.answers import RedisAnswerCache
from app.wiring.services import open_services
from app.settings import read_settings

async def keep(self, workspace_id):
    pass

async def main():
    # Changes drop the workspace's answers, too; here none may be given even where that comes late.
    RedisAnswerCache.forget = keep
    async with open_services(read_settings(load_samples=False)) as services:
        document_id = None
        for step in range(100, 100 + int(sys.argv[1])):
            if step % 3 == 0:
                await services.library.ingestion.delete("default", document_id)
            else:
                text = f"# Falke manual\\n\\nThe Falke weather station has a warranty of {step} months.\\n"
                document_id = (await services.library.ingestion.add("default", "falke.md", text.encode())).document_id
            print(step, flush=True)
            await asyncio.sleep(0.1)

asyncio.run(main())
"""


async def test_no_answer_is_older_than_an_acknowledged_change(services: Services) -> None:
    assert services.settings.database_url
    assert services.settings.redis_url
    environment = os.environ | {
        "DATABASE_URL": services.settings.database_url.get_secret_value(),
        "REDIS_URL": services.settings.redis_url.get_secret_value(),
    }
    acknowledged = 0
    given = 0
    over = False

    def check(done: Done, floor: int) -> None:
        said = [int(months) for months in re.findall(r"(1\d\d) months", done["answer"])]
        assert all(step >= floor for step in said), (said, floor)

    async def recall_often(recall: Recall) -> None:
        nonlocal given
        while not over:
            floor = acknowledged
            recalled = await recall.serve(Ask(QUESTION))
            if recalled is not None:
                own = {"run_id": recalled.run_id, "thread_id": recalled.thread_id, "timings": {}}
                check(decode_done(recalled.answer.done, own), floor)
                given += 1
            await asyncio.sleep(0.002)

    async def ask_often(turns: RunManager) -> None:
        while not over:
            floor = acknowledged
            done, _ = await collect(await turns.ask(Ask(QUESTION)))
            assert done["type"] == "done"
            check(done, floor)
            await asyncio.sleep(0.01)

    async def expire_often(client: redis.asyncio.Redis) -> None:
        """What is known of the documents, so that each change meets something that is known."""
        while not over:
            for key in await client.keys("*:corpus:*"):
                await client.unlink(key)
            await asyncio.sleep(0.05)

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHANGE, str(STEPS), env=environment, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        async with (
            redis.asyncio.Redis.from_url(environment["REDIS_URL"]) as client,
            services.make_run_manager() as turns,
            services.make_recall() as recall,
            asyncio.TaskGroup() as group,
        ):
            group.create_task(expire_often(client))
            group.create_task(ask_often(turns))
            for _ in range(2):
                group.create_task(recall_often(recall))
            async for line in process.stdout:
                acknowledged = int(line)
            over = True
    finally:
        if not over:
            process.kill()
    assert await process.wait() == 0
    assert acknowledged == 99 + STEPS
    # Otherwise nothing was put to the test. How many, the machine's other work decides.
    assert given
