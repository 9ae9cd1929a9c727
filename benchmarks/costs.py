"""Measures the price of a question with language models, by the price table that ships.

    python -m benchmarks.costs [SET]    # a folder in the format of `askgraph eval`; the sample library by default

The graph is the real one and the model is the loopback one of `tests/wire`, which quotes its sources; tokens are
counted as OpenAI counts them (o200k), schemas included. Real models also write thoughts: the last figure adds
`THOUGHT` tokens to every call. Prints US dollars.
"""

import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from pydantic import SecretStr

from app.adapters.prices import read_prices
from app.answering.requests import Ask, collect
from app.evaluation.corpus import open_shelf
from app.evaluation.sets import read_sets
from app.library import FOLDER
from app.modes import merge_knobs
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.latency import make_questions
from domain.profile import MODES, Profile
from domain.scope import Scope
from domain.state import Usage
from tests.wire.openai import serve_openai

QUESTIONS = 50
OTHERS = 60
"""Documents that are ingested beside those that answer: a question is shown five sources of however many."""
THOUGHT = 500
"""Tokens. Several times what the models that ship as defaults think at the least effort, which is what they are asked
for."""


def make_profiles() -> dict[str, Profile]:
    """The modes that ship, and `standard` with the small model writing too."""
    small = merge_knobs(MODES["standard"].model_dump(), {"generate": {"model": "small"}})
    return MODES | {"standard, small writes": Profile.model_validate(small | {"name": "standard, small writes"})}


async def measure(given: str | None) -> None:
    """Load the set or the samples, ask in each mode, and print."""
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
                if given is None:
                    await services.library.ingestion.add_paths("default", [FOLDER])
                    await ask_all(services, "default", await make_questions(services))
                else:
                    [wanted] = read_sets([given], Path(), workspace=None, limit=QUESTIONS)
                    needed = {relevant.doc for each in wanted.questions for relevant in each.relevant}
                    others = [each for each in wanted.corpus if each.id not in needed][:OTHERS]
                    corpus = *(each for each in wanted.corpus if each.id in needed), *others
                    wanted = replace(wanted, corpus=corpus)
                    async with open_shelf(services, wanted, keep=False, progress=lambda *_: None) as shelf:
                        await ask_all(services, shelf.workspace_id, [each.question for each in wanted.questions])


async def ask_all(services: Services, workspace_id: str, questions: Sequence[str]) -> None:
    """Ask all questions in each mode, and print what they cost."""
    for mode in services.modes:
        asked = []
        async with services.make_run_manager() as turns:
            for question in questions[:QUESTIONS]:
                done, _ = await collect(await turns.ask(Ask(question, scope=Scope(workspace_id), mode=mode)))
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
    asyncio.run(measure(sys.argv[1] if len(sys.argv) > 1 else None))
