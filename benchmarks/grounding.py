"""Measures how much a language model that invents gets past `thorough`: the number of answers with statements that
their sources do not support, before verify and after reconcile.

    python -m benchmarks.grounding [SET]    # a folder in the format of `askgraph eval`; the sample library by default

The model is SmolLM2-135M behind llama.cpp's own server (`make test-llm` installs both). It does every step: routes,
grades, writes, verifies and reconciles. QUESTIONS (environment) asks so many, 50 by default; of a set that says which
questions it answers, half of them are such. Reading is what takes the time, so each answer has few sources.
"""

import asyncio
import os
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from app.answering.requests import Ask, collect
from app.evaluation.corpus import open_shelf
from app.evaluation.sets import Question, read_sets
from app.library import FOLDER
from app.modes import merge_knobs
from app.settings import read_settings
from app.wiring.services import Services, open_services
from benchmarks.latency import make_questions
from domain.documents import Source
from domain.errors import UnsupportedAnswer
from domain.outcome import Framing
from domain.profile import MODES, Profile
from domain.scope import Scope
from domain.text.terms import content_words
from nodes.writing.claims import check_claims
from tests.wire.llama import NAME, serve_llama

QUESTIONS = int(os.environ.get("QUESTIONS", "50"))
OTHERS = 60
"""Documents that are ingested beside those that the questions were written for."""
WAIT = 900
"""Seconds for one call: on a busy machine one takes minutes, and three that are given up would open the circuit, after
which the model is not asked."""
MODE = Profile.model_validate(
    merge_knobs(
        MODES["thorough"].model_dump(),
        {
            "name": "thorough, few sources",
            "rerank": {"keep": 3},
            "grade": {"max_retries": 1},
            "generate": {"answer_tokens": 100},
            # One processor reads for all, so what is asked in vain delays what is not; and no question is cut short.
            "speculate": False,
            "budget": {"seconds": 1800},
        },
    )
)


class Outcome(NamedTuple):
    """The result of one question."""

    kind: str
    wrote: bool
    """True if the model wrote an answer that was checked."""
    claims: tuple[int, int]
    """Number of statements in the draft and in the final answer."""
    unsupported: tuple[int, int]
    """Number of them that the local check finds unsupported."""
    gold: tuple[bool, bool]
    """True if the draft, and the final answer, contain an accepted answer."""
    answered: bool
    """True if the final answer cites something."""
    degraded: tuple[str, ...]
    """Steps in which the model's judgement was unusable."""
    seconds: float


async def measure(given: str | None) -> None:
    """Load the set or the samples, ask, and print."""
    with serve_llama() as base_url, tempfile.TemporaryDirectory(prefix="askgraph-bench-") as home:
        settings = read_settings(
            home=Path(home), load_samples=False, tapes=False, OPENAI_BASE_URL=base_url, model_timeout=WAIT,
            model_small=NAME, model_large=NAME, model_judge=NAME,
        )  # fmt: skip
        async with open_services(settings) as opened:
            services = replace(opened, modes={MODE.name: MODE})
            if given is None:
                await services.library.ingestion.add_paths("default", [FOLDER])
                made = [Question(id=text, question=text) for text in await make_questions(services)]
                await follow_all(services, "default", made[:QUESTIONS])
                return
            [wanted] = read_sets([given], Path(), workspace=None, limit=None)
            chosen = [
                each
                for answerable in (True, False)
                for each in [q for q in wanted.questions if q.answerable is answerable][: QUESTIONS // 2]
            ]
            needed = {relevant.doc for each in chosen for relevant in each.relevant}
            others = [each for each in wanted.corpus if each.id not in needed][:OTHERS]
            corpus = *(each for each in wanted.corpus if each.id in needed), *others
            async with open_shelf(
                services, replace(wanted, corpus=corpus), keep=False, progress=lambda *_: None
            ) as shelf:
                await follow_all(services, shelf.workspace_id, chosen)


async def follow_all(services: Services, workspace_id: str, questions: list[Question]) -> None:
    """Ask them one after the other, and print what there is, also when it is interrupted."""
    outcomes: list[Outcome] = []
    try:
        for asked in questions:
            outcomes.append(await follow(services, workspace_id, asked))
    finally:
        print_outcomes(outcomes)


async def follow(services: Services, workspace_id: str, asked: Question) -> Outcome:
    """Ask one question, and check what was written first and what stands in the end in the same way."""
    started = perf_counter()
    async with services.make_run_manager() as turns:
        done, events = await collect(await turns.ask(Ask(asked.question, scope=Scope(workspace_id), mode=MODE.name)))
    assert done["type"] == "done", done
    state = (await services.runs.graph.aget_state({"configurable": {"thread_id": done["thread_id"]}})).values
    draft = "".join(event["token"] for event in events if event["type"] == "content")
    withdrawn = any(each["code"] == UnsupportedAnswer().code for each in done["degraded"])
    wrote = withdrawn or (done["answered_by"] == NAME and any(event["type"] == "verification" for event in events))
    counts = [
        await count_claims(services, text, done["framing"], state["sources"]) if states else (0, 0)
        for text, states in ((draft, wrote), (done["answer"], wrote and not done["abstained"]))
    ]
    outcome = Outcome(
        kind={True: "answerable", False: "unanswerable", None: "not known"}[asked.answerable],
        wrote=wrote,
        claims=(counts[0][0], counts[1][0]),
        unsupported=(counts[0][1], counts[1][1]),
        gold=(holds(draft, asked.answers), holds(done["answer"], asked.answers)),
        answered=bool(done["citations"]),
        degraded=tuple(each["node"] for each in done["degraded"]),
        seconds=perf_counter() - started,
    )
    shown = [asked.question, outcome, f"draft: {draft!r}", f"final: {done['answer']!r}", done["verification"]["claims"]]
    print(*shown, sep="\n  ", file=sys.stderr, flush=True)
    return outcome


async def count_claims(services: Services, answer: str, framing: Framing, sources: list[Source]) -> tuple[int, int]:
    """Count the claims, and those that the local check does not find in the sources."""
    claims, _ = await check_claims(answer, framing, sources, services.models.judges.verifier)
    return len(claims), sum(claim["verdict"] == "unsupported" for claim in claims)


def holds(answer: str, accepted: tuple[str, ...]) -> bool:
    """Return True if all content words of an accepted answer are in this one."""
    words = set(content_words(answer))
    return any(set(content_words(each)) <= words for each in accepted)


def print_outcomes(outcomes: list[Outcome]) -> None:
    """A row for each kind of question."""
    print(f"{MODE.name}, all by {NAME}: {len(outcomes)} questions, {sum(o.seconds for o in outcomes):.0f} s")
    heads = ("questions", "asked", "written", "bad before", "bad after", "claims before", "after", "gold before")
    print(" | ".join((*heads, "after", "not answered")))
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        of_kind = [outcome for outcome in outcomes if outcome.kind == kind]
        written = [outcome for outcome in of_kind if outcome.wrote]
        row: list[object] = [kind, len(of_kind), len(written)]
        row += [sum(o.unsupported[when] > 0 for o in written) for when in (0, 1)]
        row += [
            f"{sum(o.unsupported[when] for o in written)} of {sum(o.claims[when] for o in written)}" for when in (0, 1)
        ]
        row += [sum(o.gold[when] for o in of_kind) for when in (0, 1)]
        row.append(sum(not o.answered for o in of_kind))
        print(" | ".join(map(str, row)))
    print("judged locally instead:", dict(Counter(node for o in outcomes for node in set(o.degraded))))


if __name__ == "__main__":
    asyncio.run(measure(sys.argv[1] if len(sys.argv) > 1 else None))
