"""No answer is older than an acknowledged change, while another process changes the documents."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE

from app.answering.manager import RunManager
from app.answering.requests import Ask, collect
from app.wiring.services import Services
from domain.events import Done
from tests.asking import QUESTION

STEPS = 9
"""Changes. Every third deletes the document; the others replace its fact by one named after the step."""

CHANGE = """
import asyncio, sys
from app.adapters.redis.answers import RedisAnswerCache
from app.wiring.services import open_services
from app.settings import read_settings

async def keep(self, workspace_id):
    pass

async def main():
    # Changes also drop the workspace's answers. Without that, no outdated one may be given either.
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
            # The next change comes once the test has seen enough of this one, however slow the machine is.
            await asyncio.to_thread(sys.stdin.readline)

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
    enough = asyncio.Event()
    """Set by the first cached answer after a change."""
    over = False

    def check(done: Done, floor: int) -> None:
        said = [int(months) for months in re.findall(r"(1\d\d) months", done["answer"])]
        assert all(step >= floor for step in said), (said, floor)

    async def ask_often(manager: RunManager) -> None:
        while not over:
            floor = acknowledged
            done, _ = await collect(await manager.ask(Ask(QUESTION)))
            assert done["type"] == "done"
            check(done, floor)
            if done["cached"] and acknowledged == floor:
                enough.set()
            await asyncio.sleep(0.005)

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CHANGE, str(STEPS), env=environment, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with (
            services.make_run_manager() as manager,
            asyncio.TaskGroup() as group,
        ):
            for _ in range(3):
                group.create_task(ask_often(manager))
            async for line in process.stdout:
                acknowledged = int(line)
                enough.clear()
                # An abstention is not cached: after a deletion there is nothing to wait for.
                if acknowledged % 3 != 0:
                    await enough.wait()
                process.stdin.write(b"\n")
            over = True
    finally:
        if not over:
            process.kill()
    assert await process.wait() == 0
    assert acknowledged == 99 + STEPS
