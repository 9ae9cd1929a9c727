"""Right answers in the shapes that models write them in stay whole: over the wire, with a judge that reads honestly, and
with one that misses headings, offers and quotations."""

import json
import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio

from app.adapters.chat.openai import OpenAIChat
from app.adapters.embeddings.onnx import OnnxEmbedder
from domain.library.citations import cite
from domain.text.markers import find_markers, strip_markers
from nodes.context import Models
from nodes.reconcile.step import reconcile
from nodes.verify.step import verify
from tests.nodes.nodes_alone import make_runtime, make_state
from tests.sources import make_source
from tests.wire.openai import OpenAIServer, serve_openai

CASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("right_answers.toml").read_text())["case"]
SHAPES = list(dict.fromkeys(case["shape"] for case in CASES))


def read_claims(prompt: str) -> list[str]:
    return re.findall(r"^\d+\. (.+)$", prompt.rpartition("Claims:\n")[2], re.MULTILINE)


def judge(case: dict[str, Any], prompt: str, *, misses: bool) -> dict[str, Any]:
    """The reply of a judge that has read the prompt. One that misses finds nothing that claims nothing."""
    judgements = []
    for number, claim in enumerate(read_claims(prompt), 1):
        found = next((found for words, found in case.get("judged", {}).items() if words in claim), ["statement", 1])
        kind, *sources = found
        verdict = "not_found" if misses and kind == "none" else "supported"
        judgements.append({"claim": number, "kind": kind, "verdict": verdict, "sources": sources, "reason": ""})
    return {"judgements": judgements, "answers_question": True}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[tuple[OpenAIServer, OpenAIChat]]:
    async with serve_openai() as server, openai.DefaultAsyncHttpxClient() as http:
        yield server, OpenAIChat("gpt-4.1", api_key="key", base_url=server.base_url, timeout=10, http=http)


async def check(
    case: dict[str, Any], embedder: OnnxEmbedder, served: tuple[OpenAIServer, OpenAIChat], *, misses: bool
) -> tuple[str, list[str]]:
    """The answer after verify and, where that leads there, reconcile; and the claims that the judge was asked about."""
    server, model = served
    asked: list[str] = []

    async def answer_honestly(body: dict[str, Any]) -> None:
        prompt = body["messages"][-1]["content"]
        asked.extend(read_claims(prompt))
        server.behaviour.replies = [json.dumps(judge(case, prompt, misses=misses))]

    server.hold = answer_honestly
    sources = [make_source(text, number=number) for number, text in enumerate(case["sources"], 1)]
    answer = case["answer"].strip()
    cited = find_markers(answer, [source["chunk_id"] for source in sources])
    numbers = dict.fromkeys(number for marker in cited for number in marker.numbers)
    state = make_state(
        case["question"],
        answer=answer,
        sources=sources,
        citations=[cite(sources[number - 1]) for number in numbers],
        outcome="answered",
        answered_by="gpt-4.1-mini",
    )
    runtime = make_runtime(embedder, [], Models(judge=model))
    state |= await verify(state, runtime)
    if state["verification"]["status"] == "unsupported":
        state |= await reconcile(state, runtime)
    assert runtime.context.ledger.warnings == []
    assert state["outcome"] == "answered"
    return state["answer"], asked


@pytest.mark.parametrize("misses", [False, True], ids=["honest", "misses"])
@pytest.mark.parametrize("shape", SHAPES)
async def test_it_stays_whole(
    shape: str, misses: bool, embedder: OnnxEmbedder, served: tuple[OpenAIServer, OpenAIChat]
) -> None:
    for case in (case for case in CASES if case["shape"] == shape):
        answer, asked = await check(case, embedder, served, misses=misses)
        assert answer == case["answer"].strip()
        for words in case.get("judged", {}):
            assert any(words in claim for claim in asked), f"the judge was not asked about {words!r}"


@pytest.mark.parametrize("shape", SHAPES)
async def test_without_its_markers_it_gets_them_and_stays_whole(
    shape: str, embedder: OnnxEmbedder, served: tuple[OpenAIServer, OpenAIChat]
) -> None:
    for case in (case for case in CASES if case["shape"] == shape):
        bare = strip_markers(case["answer"]).strip()
        answer, _ = await check({**case, "answer": bare}, embedder, served, misses=False)
        assert strip_markers(answer).split() == bare.split()
        silent = any(found[0] == "absence" for found in case.get("judged", {}).values())
        assert silent or find_markers(answer, [f"c{number + 1}" for number in range(len(case["sources"]))])
