"""Measures the cost of taping: CPU of turns with a tape beside the same turns without, question by question.

    python -m benchmarks.taping [ROUNDS]    # the sample library; 3 rounds of 42 questions, about two minutes

Without a model, and with a loopback one in a process of its own. Every question is asked in words that are new to all
caches, with a tape and without in changing order. CPU is this process's, in all threads, until the run and its tape are
stored; the ratio is of sums, its spread that of the rounds.
"""

import asyncio
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from app.answering.requests import Ask, collect
from app.library import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.latency import make_questions
from benchmarks.streaming import start

OPENINGS = (
    "Please tell me: ",
    "I would like to know: ",
    "A colleague asks: ",
    "For a customer: ",
    "In short: ",
    "Tell me: ",
)


async def main(rounds: int) -> None:
    """Print CPU with and without a tape, and how large tapes are."""
    with start("/v1/models", "-m", "tests.wire.openai", "--port", "PORT") as (address, _):
        for name, model in (("no model", {}), ("loopback model", {"OPENAI_BASE_URL": f"{address}/v1"})):
            with tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home:
                async with open_services(read_settings(home=Path(home), load_samples=False, **model)) as services:
                    await services.library.ingestion.add_paths("default", [FOLDER])
                    questions = await make_questions(services)
                    for mode in ("standard", "thorough"):
                        await measure(name, services, mode, questions, rounds)


async def measure(name: str, services: Services, mode: str, questions: list[str], rounds: int) -> None:
    """Print one row."""
    off = replace(services, settings=services.settings.model_copy(update={"tapes": False}))
    for warm in (off, services):
        await ask(warm, questions[0], mode)
    ratios, sizes, spent = [], list[int](), [0.0, 0.0]
    for number in range(rounds):
        sums = [0.0, 0.0]
        for place, question in enumerate(questions):
            for turn in range(2):
                taped = (turn + place + number) % 2 == 1
                opening = OPENINGS[(2 * number + turn) % len(OPENINGS)]
                cpu, run_id = await ask(services if taped else off, opening + question, mode)
                sums[taped] += cpu
                if taped:
                    sizes.append(len(await services.runs.log.get_tape("default", run_id) or b""))
        ratios.append(sums[1] / sums[0])
        spent = [one + other for one, other in zip(spent, sums, strict=True)]
    turns = rounds * len(questions)
    print(
        f"{name}, {mode}: {spent[0] / turns * 1000:.1f} ms CPU a turn without a tape, "
        f"{spent[1] / turns * 1000:.1f} with: {spent[1] / spent[0]:.3f} ({min(ratios):.3f} to {max(ratios):.3f}); "
        f"tapes of {np.median(sizes) / 1000:.0f} kB, at most {max(sizes) / 1000:.0f}"
    )


async def ask(services: Services, question: str, mode: str) -> tuple[float, str]:
    """Seconds of CPU, and the run."""
    await services.runs.answers.forget("default")
    started = time.process_time()
    async with services.make_run_manager() as turns:
        ended, _ = await collect(await turns.ask(Ask(question, mode=mode)))
    assert ended["type"] == "done", ended
    return time.process_time() - started, ended["run_id"]


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
