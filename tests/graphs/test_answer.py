"""The real graph on real storage, without a model key."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.wiring.services import Services
from domain.documents import Source
from domain.errors import DatabaseUnavailable, UnknownDocument, UnknownMode
from domain.library.where import Where
from domain.ports.judgement import Grade
from domain.ports.library import Library
from domain.profile import GradeKnobs, Profile, RetrievalKnobs
from domain.runs import FIRST_TOKEN
from domain.scope import Scope
from graphs.answer import build_answer_graph
from tests.asking import ask_for_events, place_of, read_state, steps_of, with_search


async def test_a_question_is_answered_with_the_sentence_that_answers_and_its_place(
    services: Services, library: dict[str, str]
) -> None:
    done, events = await ask_for_events(services, "How long is the warranty of the Falke?")
    assert "36 months" in done["answer"]
    assert done["route"] == "needs_retrieval"
    assert done["confidence"] >= 0.4
    [citation, *_] = done["citations"]
    assert citation["document_id"] == library["Station handbook"]
    assert citation["heading_path"][-1] == "Warranty"
    text = await services.library.documents.get_text("default", citation["document_id"])
    assert text is not None
    assert "36 months" in citation["text"]
    assert text[citation["start"] : citation["end"]] == citation["text"]
    assert f"[{citation['marker']}]" in done["answer"]
    assert steps_of(events) == ["route", "retrieve", "rerank", "grade", "generate"]


async def test_the_stream_shows_sources_before_the_answer_and_ends_with_done(
    services: Services, library: dict[str, str]
) -> None:
    done, events = await ask_for_events(services, "How long does the battery of the Amsel last?")
    kinds = [event["type"] for event in events]
    assert kinds.index("sources") < kinds.index("content") < kinds.index("citation") < kinds.index("done")
    assert kinds.count("done") == 1
    assert kinds[-1] == "done"
    assert "".join(event["token"] for event in events if event["type"] == "content") == done["answer"]


async def test_what_is_not_for_the_documents_never_touches_the_index(
    services: Services, library: dict[str, str]
) -> None:
    cases: list[tuple[str, str, str]] = [
        ("Hello!", "conversational", "converse"),
        ("Thank you very much", "conversational", "converse"),
        ("What can you do?", "conversational", "converse"),
        ("play some jazz music", "out_of_scope", "decline"),
    ]
    for question, route, step in cases:
        done, events = await ask_for_events(services, question)
        assert (done["route"], steps_of(events)) == (route, ["route", step])
        assert (done["citations"], done["confidence"]) == ([], 0.0)
        assert done["answer"]


async def test_what_a_passage_has_the_words_of_is_searched_for(services: Services, library: dict[str, str]) -> None:
    question = "whats planned for family day?"
    done, _ = await ask_for_events(services, question)
    assert done["route"] == "out_of_scope"
    await services.library.ingestion.add(
        "default", "mail.txt", b"Family Day\n\nThere will be a petting zoo on that day."
    )
    done, _ = await ask_for_events(services, question)
    assert done["route"] == "needs_retrieval"
    assert "petting zoo" in done["answer"]
    # A single word tells nothing within a text, and the subject in a heading.
    for text, route in (
        ("Guests like pets.", "conversational"),
        ("## Pets\n\nNo animals are allowed.", "needs_retrieval"),
    ):
        await services.library.ingestion.add("default", "lease.md", f"# Lease\n\n{text}".encode())
        done, _ = await ask_for_events(services, "What about pets?")
        assert done["route"] == route
    assert "No animals" in done["answer"]
    # Nor is it declined as something of this very moment.
    done, _ = await ask_for_events(services, "When is the pilot due?")
    assert done["route"] == "out_of_scope"
    await services.library.ingestion.add("default", "plan.md", b"The pilot is due on 1 August 2025.")
    done, _ = await ask_for_events(services, "When is the pilot due?")
    assert "1 August" in done["answer"]


async def test_what_the_documents_do_not_hold_is_said_after_bounded_retries(
    services: Services, library: dict[str, str]
) -> None:
    done, events = await ask_for_events(services, "Who won the football world cup of 1954?")
    steps = steps_of(events)
    assert done["abstained"]
    assert (done["citations"], done["confidence"]) == ([], 0.0)
    assert steps[-1] == "abstain"
    assert steps.count("retrieve") <= 3
    assert "content" in {event["type"] for event in events}
    assert "sources" not in {event["type"] for event in events}
    # What has none of its words is named as no help.
    assert done["answer"].endswith("Nothing I found comes close.")
    german, _ = await ask_for_events(services, "Wer hat die Weltmeisterschaft von 1954 gewonnen?")
    assert german["answer"].endswith("sind in einer anderen Sprache. Fragen Sie in ihrer, dann finde ich mehr.")
    near, _ = await ask_for_events(services, "Who is the composer of the barometer sonata of the Falke?")
    assert (near["abstained"], near["outcome"]) == (True, "showed_passages")
    # The place, with a marker that opens it, and the words that decide.
    assert "1. Station handbook › Calibration [1]" in near["answer"]
    assert "**barometer**" in near["answer"]
    assert 1 <= len(near["citations"]) <= 3


async def test_an_empty_workspace_abstains(services: Services) -> None:
    done, _ = await ask_for_events(services, "How long is the warranty of the Falke?")
    assert done["abstained"]
    assert "no documents have been added" in done["answer"]


async def test_a_library_in_which_nothing_comes_close_is_not_called_empty(
    services: Services, library: dict[str, str]
) -> None:
    strict = Profile(
        name="strict",
        retrieval=RetrievalKnobs(fusion="dense", similarity_threshold=0.99),
        grade=GradeKnobs(max_retries=0),
    )
    done, _ = await ask_for_events(
        replace(services, modes={"strict": strict}), "What does the Falke weigh?", mode="strict"
    )
    assert done["abstained"]
    assert done["answer"].endswith("Nothing I found comes close.")


async def test_a_follow_up_is_answered_in_context(services: Services, library: dict[str, str]) -> None:
    first, _ = await ask_for_events(services, "How long is the warranty of the Falke?")
    second, _ = await ask_for_events(services, "And who handles claims?", thread_id=first["thread_id"])
    assert "Petra Lindqvist" in second["answer"]
    assert second["thread_id"] == first["thread_id"]


async def test_a_question_that_could_be_about_anything_is_searched_for_in_context(
    services: Services, library: dict[str, str]
) -> None:
    for subject, months in (("Falke", "14 months"), ("Amsel", "9 months")):
        first, _ = await ask_for_events(services, f"How long is the warranty of the {subject}?")
        question = "How long does the battery last?"
        second, _ = await ask_for_events(services, question, thread_id=first["thread_id"])
        state = await read_state(services, first["thread_id"])
        assert state["standalone_question"] == question
        assert state["query"] == f"{question} (warranty {subject})"
        assert months in state["sources"][0]["text"]
        assert months in second["answer"]


async def test_a_second_question_inherits_nothing_of_the_first(services: Services, library: dict[str, str]) -> None:
    first, _ = await ask_for_events(services, "Who won the football world cup of 1954?", mode="thorough")
    thread = first["thread_id"]
    answered, _ = await ask_for_events(
        services, "How long is the warranty of the Falke?", thread_id=thread, mode="thorough"
    )
    assert answered["verification"]["claims"]
    state = await read_state(services, thread)
    assert state["retries"] == 0
    assert state["queries_tried"] == [state["query"]]
    greeting, _ = await ask_for_events(services, "Thanks!", thread_id=thread)
    state = await read_state(services, thread)
    assert (greeting["verification"]["status"], greeting["verification"]["claims"]) == ("skipped", [])
    assert (state["sources"], state["candidates"], state["citations"], state["confidence"]) == ([], [], [], 0.0)
    assert [step["node"] for step in state["steps"]] == ["route", "converse"]
    assert [turn["question"] for turn in state["turns"]] == [
        "Who won the football world cup of 1954?",
        "How long is the warranty of the Falke?",
        "Thanks!",
    ]


async def test_a_filter_limits_the_search(services: Services, library: dict[str, str]) -> None:
    """Each document alone would answer; the filter says which."""
    ingestion = services.library.ingestion
    for team, months in (("legal", 7), ("hr", 11)):
        text = f"# Notice period\n\nThe notice period of an employee is {months} months.\n"
        await ingestion.add("default", f"{team}.md", text.encode(), metadata={"team": team})
    question = "How long is the notice period of an employee?"
    for team, months in (("legal", 7), ("hr", 11)):
        done, events = await ask_for_events(
            services, question, scope=Scope("default", where=Where.parse(f"team={team}"))
        )
        assert f"{months} months" in done["answer"]
        shown = [c for event in events if event["type"] == "sources" for c in event["citations"]]
        assert {c["source"] for c in shown} == {f"{team}.md"}
        assert {c["source"] for c in done["citations"]} == {f"{team}.md"}
    done, _ = await ask_for_events(services, question, scope=Scope("default", where=Where.parse("team=sales")))
    assert done["citations"] == []
    assert "months" not in done["answer"].replace(question, "")


async def test_another_workspace_sees_nothing(services: Services, library: dict[str, str]) -> None:
    done, _ = await ask_for_events(services, "How long is the warranty of the Falke?", scope=Scope("other"))
    assert done["citations"] == []
    with pytest.raises(UnknownDocument):
        await ask_for_events(services, "How long?", scope=Scope("other", (library["Amsel manual"],)))


async def test_a_thread_of_the_same_name_in_another_workspace_is_another(
    services: Services, library: dict[str, str]
) -> None:
    first, _ = await ask_for_events(services, "How long is the warranty of the Falke?")
    asked = Scope("other")
    second, _ = await ask_for_events(services, "And the battery?", scope=asked, thread_id=first["thread_id"])
    assert (second["thread_id"], second["standalone_question"]) == (first["thread_id"], "And the battery?")
    assert second["citations"] == []


class DroppingLibrary:
    """The real library, over a connection that drops."""

    def __init__(self, library: Library, drops: dict[str, int]) -> None:
        self._library = library
        self.drops = drops
        """How many more times, by method."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._library, name)
        if not self.drops.get(name):
            return method
        self.drops[name] -= 1

        async def drop(*_: Any, **__: Any) -> Any:
            raise DatabaseUnavailable

        return drop


async def test_a_reply_without_a_search_needs_no_library(services: Services, library: dict[str, str]) -> None:
    for question in ("Hello!", "play some jazz music"):
        dropping = DroppingLibrary(services.library.search, {"list_recent": 1})
        done, _ = await ask_for_events(with_search(services, dropping), question)
        assert dropping.drops == {"list_recent": 0}
        assert done["answer"].endswith("You can ask me about your documents.")


async def test_a_step_that_is_tried_again_is_announced_once_and_timed_from_its_beginning(
    services: Services, library: dict[str, str]
) -> None:
    dropping = DroppingLibrary(services.library.search, {"search_lexical": 1})
    done, events = await ask_for_events(with_search(services, dropping), "How long is the warranty of the Falke?")
    assert dropping.drops == {"search_lexical": 0}
    assert steps_of(events) == ["route", "retrieve", "rerank", "grade", "generate"]
    # The pause before the second attempt alone takes 100 ms.
    assert done["timings"]["retrieve"] >= 100


@pytest.mark.parametrize(
    ("method", "warning"),
    [
        ("suggest_words", "as they are spelt"),
        ("score_dense", "not scored by the other"),
        ("score_lexical", "not scored by the other"),
        ("search_titled", "was not looked up"),
        ("score_related", "own words"),
        ("read_around", "as they are cut"),
    ],
)
async def test_what_a_search_can_do_without_costs_a_warning_and_not_the_answer(
    services: Services, library: dict[str, str], method: str, warning: str
) -> None:
    table = b"# Falke\n\n| Warranty of the Falke | How long |\n|---|---|\n| Falke station | 36 months |\n"
    await services.library.ingestion.add("default", "terms.md", table)
    dropping = DroppingLibrary(services.library.search, {method: 2})
    own = with_search(services, dropping)
    done, _ = await ask_for_events(own, "How long is the warranty of the Falke?")
    assert dropping.drops == {method: 1}
    assert "36 months" in done["answer"]
    [said] = done["warnings"]
    assert warning in said


async def test_studio_learns_of_an_unknown_mode(services: Services) -> None:
    graph = build_answer_graph()
    with pytest.raises(UnknownMode, match="standard"):
        await graph.ainvoke({"question": "How long?", "mode": "nonsense"}, context=services.make_context())  # type: ignore[call-overload]


async def test_every_turn_is_logged_greetings_too(services: Services, library: dict[str, str]) -> None:
    done, _ = await ask_for_events(services, "Hello!")
    record = await services.runs.log.get("default", done["run_id"])
    assert record is not None
    assert (record.route, record.question, record.thread_id) == ("conversational", "Hello!", done["thread_id"])
    answered, _ = await ask_for_events(services, "How long is the warranty of the Falke?")
    record = await services.runs.log.get("default", answered["run_id"])
    assert record is not None
    assert record.citations == answered["citations"]
    assert record.candidates > 0
    assert set(record.timings) == {"route", "retrieve", "rerank", "grade", "generate", FIRST_TOKEN, "total"}
    assert np.isclose(record.confidence, answered["confidence"])


async def test_turns_that_another_version_wrote_differently_cost_their_thread_nothing_else(
    services: Services, library: dict[str, str]
) -> None:
    first, _ = await ask_for_events(services, "How long is the warranty of the Falke?")
    await services.runs.graph.aupdate_state(
        place_of(first["thread_id"]), {"turns": [{"q": "old"}]}, as_node="reconcile"
    )
    again, _ = await ask_for_events(
        services, "How long does the battery of the Falke last?", thread_id=first["thread_id"]
    )
    assert "14 months" in again["answer"]


class Sure:
    async def grade(self, question: str, sources: Sequence[Source], **_: Any) -> Grade:
        return Grade(0.9, [])


async def test_a_quoted_table_holds_when_it_is_checked(services: Services) -> None:
    table = b"# Care\n\n| Part | What to do | How often |\n|---|---|---|\n| Rain gauge | rinse | every month |\n| Solar panel | wipe | every 3 months |\n"
    await services.library.ingestion.add("default", "care.md", table)
    judges = replace(services.models.judges, grader=Sure())
    sure = replace(services, models=replace(services.models, judges=judges))
    done, _ = await ask_for_events(sure, "How often must the rain gauge be rinsed?", mode="thorough")
    assert "Rain gauge | rinse | every month" in done["answer"]
    assert done["verification"]["status"] == "quoted"


async def test_how_often_something_must_be_done_is_no_count_of_rows(services: Services) -> None:
    table = b"# Care\n\nPart | What to do | How often\nFilter cap | Replace | every 2 years\nBattery | Replace | every 8 years\n"
    await services.library.ingestion.add("default", "care.txt", table)
    done, _ = await ask_for_events(services, "How often must the filter cap be replaced?")
    assert "every 2 years" in done["answer"]


async def test_a_quoted_answer_admits_what_it_cannot_say(services: Services, library: dict[str, str]) -> None:
    partly, _ = await ask_for_events(services, "How long is the warranty of the Falke in Norway?", mode="thorough")
    assert "36 months" in partly["answer"]
    assert partly["answer"].endswith("The sources do not mention “Norway”.")
    assert partly["verification"]["status"] == "quoted"


async def test_a_passage_in_another_language_is_shown_by_its_meaning(
    services: Services, library: dict[str, str]
) -> None:
    done, _ = await ask_for_events(services, "Wer repariert ein undichtes Barometer, und was kostet das?")
    assert done["outcome"] == "showed_passages", done["answer"]
    assert {each["code"] for each in done["outcome_reasons"]} >= {"low_confidence", "other_language"}
    assert done["answer"].endswith("Fragen Sie in ihrer, dann finde ich mehr.")
    far, _ = await ask_for_events(services, "Wer gewann die Fußballweltmeisterschaft von 1954?")
    assert far["outcome"] == "abstained"
