"""Proves that runs replay strictly, and measures how fast many are replayed.

    python -m benchmarks.replays [TURNS]    # the sample library; 1,000 turns, minutes on an idle machine

First 200 varied runs, without a model and with a loopback one in a process of its own: every mode, follow-ups, small
talk, abstentions and retries. All of them are replayed strictly, once as they are, and once after a change of the
prompt that verify asks a model with: exactly the runs that used it must differ. Runs that were stopped or answered from
the cache have nothing to repeat; they must say so.

Then TURNS taped turns are replayed strictly, and as a fleet with another threshold, on one core.
"""

import gc
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uvloop

import nodes.verify.step
from app.answering.requests import Ask, collect, read_events
from app.library import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from app.workbench.fleet.fleet import make_variant
from app.workbench.replay.replay import Replay
from benchmarks.latency import make_questions
from benchmarks.streaming import start
from benchmarks.taping import OPENINGS
from domain.errors import AskgraphError
from domain.run_lists import RunFilter
from domain.scope import DEFAULT_SCOPE

VARIED = 200
HOME_PREFIX = f"askgraph-replays-{os.getpid()}-"
FOLLOW_UP = "And what else is there to know about it?"
ASKED = ("Hello there!", "What does the zoo in Lisbon charge for parrots?", "Play some music.", "What can you do?")
"""Small talk, a question that nothing answers, one out of scope, one about the assistant."""


@asynccontextmanager
async def open_library(**model: Any) -> AsyncIterator[Services]:
    """Open the sample library in a home of its own."""
    with tempfile.TemporaryDirectory(prefix=HOME_PREFIX) as home:
        async with open_services(read_settings(home=Path(home), load_samples=False, **model)) as services:
            await services.library.ingestion.add_paths("default", [FOLDER])
            yield services


async def prove(name: str, services: Services, most: int) -> None:
    """Make varied runs, replay them strictly, and again with another prompt."""
    made = await make_varied(services, most)
    records = {run_id: await services.runs.log.get("default", run_id) for run_id in made}
    kinds = Counter(f"{record.outcome}" for record in records.values() if record)
    retried = sum(record.retries > 0 for record in records.values() if record)
    modes = len({record.mode for record in records.values() if record})
    print(f"{name}: {len(made)} runs in {modes} modes, {retried} searched again; {dict(kinds)}")
    results = {run_id: await replay_strictly(services, run_id) for run_id in made}
    print(f"  strict replay: {Counter(results.values())}")
    with patch.object(nodes.verify.step, "PROMPT", nodes.verify.step.PROMPT + " Be brief."):
        results = {run_id: await replay_strictly(services, run_id) for run_id in made}
    differing = {run_id for run_id, result in results.items() if result != "identical"}
    used = {run_id for run_id, record in records.items() if record and "verify" in record.prompts}
    print(
        f"  after a change of verify's prompt: {len(differing)} differ, {len(used)} used it, same: {differing == used}"
    )
    await prove_unrepeatable(services)


async def make_varied(services: Services, most: int) -> list[str]:
    """Ask questions of every kind in every mode, and return the runs."""
    questions = [*ASKED, *await make_questions(services)]
    made: list[str] = []
    for number, (question, mode) in enumerate(islice(product(questions, services.modes), most)):
        done = await ask(services, question, mode=mode)
        made.append(done["run_id"])
        if number % 10 == 9:
            made.append((await ask(services, FOLLOW_UP, mode=mode, thread_id=done["thread_id"]))["run_id"])
    return made[:most]


async def prove_unrepeatable(services: Services) -> None:
    """Replay a run from the cache and one that was stopped, and print what they say."""
    await ask(services, "How many days of leave do I get?")
    cached = await ask(services, "How many days of leave do I get?", forget=False)
    print(f"  from the cache ({cached['cached']}): {await replay_strictly(services, cached['run_id'])}")
    async with services.make_run_manager() as turns:
        accepted = await turns.start(Ask("What is a business trip paid with, and who approves it?"))
        await turns.stop("default", accepted.run_id)
        await collect(read_events(turns.follow(accepted)))
    print(f"  stopped: {await replay_strictly(services, accepted.run_id)}")


async def ask(services: Services, question: str, *, forget: bool = True, **options: Any) -> dict[str, Any]:
    """Ask, and return the end of the run."""
    if forget:
        await services.runs.answers.forget("default")
    async with services.make_run_manager() as turns:
        ended, _ = await collect(await turns.ask(Ask(question, **options)))
    assert ended["type"] == "done", ended
    return dict(ended)


async def replay_strictly(services: Services, run_id: str) -> str:
    """Return `identical`, or what is not."""
    async with services.make_run_manager() as turns:
        try:
            events = await services.make_replayer(turns).run(Replay("default", run_id=run_id, tape="strict"))
        except AskgraphError as error:
            return error.message
        async for event in events:
            if event["type"] == "comparison":
                return "identical" if event["identical"] else "differs"
            if event["type"] == "error":
                return event["code"]
    return "no comparison"


async def measure(services: Services, turns: int) -> None:
    """Make so many turns, and replay them on one core."""
    questions = [f"{opening}{question}" for opening in OPENINGS for question in await make_questions(services)]
    made = []
    for question, mode in islice(product(questions, ("standard", "fast", "thorough")), turns):
        made.append((await ask(services, question, mode=mode))["run_id"])
    use_one_core()
    # As the command does once everything is open.
    gc.collect()
    gc.freeze()
    await report(f"strict replay of {len(made)} turns", services, made)
    # All that the first change needs is on the tapes; the second one shows the reader other passages.
    for changes, most in (({"profile.grade.caveat": 0.3}, turns), ({"profile.rerank.keep": 3}, 100)):
        began, cpu = time.perf_counter(), count_cpu()
        variant = make_variant(changes, None)
        fleet = services.make_debugger().make_fleet(services.modes)
        wanted = RunFilter(datetime.now(UTC) - timedelta(days=1), limit=most)
        plan, planned = await fleet.plan(DEFAULT_SCOPE, wanted, variant)
        found = await fleet.run(DEFAULT_SCOPE, plan, planned, variant)
        own, database = (after - before for after, before in zip(count_cpu(), cpu, strict=True))
        print(
            f"{variant.label}: {plan['runs']} runs planned, {found['tried']} replayed, {found['changed']} changed, "
            f"{sum(row['made'] for row in found['runs'])} new calls: {own:.1f} s of CPU and {database:.1f} s of "
            f"Postgres's, {time.perf_counter() - began:.1f} s by the clock",
            flush=True,
        )


async def report(name: str, services: Services, made: Sequence[str]) -> None:
    """Replay runs strictly, and print how long it took."""
    began, cpu = time.perf_counter(), count_cpu()
    results = Counter([await replay_strictly(services, run_id) for run_id in made])
    own, database = (after - before for after, before in zip(count_cpu(), cpu, strict=True))
    print(
        f"{name}: {own:.1f} s of CPU and {database:.1f} s of Postgres's, {time.perf_counter() - began:.1f} s by the "
        f"clock; {dict(results)}",
        flush=True,
    )


def count_cpu() -> tuple[float, float]:
    """Return the seconds of CPU that this process has used, and those of the processes that it has begun."""
    stats = [path.read_text().rpartition(") ")[2].split() for path in find_processes()]
    tick = os.sysconf("SC_CLK_TCK")
    return time.process_time(), sum(sum(map(int, each[11:15])) for each in stats) / tick


def find_processes() -> list[Path]:
    """Return what /proc says of the processes of this session that are not this one: the embedded databases'."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if is_begun_here(stat.parent):
                found.append(stat)
    return found


def is_begun_here(process: Path) -> bool:
    """Return True where the process, or one that has begun it, works in the home of this benchmark."""
    while process.name not in ("0", "1"):
        if HOME_PREFIX in (process / "cmdline").read_text():
            return process.name != str(os.getpid())
        process = Path("/proc") / (process / "stat").read_text().rpartition(") ")[2].split()[1]
    return False


def use_one_core() -> None:
    """Keep all threads of this process on one core."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), {0})


async def main(turns: int) -> None:
    """Run both parts."""
    async with open_library() as services:
        await prove("no model", services, VARIED // 2)
    with start("/v1/models", "-m", "tests.wire.openai", "--port", "PORT") as (address, _):
        async with open_library(OPENAI_BASE_URL=f"{address}/v1") as services:
            await prove("loopback model", services, VARIED // 2)
    async with open_library() as services:
        await measure(services, turns)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
