"""Whatever comes in whatever order, an answer says what the documents say now, and only what those asked say.

A fact is a number that no other text has: what the model below holds can be derived, and nothing else.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.answering.manager import RunManager
from app.answering.requests import Ask, collect
from app.wiring.services import Services
from domain.events import Done
from domain.scope import Scope

THINGS = ("Falke", "Amsel")
MODES = ("fast", "standard")
WORKSPACES = ("one", "two")

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(WORKSPACES), st.sampled_from(THINGS), st.integers(0, 1)),
        st.tuples(st.just("delete"), st.sampled_from(WORKSPACES), st.sampled_from(THINGS), st.just(0)),
        st.tuples(st.just("ask"), st.sampled_from(WORKSPACES), st.sampled_from(THINGS), st.integers(0, 3)),
        st.tuples(st.just("go on"), st.sampled_from(WORKSPACES), st.sampled_from(THINGS), st.just(0)),
    ),
    min_size=4,
    max_size=12,
)


class _Model:
    """Drives the service, and knows what it must say."""

    def __init__(self, services: Services, turns: RunManager) -> None:
        self._services = services
        self._turns = turns
        self.facts: dict[tuple[str, str], str] = {}
        self._ids: dict[tuple[str, str], str] = {}
        self._threads: dict[tuple[str, str], str] = {}

    async def take(self, step: tuple[str, str, str, int]) -> None:
        """One step, and what must be true after it."""
        what, workspace, thing, choice = step
        place = (workspace, thing)
        if what == "add":
            # The same text may come again after another one, or after it was deleted.
            fact = f"{(WORKSPACES.index(workspace) * 4 + THINGS.index(thing) * 2 + choice) + 31} months"
            text = f"# {thing} manual\n\nThe {thing} weather station has a warranty of {fact}.\n"
            report = await self._services.library.ingestion.add(workspace, f"{thing}.md", text.encode())
            assert report.document_id is not None
            self.facts[place], self._ids[place] = fact, report.document_id
        elif what == "delete" and place in self._ids:
            assert await self._services.library.ingestion.delete(workspace, self._ids.pop(place))
            del self.facts[place]
        elif what == "ask":
            documents = (self._ids[place],) if choice > 1 and place in self._ids else None
            question = f"How long is the warranty of the {thing}?"
            done = await self._ask(Ask(question, Scope(workspace, documents), mode=MODES[choice % 2]))
            self._check(done, place)
            assert done["mode"] == MODES[choice % 2]
            self._threads[place] = done["thread_id"]
        elif what == "go on" and place in self._threads:
            done = await self._ask(Ask("How long is its warranty?", Scope(workspace), thread_id=self._threads[place]))
            # Which of two things is meant is the answerer's to find out, and not always found.
            self._check_quotes(done, workspace)

    async def _ask(self, ask: Ask) -> Done:
        last, _ = await collect(await self._turns.ask(ask))
        assert last["type"] == "done", last
        return last

    def _check_quotes(self, done: Done, workspace_id: str) -> set[str]:
        said = {fact for fact in (f"{number} months" for number in range(31, 39)) if fact in done["answer"]}
        # An answer may quote the other thing's document of the same workspace beside, never one that is not there.
        assert said <= {fact for (workspace, _), fact in self.facts.items() if workspace == workspace_id}
        return said

    def _check(self, done: Done, place: tuple[str, str]) -> None:
        said = self._check_quotes(done, place[0])
        if place in self.facts:
            assert self.facts[place] in said, (done["answer"], self.facts)
            assert done["citations"]


async def _drive(services: Services, steps: list[tuple[str, str, str, int]]) -> None:
    for workspace in WORKSPACES:
        await services.library.documents.clear(workspace)
    async with services.make_run_manager() as turns:
        model = _Model(services, turns)
        for step in steps:
            await model.take(step)


async def test_no_answer_is_stale_or_another_s(services: Services) -> None:
    loop = asyncio.get_running_loop()

    def wait_for(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    @settings(max_examples=12, deadline=None, print_blob=True, database=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def drive(steps: list[tuple[str, str, str, int]]) -> None:
        wait_for(_drive(services, steps))

    # hypothesis calls what is not a coroutine, so it has a thread of its own.
    await asyncio.to_thread(drive)
