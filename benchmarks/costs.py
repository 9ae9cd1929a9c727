"""Measures the price of a question with language models, by the price table that ships.

    python -m benchmarks.costs    # the sample library

The graph is the real one and the model is the loopback one of `tests/wire`, which quotes its sources; tokens are
counted as OpenAI counts them (o200k), schemas included. Real models also write thoughts: the last figure adds
`THOUGHT` tokens to every call. Prints US dollars.
"""

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import SecretStr

from app.adapters.prices import read_prices
from app.answering.requests import Ask, collect
from app.modes import merge_knobs
from app.samples import FOLDER
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.shared import make_questions
from domain.profile import MODES, Profile
from domain.state import Usage
from tests.wire.openai import serve_openai

THOUGHT = 500
"""Tokens. Several times what the models that ship as defaults think at the least effort, which is what they are asked
for."""


def make_profiles() -> dict[str, Profile]:
    """The modes that ship, and `standard` with the small model writing too."""
    small = merge_knobs(MODES["standard"].model_dump(), {"generate": {"model": "small"}})
    return MODES | {"standard, small writes": Profile.model_validate(small | {"name": "standard, small writes"})}


async def measure() -> None:
    """Load the samples, ask in each mode, and print."""
    async with serve_openai() as server:
        with tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home:
            settings = read_settings(home=Path(home), load_samples=False, tapes=False)
            settings = settings.model_copy(
                update={"openai_api_key": SecretStr("none"), "openai_base_url": server.base_url}
            )
            async with open_services(settings) as opened:
                services = replace(opened, modes=make_profiles())
                tiers = f"{settings.model_small} judges, {settings.model_large} writes, {settings.model_judge} verifies"
                print(tiers)
                await services.library.ingestion.add_paths("default", [FOLDER])
                await ask_all(services, await make_questions(services))


async def ask_all(services: Services, questions: Sequence[str]) -> None:
    """Ask all questions in each mode, and print what they cost."""
    for mode in services.modes:
        asked = []
        async with services.make_run_manager() as turns:
            for question in questions:
                done, _ = await collect(await turns.ask(Ask(question, mode=mode)))
                assert done["type"] == "done", done
                if not done["cached"]:
                    asked.append(done["usage"])
        print_costs(mode, asked)


def print_costs(mode: str, asked: Sequence[Sequence[Usage]]) -> None:
    """A row for each node, as means over all questions, and one for all nodes."""
    print(f"\n{mode}: {len(asked)} questions")
    print(f"  {'node':<12} {'calls':>6} {'tokens in':>10} {'out':>6} {'mean $':>9} {'max $':>9}")
    by_node: dict[str, list[list[Usage]]] = defaultdict(list)
    for usage in asked:
        for node in {used["node"] for used in usage}:
            by_node[node].append([used for used in usage if used["node"] == node])
    for node, uses in [*by_node.items(), ("all", [list(usage) for usage in asked])]:
        costs = [sum_cost(each) for each in uses]
        calls, read, written = (
            sum(used[key] for each in uses for used in each) / len(asked)
            for key in ("calls", "input_tokens", "output_tokens")
        )
        mean = sum(costs) / len(asked)
        print(f"  {node:<12} {calls:6.2f} {read:10.0f} {written:6.0f} {mean:9.5f} {max(costs):9.5f}")
    totals = [sum_cost(usage) for usage in asked]
    thinking = [sum_cost(usage, THOUGHT) for usage in asked]
    print(f"  median {np.median(totals):.5f}, 95th percentile {np.percentile(totals, 95):.5f}")
    print(f"  with {THOUGHT} thought tokens a call: mean {np.mean(thinking):.5f}, max {max(thinking):.5f}")


def sum_cost(usage: Sequence[Usage], thought: int = 0) -> float:
    """US dollars, with as many more output tokens a call."""
    prices = read_prices()
    total = 0.0
    for used in usage:
        assert used["cost"] is not None, used
        total += used["cost"] + (prices.price(used["model"], 0, 0, thought * used["calls"]) or 0.0)
    return total


if __name__ == "__main__":
    asyncio.run(measure())
