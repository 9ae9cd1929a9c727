"""A question and its whole answer, and the models that are asked in most tests."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import SecretStr

from app.answering.requests import Ask, collect
from app.api.operating.health import readyz
from app.history.thread_states import ThreadStates
from app.modes import merge_knobs
from app.settings import Settings
from app.wiring.services import Services, open_services
from domain.events import Done, Event
from domain.history.run_lists import RunFilter
from domain.profile import MODES, Profile
from domain.runs import Lease, RunRecord
from domain.scope import Scope
from graphs.answer import AnswerGraph
from nodes.wording.notices import read_catalogue
from tests.wire.openai import OpenAIServer, serve_openai

_TEXTS = read_catalogue("en")
ABSTENTION = _TEXTS.abstention.sentence
CAVEAT = f"{_TEXTS.caveat.low_confidence}\n\n"

SHORT_HANDBOOK = (
    b"# Handbook\n\nThe Falke has a warranty of 36 months. Claims are handled by Petra Lindqvist in Malmo.\n"
)
QUESTION = "How long is the warranty of the Falke?"
SMALL, LARGE, JUDGE = "gpt-4.1-nano", "gpt-4.1-mini", "gpt-4.1"


def with_models(settings: Settings, server: OpenAIServer, **changes: Any) -> Settings:
    """Settings with a model for every tier, behind `server`; `changes` win."""
    models = {"model_small": SMALL, "model_large": LARGE, "model_judge": JUDGE}
    access = {"openai_api_key": SecretStr("sk-test"), "openai_base_url": server.base_url}
    return settings.model_copy(update=models | access | changes)


@asynccontextmanager
async def serve_models(
    settings: Settings, documents: Mapping[str, bytes], *, changes: Mapping[str, Any] | None = None, **behaviour: Any
) -> AsyncIterator[tuple[Services, OpenAIServer]]:
    """Services with these documents, by name, whose models are behind a server that behaves so."""
    async with (
        serve_openai(**behaviour) as server,
        open_services(with_models(settings, server, **(changes or {}))) as services,
    ):
        for name, content in documents.items():
            await services.library.ingestion.add("default", name, content)
        yield services, server


async def list_thread(services: Services, thread_id: str) -> list[RunRecord]:
    """The records of a thread, oldest first."""
    listed = await services.runs.log.list_runs(Scope("default"), RunFilter(datetime.min.replace(tzinfo=UTC)))
    read = [await services.runs.log.get("default", run.run_id) for run in listed if run.thread_id == thread_id]
    return [record for record in reversed(read) if record]


async def refuse_run(lease: Lease) -> None:
    """What a worker does with runs where there should be none."""
    raise AssertionError("nobody has asked anything")


def routing(question: str = QUESTION, route: str = "needs_retrieval") -> str:
    """What a model says that routes a question."""
    return json.dumps({"route": route, "standalone_question": question, "reason": ""})


def steps_of(events: Iterable[Event]) -> list[str]:
    """The steps that the events tell of."""
    return [event["step"] for event in events if event["type"] == "thinking"]


def with_graph(services: Services, graph: AnswerGraph) -> Services:
    """The same services, with another graph over the same saved states."""
    states = services.runs.states
    return replace(
        services, runs=replace(services.runs, states=ThreadStates(graph, states._flush, states.translating_errors))
    )


def with_search(services: Services, search: Any) -> Services:
    """The same services, with another port to search the library through."""
    return replace(services, library=replace(services.library, search=search))


async def read_health(services: Services) -> dict[str, Any]:
    """The body of /readyz."""
    response = await readyz(
        services.checks,
        services.parts,
        services.modes,
        services.admission,
        services.make_run_manager(),
        services.identities.sign_in,
        services.settings,
    )
    return cast(dict[str, Any], json.loads(bytes(response.body)))


def vary(base: str = "standard", **knobs: Any) -> Profile:
    """A shipped mode with other knobs, as a mode of the test's own."""
    return Profile.model_validate(merge_knobs(MODES[base].model_dump(), knobs) | {"name": "own"})


async def ask(services: Services, question: str = QUESTION, **options: Any) -> Done:
    """The end of a turn that was answered. `options` are fields of `Ask`, or a `profile`."""
    return (await ask_for_events(services, question, **options))[0]


async def ask_for_events(
    services: Services, question: str = QUESTION, *, profile: Profile | None = None, **options: Any
) -> tuple[Done, list[Event]]:
    """The end of the turn, and all of its events. `profile`: a mode of the test's own."""
    if profile is not None:
        services = replace(services, modes={profile.name: profile})
        options["mode"] = profile.name
    async with services.make_run_manager() as turns:
        ended, events = await collect(await turns.ask(Ask(question, **options)))
    assert ended["type"] == "done", ended
    return ended, events


def place_of(thread_id: str) -> Any:
    """Where the graph keeps the states of a thread of the default workspace."""
    return {"configurable": {"thread_id": thread_id, "workspace_id": "default"}}


async def read_state(services: Services, thread_id: str) -> dict[str, Any]:
    """The last state of a thread of the default workspace."""
    return (await services.runs.graph.aget_state(place_of(thread_id))).values


async def ask_for_state(services: Services, question: str = QUESTION, **options: Any) -> tuple[Done, dict[str, Any]]:
    """The end of the turn, and the state that it left."""
    ended = await ask(services, question, **options)
    return ended, await read_state(services, ended["thread_id"])
