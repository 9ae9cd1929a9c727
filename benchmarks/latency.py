"""Measures the latency of a question, node by node, and of a cached answer.

    python -m benchmarks.latency [PATH ...]    # files or folders to ask about; the sample library by default

Prints milliseconds as p50 / p95 on this machine, now; compare rows with each other, not with another machine's.
"""

import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from app.answering.requests import Ask, collect
from app.library import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from domain.scope import Scope

SUBJECTS = 40
"""Questions are made from the headings and first words of this many chunks, so that any library can be measured."""

BEFORE_GENERATION = ("route", "retrieve", "rerank", "grade", "reformulate")


async def measure(paths: Sequence[Path]) -> None:
    """Load `paths` into a fresh home, ask, and print."""
    with tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home:
        settings = read_settings(home=Path(home), load_samples=False)
        async with open_services(settings) as services:
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


async def make_questions(services: Services, workspace: str = "default") -> list[str]:
    """Questions whose answers are somewhere in the library, and some that are not."""
    scope = Scope(workspace)
    vector = await services.library.embedder.embed_query("information about rules, numbers and dates")
    matches = await services.library.search.search_dense(scope, vector, SUBJECTS)
    passages = await services.library.search.read_passages(scope, [m.chunk_id for m in matches])
    subjects = [" ".join([*p.heading_path[-1:], *p.text.split()[:6]]) for p in passages]
    return [f"What is said about {subject}?" for subject in subjects] + ["Who won the world cup of 1954?"] * 2


async def measure_mode(services: Services, mode: str, questions: list[str]) -> None:
    """Print the time of each node in one mode."""
    turns = services.make_run_manager()
    times: dict[str, list[float]] = defaultdict(list)
    for number, question in enumerate(questions):
        # A number makes each question new to the cache.
        ended, _ = await collect(await turns.ask(Ask(f"{question} ({number} {mode})", mode=mode)))
        assert ended["type"] == "done", ended
        for node, ms in ended["timings"].items():
            times[node].append(ms)
        times["before generation"].append(sum(ended["timings"].get(node, 0.0) for node in BEFORE_GENERATION))
        generation = ended["timings"].get("generate", 0.0)
        times["everything but generation"].append(ended["timings"]["total"] - generation)
    await turns.close()
    print(f"\n{mode}: {len(questions)} questions, ms as p50 / p95")
    for node, values in times.items():
        print(f"  {node:<26} {show(values)}")


async def measure_cache(services: Services, questions: list[str]) -> None:
    """Print the time of a cached answer, from the question to the last event."""
    turns = services.make_run_manager()
    times: list[float] = []
    for question in questions:
        await collect(await turns.ask(Ask(question)))
        for _ in range(5):
            ended, _ = await collect(await turns.ask(Ask(question)))
            if ended["type"] == "done" and ended["cached"]:
                times.append(ended["timings"]["total"])
        await turns.close()
    print(f"\ncached: {len(times)} repeats, ms as p50 / p95\n  {'total':<26} {show(times)}")


def show(values: Sequence[float]) -> str:
    """The median and the 95th percentile."""
    return f"{np.percentile(values, 50):8.1f} / {np.percentile(values, 95):8.1f}   (n = {len(values)})"


if __name__ == "__main__":
    asyncio.run(measure([Path(argument) for argument in sys.argv[1:]] or [FOLDER]))
