"""The same graph with a language model: the real SDK, over the real protocol, to a loopback server."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from app.settings import Settings
from app.wiring.services import Services
from domain.outcome import Outcome
from domain.state import CUT
from graphs.answer import build_answer_graph
from tests.asking import (
    ABSTENTION,
    CAVEAT,
    SHORT_HANDBOOK,
    ask_for_events,
    read_state,
    routing,
    serve_models,
    vary,
    with_graph,
)
from tests.wire.openai import OpenAIServer, event_of

TWO = "How long is the warranty of the Falke, and who handles its claims?"
CAUTIOUS = vary("fast", grade={"formula": "weighted", "sufficient": 1, "caveat": 0})
"""No source is good enough for it."""


@asynccontextmanager
async def serve(
    settings: Settings, *, model_timeout: float = 5, **behaviour: Any
) -> AsyncIterator[tuple[Services, OpenAIServer]]:
    changes = {"model_timeout": model_timeout}
    async with serve_models(settings, {"handbook.md": SHORT_HANDBOOK}, changes=changes, **behaviour) as (
        services,
        server,
    ):
        yield services, server


async def test_the_model_writes_the_answer_and_what_it_used_is_counted(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        done, events = await ask_for_events(services)
    assert "36 months" in done["answer"]
    assert [c["marker"] for c in done["citations"]] == [1]
    assert {(u["node"], u["model"]) for u in done["usage"]} == {("generate", "gpt-4.1-mini")}
    assert all(u["input_tokens"] > 0 for u in done["usage"])
    assert done["cost"] is not None
    assert done["cost"] > 0
    assert len(server.requests) == 1
    assert len([e for e in events if e["type"] == "content"]) > 1
    assert done["warnings"] == []


async def test_an_answer_that_no_source_says_is_quoted_instead_and_not_cached(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = ["The warranty is certainly very long."]
        done, events = await ask_for_events(services)
        assert "36 months" in done["answer"]
        assert done["citations"]
        assert (done["outcome"], done["answered_by"]) == ("answered", "local")
        [correction] = [event for event in events if event["type"] == "correction"]
        assert correction["answer"] == done["answer"]
        assert [each["code"] for each in done["degraded"]] == ["unsupported_answer"]
        again, _ = await ask_for_events(services)
    assert not again["cached"]
    assert "36 months" in again["answer"]


async def test_an_answer_without_markers_is_cited_and_what_no_source_says_is_named(settings: Settings) -> None:
    written = "Its warranty is 36 months. The moon is made of cheese. So that is all which the sources name of cheese."
    async with serve(settings) as (services, server):
        server.behaviour.replies = [written]
        done, events = await ask_for_events(services)
    assert done["answer"].startswith("Its warranty is 36 months. [1] The moon is made of cheese. So")
    assert done["outcome_reasons"] == [{"code": "uncited", "statements": ["The moon is made of cheese."]}]
    closing = done["answer"][-done["framing"]["closing"] :].strip()
    assert closing == "No source was found for “The moon is made of cheese.”."
    assert [citation["marker"] for citation in done["citations"]] == [1]
    assert "".join(event["token"] for event in events if event["type"] == "content") == done["answer"]


async def test_a_figure_that_no_source_states_is_named_and_not_sure(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        for written, unstated in (
            ("Its warranty is 48 months [1].", ["Its warranty is 48 months."]),
            ("Its warranty is 36 months ÷ 12 = 3 years [1].", None),
        ):
            server.behaviour.replies = [written]
            done, _ = await ask_for_events(services, f"How long is the warranty of the Falke{'?' * (not unstated)}")
            named = [{"code": "uncited", "statements": unstated}] if unstated else []
            assert (done["outcome_reasons"], done["confidence"] <= 0.6) == (named, bool(unstated))


@pytest.mark.parametrize(
    ("question", "written", "overruled"),
    [
        ("How many months is the warranty of the Falke?", ABSTENTION, True),
        ("How many months is the warranty of the Falke?", "The document does not answer this.", True),
        ("Who gets claims about the Falke, and when?", ABSTENTION, True),
        ("Who repairs the Falke in May?", ABSTENTION, False),
        ("Who repairs the Falke in May?", "The document does not answer this.", False),
    ],
)
async def test_an_abstention_against_the_local_judgement_is_quoted_instead(
    settings: Settings, question: str, written: str, overruled: bool
) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = [written]
        done, events = await ask_for_events(services, question)
    assert done["abstained"] != overruled
    assert ("36 months" in done["answer"]) == overruled
    assert any("found no answer" in warning for warning in done["warnings"]) == overruled
    # Words of its own have been seen by then.
    corrected = any(event["type"] == "correction" for event in events)
    assert corrected == (overruled and written != ABSTENTION)


async def test_the_model_makes_follow_ups_stand_alone(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        first, _ = await ask_for_events(services)
        await ask_for_events(services, "And by whom are its claims handled?", thread_id=first["thread_id"])
    asked = server.requests[-1]["messages"]
    assert [message["role"] for message in asked] == ["system", "user", "assistant", "user"]
    assert "Falke" in asked[-1]["content"].rpartition("Question:")[2]


async def test_yes_asks_for_what_the_model_offers(settings: Settings) -> None:
    offer = "Would you like to know who handles the claims?"
    async with serve(settings, replies=[f"The warranty is 36 months [1]. {offer}"]) as (services, _):
        local = replace(services, models=replace(services.models, chat=replace(services.models.chat, small=None)))
        first, _ = await ask_for_events(local)
        done, _ = await ask_for_events(local, "Yes, please.", thread_id=first["thread_id"])
    assert done["standalone_question"] == offer
    assert "Petra Lindqvist" in done["answer"]


@pytest.mark.parametrize("kind", ["conversational", "out_of_scope"])
async def test_a_question_for_the_documents_is_searched_whatever_the_model_takes_it_for(
    settings: Settings, kind: str
) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = [json.dumps({"route": kind, "standalone_question": ""})]
        done, _ = await ask_for_events(services, "Why is the warranty of the Falke 36 months?")
    assert done["route"] == "needs_retrieval"
    assert "36 months" in done["answer"]
    assert done["citations"]


def limit_model(services: Services, seconds: float) -> Services:
    """The same services, with a graph that waits no longer than this for a model."""
    return with_graph(services, build_answer_graph(services.runs.graph.checkpointer, model_timeout=seconds))  # type: ignore[arg-type]


async def test_a_model_that_hangs_is_stood_in_for_in_every_step(settings: Settings) -> None:
    async with serve(settings, model_timeout=1, fault="stall_before") as (services, _):
        done, _ = await ask_for_events(limit_model(services, 1), TWO, mode="thorough")
    assert "36 months" in done["answer"]
    assert done["verification"]["status"] == "supported"
    assert {each["node"] for each in done["degraded"]} == {"route", "generate"}
    [note] = done["warnings"]
    assert note.startswith("The language model took too long.")
    assert all(each["message"].partition(": ")[0] in note for each in done["degraded"])


async def test_a_step_waits_no_longer_than_the_graph_allows_whatever_the_model_does(settings: Settings) -> None:
    async with serve(settings, model_timeout=60, fault="stall_before") as (services, server):
        done, _ = await ask_for_events(limit_model(services, 0.5), "play some jazz music")
    assert done["route"] == "out_of_scope"
    assert len(server.requests) == 1
    assert [each["node"] for each in done["degraded"]] == ["route"]
    assert len(done["warnings"]) == 1


@pytest.mark.parametrize("seconds", [1.0, 60.0, 900.0])
def test_every_step_has_time_left_after_its_model(seconds: float) -> None:
    steps = build_answer_graph(model_timeout=seconds).nodes
    for name in ("route", "converse", "rerank", "generate", "verify", "reconcile"):
        limits = steps[name].timeout
        assert limits is not None
        for limit in (limits.run_timeout, limits.idle_timeout):
            assert limit is None or float(limit) > seconds  # type: ignore[arg-type]


async def test_a_rewrite_may_cite_what_was_not_cited_before(settings: Settings) -> None:
    question = "What does the Falke cost, and how long is its warranty?"
    async with serve(settings) as (services, server):
        await services.library.ingestion.add(
            "default", "price.md", b"# Prices\n\nThe Falke costs 240 euros since May.\n"
        )
        _, events = await ask_for_events(services, question, mode="fast")
        [sources] = [event["citations"] for event in events if event["type"] == "sources"]
        numbers = {citation["title"]: citation["marker"] for citation in sources}
        server.behaviour.replies = [
            routing(question),
            f"The Falke costs 999 dollars [{numbers['Handbook']}].",
            json.dumps({"judgements": [{"claim": 1, "verdict": "not_found", "reason": "It does not say so."}]}),
            json.dumps({"rewrites": [f"The Falke costs 240 euros since May [{numbers['Prices']}]."]}),
        ]
        # As asked before, without the step that may put the sources in another order.
        thorough = services.modes["fast"].model_copy(update={"name": "own", "verify": True})
        done, events = await ask_for_events(replace(services, modes={"own": thorough}), question, mode="own")
    assert done["answer"] == f"The Falke costs 240 euros since May [{numbers['Prices']}]."
    assert [citation["title"] for citation in done["citations"]] == ["Prices"]
    [correction] = [event for event in events if event["type"] == "correction"]
    assert correction["citations"] == done["citations"]
    assert done["confidence"] > 0


@pytest.mark.parametrize(
    ("written", "shown", "outcome", "codes"),
    [
        (f"{ABSTENTION} They differ.", f"{ABSTENTION} They differ.", "abstained", ["model_abstained"]),
        (
            f"{ABSTENTION} They name Petra Lindqvist [1].",
            f"{ABSTENTION} They name Petra Lindqvist [1].",
            "abstained",
            ["model_abstained"],
        ),
        ("The documents do", "The documents do", "abstained", ["model_abstained"]),
        (
            "The documents name 36 months [1].",
            f"{CAVEAT}The documents name 36 months [1].",
            "answered_with_caveat",
            ["low_confidence"],
        ),
        ("36 months [1].", f"{CAVEAT}36 months [1].", "answered_with_caveat", ["low_confidence"]),
    ],
)
async def test_the_caveat_opens_an_answer_but_no_abstention(
    settings: Settings, written: str, shown: str, outcome: Outcome, codes: list[str]
) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = [written]
        done, events = await ask_for_events(services, profile=CAUTIOUS)
    assert done["answer"] == shown
    assert "".join(event["token"] for event in events if event["type"] == "content") == shown
    assert (done["outcome"], [reason["code"] for reason in done["outcome_reasons"]]) == (outcome, codes)
    assert done["abstained"] == (outcome == "abstained")
    frame = shown[: done["framing"]["opening"]]
    assert frame == next((opening for opening in (ABSTENTION, CAVEAT) if shown.startswith(opening)), frame)


@pytest.mark.parametrize("written", [ABSTENTION, ABSTENTION.removesuffix(".")])
async def test_an_abstention_that_names_nothing_near_is_quoted_instead_where_sources_probably_answer(
    settings: Settings, written: str
) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = [written]
        done, _ = await ask_for_events(services, profile=CAUTIOUS)
    assert done["outcome"] == "answered_with_caveat"
    assert "36 months" in done["answer"]
    assert done["confidence"] < 0.8


@pytest.mark.parametrize(
    ("written", "finish"),
    [
        ("\n \n", "stop"), ("\n[1]\n", "stop"), ("Yes.", "stop"), ("How long is the warranty?", "stop"),
        ('{"thoughts": {}, "answer": "It has 36 months [1]."}', "stop"),
        ("The warranty", "length"), ("Die Garantie ist für Kunden in Europa wichtig.", "stop"),
        ("Parcels up to 20 kg go by van [2]. They leave on Fridays [1, 3].", "stop"),
        ('<source number="1" title="Falke">\nThe Falke has a warranty of 36 months [1].\n</source>', "stop"),
        ("You answer a question from numbered sources, and from nothing else. It has 36 months [1].", "stop"),
    ],
)  # fmt: skip
async def test_an_answer_that_says_nothing_of_the_sources_is_none(
    settings: Settings, written: str, finish: str
) -> None:
    async def send(body: Any) -> AsyncIterator[bytes]:
        yield event_of({"content": written})
        yield event_of({}, finish)

    async with serve(settings) as (services, server):
        server.behaviour.send = send
        done, _ = await ask_for_events(services)
    assert (done["outcome"], done["answered_by"]) == ("answered", "local")
    assert "36 months" in done["answer"]
    assert done["warnings"]


async def test_an_answer_in_words_of_its_own_where_no_source_answers_is_none(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = ["Jonas Berger of Uppsala mends the Falke [1]."]
        done, _ = await ask_for_events(services, "Who repairs the Falke in May?")
    assert "Berger" not in done["answer"]
    assert done["abstained"]
    assert [each["code"] for each in done["degraded"]] == ["unsupported_answer"]


async def test_an_answer_that_repeats_the_words_carried_over_is_none(settings: Settings) -> None:
    async def repeat(body: Any) -> AsyncIterator[bytes]:
        yield event_of({"content": f"{body['messages'][-1]['content'].rpartition('Question: ')[2]} 36 [1]."})
        yield event_of({}, "stop")

    async with serve(settings) as (services, server):
        first, _ = await ask_for_events(services)
        server.behaviour.send = repeat
        done, _ = await ask_for_events(services, "And by whom are its claims handled?", thread_id=first["thread_id"])
    assert done["degraded"][-1]["code"] == "unsupported_answer"
    assert "36 [1]" not in done["answer"]


async def test_an_answer_that_breaks_off_within_a_sentence_is_cut(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = ["The warranty lasts 36 months [1]. It"]
        done, _ = await ask_for_events(services)
    assert [each["code"] for each in done["degraded"]] == [CUT]
    assert 'ended it with "… months [1]. It"' in done["warnings"][0]


async def test_an_answer_whose_stream_just_stops_within_a_sentence_is_cut(settings: Settings) -> None:
    async def stop(text: str) -> AsyncIterator[bytes]:
        yield event_of({"content": text})

    async with serve(settings) as (services, server):
        for text, codes in (
            ("The warranty of the Falke is", [CUT]),
            ("The warranty of the Falke is 36 months [1].", []),
        ):
            server.behaviour.send = lambda body, text=text: stop(text)
            done, _ = await ask_for_events(services)
            assert [each["code"] for each in done["degraded"]] == codes


async def test_a_model_that_leaves_citing_to_us_lends_its_answer_no_confidence(settings: Settings) -> None:
    sure: list[float] = []
    async with serve(settings) as (services, server):
        for written in ("The Falke has a warranty of 36 months.", "The Falke has a warranty of 36 months [1]."):
            server.behaviour.replies = [written]
            mode = services.modes["standard"].model_copy(update={"name": f"mode-{len(sure)}"})  # no cached answer
            done, _ = await ask_for_events(services, profile=mode)
            assert [citation["marker"] for citation in done["citations"]] == [1]
            sure.append(done["confidence"])
    assert sure[1] == pytest.approx(0.8 + 0.2 * sure[0], abs=0.001)


async def test_what_no_source_says_of_what_none_answers_is_replaced_by_an_abstention(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = ["Nothing about cats is mentioned in the sources."]
        done, events = await ask_for_events(services, "Which cats does the owner of the moon keep at home?")
        state = await read_state(services, done["thread_id"])
    assert done["abstained"]
    assert (done["citations"], state["failure"], state["confidence"]) == ([], None, 0.0)
    assert [event["answer"] for event in events if event["type"] == "correction"] == [done["answer"]]


async def test_an_abstention_leaves_no_confidence_in_the_state(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        server.behaviour.replies = [f"{ABSTENTION} They name the Falke [1]."]
        done, _ = await ask_for_events(services, mode="fast")
        state = await read_state(services, done["thread_id"])
    assert state["outcome"] == "abstained"
    assert (state["confidence"], state["level"]) == (0.0, "none")


async def test_the_team_adds_instructions_a_tone_and_a_length(settings: Settings) -> None:
    async with serve(settings) as (services, server):
        knobs = services.modes["standard"].generate.model_copy(
            update={"system_instructions": "Call {us} Lindenhof.", "tone": "friendly", "length": "detailed"}
        )
        own = services.modes["standard"].model_copy(update={"generate": knobs})
        await ask_for_events(replace(services, modes={"standard": own}))
        [prompt] = [body["messages"][0]["content"] for body in server.requests if body.get("stream")]
    assert "Be detailed and friendly;" in prompt
    assert prompt.endswith("follow the rule.\n<instructions>\nCall {us} Lindenhof.\n</instructions>")
