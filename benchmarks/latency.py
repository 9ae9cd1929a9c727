"""Measures a question step by step, the CPU of a turn, and a cached answer; without a language model.

    python -m benchmarks.latency [PATH ...]    # files or folders to ask about; the sample library by default

Prints milliseconds as p50 / p95 on this machine, now; compare rows with each other, not with another machine's. CPU is
that of this process, without Postgres and Valkey.
"""

import asyncio
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from app.answering.requests import Ask, collect
from app.samples import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.shared import make_questions, show

BEFORE_GENERATION = ("route", "retrieve", "rerank", "grade", "reformulate")


async def measure(paths: Sequence[Path]) -> None:
    """Load `paths` into a fresh home, ask, and print."""
    with tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home:
        async with open_services(read_settings(home=Path(home), load_samples=False)) as services:
            report = await services.library.ingestion.add_paths("default", paths)
            pages = sum(d.pages or 0 for d in report.documents)
            print(
                f"ingest: {len(report.documents)} documents, {pages} pages, {report.chunks} chunks in "
                f"{report.seconds:.1f} s: {report.chunks / report.seconds:.1f} chunks/s"
            )
            questions = await make_questions(services)
            for mode in services.modes:
                await measure_mode(services, mode, questions)
            await measure_cache(services, questions)


async def measure_mode(services: Services, mode: str, questions: list[str]) -> None:
    """Print the time of each step in one mode."""
    times: dict[str, list[float]] = defaultdict(list)
    async with services.make_run_manager() as turns:
        for number, question in enumerate(questions):
            spent, began, first = time.process_time(), time.perf_counter(), 0.0
            # A number makes each question new to the cache.
            async for event in await turns.ask(Ask(f"{question} ({number} {mode})", mode=mode)):
                if event["type"] == "content":
                    first = first or time.perf_counter()
                ended = event
            assert ended["type"] == "done", ended
            timings = ended["timings"]
            for step, ms in timings.items():
                times[step].append(ms)
            times["before generation"].append(sum(timings.get(step, 0.0) for step in BEFORE_GENERATION))
            times["everything but generation"].append(timings["total"] - timings.get("generate", 0.0))
            times["to the first word"].append(1000 * ((first or time.perf_counter()) - began))
            times["CPU"].append(1000 * (time.process_time() - spent))
    print(f"\n{mode}: {len(questions)} questions, ms as p50 / p95")
    for name, values in times.items():
        print(f"  {name:<26} {show(values)}   (n = {len(values)})")


async def measure_cache(services: Services, questions: list[str]) -> None:
    """Print the time of a cached answer, from the question to the last event."""
    times: list[float] = []
    async with services.make_run_manager() as turns:
        for question in questions:
            for _ in range(6):
                ended, _ = await collect(await turns.ask(Ask(question)))
                if ended["type"] == "done" and ended["cached"]:
                    times.append(ended["timings"]["total"])
    print(f"\ncached: {len(times)} repeats, ms as p50 / p95\n  {'total':<26} {show(times)}")


if __name__ == "__main__":
    asyncio.run(measure([Path(argument) for argument in sys.argv[1:]] or [FOLDER]))
