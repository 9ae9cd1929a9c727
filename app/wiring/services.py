"""Composition: opens all parts of the service in order, joins the workbench to them, and closes them in reverse."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from prometheus_client import CollectorRegistry

from app.access.authority import Authority
from app.access.limits import CallerLimits
from app.adapters.postgres.question_sets import PostgresQuestionSets
from app.adapters.postgres.workspaces import PostgresWorkspaceCatalog
from app.adapters.prices import read_prices
from app.adapters.tracing.models import TracedModel
from app.answering.admission import Admission
from app.answering.manager import RunManager
from app.answering.parts import RunParts
from app.assistants import Assistants, WorkspaceModes
from app.history.forgetting import Forgetting
from app.history.steps import HistoryReader
from app.ingest.figure_pages import FigurePages
from app.ingest.uploads import UploadRoom
from app.modes import fit_modes, read_modes
from app.settings import Settings
from app.starters import Starters
from app.support.cancelling import finish
from app.support.spans import are_sent, span
from app.support.turns import Turns
from app.wiring.functions import connect_functions
from app.wiring.identities import Identities, open_identities
from app.wiring.library import LibraryServices, open_library
from app.wiring.metrics import measure
from app.wiring.models import ModelServices, open_models
from app.wiring.runs import RunServices, connect_answers, open_runs
from app.wiring.servers import Servers, open_servers
from app.wiring.stores import Stores
from app.workbench.debugger import Debugger
from app.workbench.replay.replay import Replayer
from app.workbench.tapes.observing import Tapes
from domain.health import Check
from domain.people.access import Caller
from domain.people.audit import AuditLog
from domain.people.limits import Cost
from domain.ports.functions import Functions
from domain.ports.keys import KeyStore
from domain.ports.question_sets import QuestionSets
from domain.ports.workspaces import WorkspaceCatalog
from domain.profile import Profile
from nodes.context import Context, Models

if TYPE_CHECKING:
    from fastapi import APIRouter


@dataclass(frozen=True, slots=True)
class Services:
    """The open service, by concern."""

    settings: Settings
    servers: Servers
    modes: Mapping[str, Profile]
    library: LibraryServices
    models: ModelServices
    runs: RunServices
    admission: Admission
    limits: CallerLimits
    uploads: UploadRoom
    work_turns: Turns
    """Turns of callers whose work is no run: two at once, so that questions do not wait for it, and one of each."""
    tapes: Tapes
    keys: KeyStore
    workspaces: WorkspaceCatalog
    sets: QuestionSets
    starters: Starters
    identities: Identities
    audit: AuditLog
    checks: Mapping[str, Check]
    """Health checks by part; see `domain.health`."""
    functions: Functions | None
    parts: Mapping[str, str]
    """A description of each part for people who start the service."""

    @property
    def access(self) -> str:
        """How callers are known, for people."""
        return "by key" if self.identities.tokens is None else f"by key, or by a token of {self.settings.oidc_issuer}"

    @property
    def workspace_modes(self) -> WorkspaceModes:
        """The modes, and each workspace's assistants."""
        return WorkspaceModes(
            self.modes, self.runs.assistants, self.library.documents, {name for _, name in self.models.chat.named}
        )

    @property
    def assistants(self) -> Assistants:
        """What makes and changes assistants."""
        return Assistants(self.workspace_modes)

    def make_context(self) -> Context:
        """Make the context of one pass through the graph. Each pass needs its own: it is not checkpointed."""
        return Context(
            library=self.library.search,
            embedder=self.library.embedder,
            judges=self.models.judges,
            tokens=self.models.tokens,
            rerankers=self.models.rerankers,
            calculator=self.library.calculator,
            pictures=FigurePages(self.library.originals, self.library.parsers),
            functions=self.functions,
            models=self.models.chat.map(TracedModel) if are_sent() else self.models.chat,
            span=span,
        )

    def make_run_parts(self) -> RunParts:
        """Collect the parts that executing runs needs."""
        return RunParts(
            states=self.runs.states,
            threads=self.runs.threads,
            queue=self.runs.queue,
            streams=self.runs.streams,
            answers=self.runs.answers,
            documents=self.library.documents,
            modes=self.workspace_modes,
            observe=self.tapes.observe,
            fingerprint=self.runs.fingerprint,
            make_context=self.make_context,
            trace_url=self.runs.trace_url,
            admission=self.admission,
            limits=self.limits,
            authority=Authority(self.keys),
        )

    @asynccontextmanager
    async def begin_work(self, caller: Caller, tokens: int) -> AsyncIterator[None]:
        """Count work that is no run of the graph as one, and wait for its turn: it takes as much of the processor. Its
        tokens count also where it is broken off.

        Raises `Saturated`, `TooManyRuns` and `BudgetSpent`.
        """
        work_id, spent = str(uuid4()), 0
        self.admission.check()
        self.admission.enter()
        try:
            await self.limits.begin_run(caller, work_id, Cost(tokens))
            # Its own turn first: what waits for it must keep no question from being prepared.
            async with self.work_turns.take(caller.name), self.admission.take_turn():
                spent = tokens
                yield
        finally:
            self.admission.leave()
            await finish(lambda: self.limits.end_run(caller.name, work_id, spent))

    async def measure(self) -> CollectorRegistry:
        """Measure how busy this process is, and how full the queues of all processes are."""
        return await measure(self.admission, self.servers.database, self.library.backlog)

    def make_run_manager(self) -> RunManager:
        """Make a manager of this process's runs."""
        return RunManager(self.make_run_parts())

    def make_replayer(self, manager: RunManager) -> Replayer:
        """Make what opens replays; `manager` executes those that are runs."""
        return Replayer(manager, self.make_run_parts(), self.tapes, self.runs.log, self.runs.thread_store)

    def make_debugger(self) -> Debugger:
        """Make what reads runs to explain, compare and export them."""
        return Debugger(self.make_run_parts(), self.runs.log)

    @staticmethod
    def list_debug_routers() -> Sequence["APIRouter"]:
        """List the routes of the workbench. Imported only by a process that serves."""
        from app.workbench.api import debug, sets

        return (*debug.ROUTERS, sets.router)

    def make_history_reader(self) -> HistoryReader:
        """Make what reads the history of threads."""
        return HistoryReader(self.runs.threads, self.runs.states, self.runs.saved_states)

    def make_forgetting(self) -> Forgetting:
        """Make what forgets documents and threads."""
        return Forgetting(
            self.runs.eraser,
            self.runs.cache_eraser,
            self.runs.streams,
            self.library.ingestion.delete,
            self.library.documents,
            self.runs.threads,
            self.library.originals,
            self.runs.files,
        )


def _is_local(library: LibraryServices, models: ModelServices) -> bool:
    """Return True where no model that searches or judges is on another server."""
    return models.chat.small is None and library.embedder.is_local and "rerank" not in models.checks


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open everything, and close it in reverse order.

    Raises `ConfigurationError` and `DatabaseUnavailable`.
    """
    modes = read_modes(settings)
    functions = connect_functions(settings, modes)
    prices = read_prices(settings.prices)
    async with open_servers(settings) as servers, AsyncExitStack() as stack:
        stores = Stores(settings, servers.database)
        answers = await connect_answers(settings, servers)
        library = await stack.enter_async_context(open_library(settings, servers, prices, answers))
        modes = fit_modes(modes, library.embedder.name, library.embedder.scale)
        async with (
            open_models(settings, modes, prices, library) as models,
            open_runs(settings, servers, stores, answers, library, models) as runs,
        ):
            yield Services(
                settings=settings,
                servers=servers,
                modes=modes,
                library=library,
                models=models,
                runs=runs,
                admission=Admission(settings.max_runs, is_local=_is_local(library, models)),
                limits=CallerLimits(runs.usage, settings.limits, is_free=models.chat == Models()),
                uploads=UploadRoom(settings.max_upload_bytes),
                work_turns=Turns(2, 1),
                tapes=Tapes(settings.untaped_workspaces, enabled=settings.tapes),
                identities=await stack.enter_async_context(open_identities(settings)),
                keys=stores.keys,
                sets=PostgresQuestionSets(servers.database.pool),
                starters=Starters(library.documents, modes),
                workspaces=PostgresWorkspaceCatalog(servers.database.pool),
                audit=stores.audit,
                checks={**servers.checks(), **models.checks, **library.checks},
                functions=functions,
                parts={**servers.parts, **models.parts, **library.parts, **runs.parts},
            )
