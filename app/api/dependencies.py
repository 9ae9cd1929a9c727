"""Dependencies of the route handlers. In the API, only this module knows how the service is wired."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from time import monotonic, time
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Query, Request
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Message

from app.access.authentication import Authenticator
from app.access.refusals import RefusalLog
from app.answering.admission import Admission
from app.answering.following import follow_for_request
from app.answering.manager import RunManager
from app.api.perimeter.auditing import describe_refusal, record_change, status_of_exception
from app.api.perimeter.fields import refuse_unknown_fields
from app.api.perimeter.json_bodies import JsonRequest
from app.api.perimeter.limits import add_limits
from app.api.perimeter.watching import WATCH_SECONDS, WatchedResponse
from app.api.schema.schemas import WorkspaceId
from app.assistants import Assistants, WorkspaceModes
from app.history.steps import HistoryReader
from app.history.threads import Threads
from app.ingest.pipeline import Ingestion
from app.ingest.rendering import PageRenderer
from app.settings import Settings
from app.wiring.model_chooser import ModelChooser
from app.wiring.services import Services
from domain.errors import AskgraphError, Forbidden, Unauthenticated
from domain.health import Check
from domain.people.access import Caller, Right
from domain.ports.answers import AnswerCache
from domain.ports.conversations import ConversationIndex
from domain.ports.documents import DocumentStore
from domain.ports.feedback import FeedbackStore
from domain.ports.identities import SignIn
from domain.ports.ingestions import IngestionQueue
from domain.ports.keys import KeyStore
from domain.ports.originals import OriginalStore
from domain.ports.retention import Retention
from domain.ports.runs import RunLog
from domain.ports.workspaces import WorkspaceCatalog
from domain.profile import Profile
from domain.scope import Scope
from graphs.answer import AnswerGraph

Part = TypeVar("Part")
Endpoint = TypeVar("Endpoint", bound=Callable[..., object])


def read_services(request: Request) -> Services:
    """Return the open service that the lifespan put into the request's state."""
    return cast(Services, request.state.services)


def _provide(find: Callable[[Request], Part]) -> Callable[[Request], Awaitable[Part]]:
    # A coroutine, because FastAPI runs plain functions in a thread.
    async def provide(request: Request) -> Part:
        return find(request)

    return provide


def _pick(pick: Callable[[Services], Part]) -> Callable[[Request], Awaitable[Part]]:
    return _provide(lambda request: pick(read_services(request)))


def get_run_manager(request: Request) -> RunManager:
    """Return this process's run manager. Called directly where a dependency, of some 50 µs, would be felt."""
    return cast(RunManager, request.state.manager)


def get_authenticator(request: Request) -> Authenticator:
    """Return what identifies callers; see `get_run_manager`."""
    return cast(Authenticator, request.state.authenticator)


def get_caller(request: Request) -> Caller:
    """Return who sent the request, as `needs` found out; see `get_run_manager`."""
    return cast(Caller, request.state.caller)


_AUDITED: set[Right | None] = {"ingest", "admin"}
_WRITES = {"POST", "PUT", "PATCH", "DELETE"}


async def _note_dry_run(
    request: Request, dry_run: Annotated[bool, Query(description="Only say what would go.")] = False
) -> bool:
    request.state.is_dry_run = dry_run
    return dry_run


DryRun = Annotated[bool, Depends(_note_dry_run)]
"""True where a request is only to say what it would change. No such request is in the audit log."""


async def _audit(request: Request, caller: Caller, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    """Handle a request and record its outcome."""
    status = 500
    try:
        response = await handle(request)
        status = response.status_code
    except Exception as error:
        status = status_of_exception(error)
        raise
    finally:
        if not getattr(request.state, "is_dry_run", False):
            await record_change(read_services(request).audit, request, caller, status)
    return response


async def identify(request: Request, credential: str | None, right: Right | None = None, *others: Right) -> Caller:
    """Return who sends this credential, and has this right or one of the others. Who tries one in vain is recorded.

    Raises `Unauthenticated`, `Forbidden`, `DatabaseUnavailable` and `IdentityProviderUnavailable`.
    """
    caller: Caller | None = None
    try:
        caller = await get_authenticator(request).identify(credential)
        if right is not None and caller.rights.isdisjoint(others):
            caller.require(right)
    except (Unauthenticated, Forbidden) as error:
        if credential is not None:
            note_refusal(request, caller, error)
        raise
    return caller


def note_refusal(request: Request, caller: Caller | None, error: AskgraphError) -> None:
    """Record that this caller, None if unknown, was refused."""
    cast(RefusalLog, request.state.refusals).note(describe_refusal(request, caller, error))


def begins_run(endpoint: Endpoint) -> Endpoint:
    """Mark an endpoint that may begin a run. `needs` refuses its requests where the process has no room for one."""
    endpoint.begins_run = True  # type: ignore[attr-defined]
    return endpoint


def receives_files(endpoint: Endpoint) -> Endpoint:
    """Mark an endpoint whose bodies are large. `needs` refuses those for which there is no room, before they are read,
    and counts them until they have been answered (see `UploadRoom`)."""
    endpoint.receives_files = True  # type: ignore[attr-defined]
    return endpoint


@contextmanager
def _hold_room(request: Request, caller: Caller) -> Iterator[Request]:
    """Yield a request whose body there is room for. One that does not say its size is counted as it comes."""
    declared = request.headers.get("content-length", "")
    is_declared = declared.isdecimal()
    with read_services(request).uploads.hold(caller.name, int(declared) if is_declared else 0) as grow:

        async def receive() -> Message:
            message = await request.receive()
            grow(len(message.get("body", b"")))
            return message

        yield request if is_declared else JsonRequest(request.scope, receive)


def needs(right: Right | None, *others: Right) -> type[APIRoute]:
    """Make the route class of a router whose callers must be known and, unless it is None, have this right or one of
    the others. Both are checked before the body is read, and so is the limit of their requests. Room for a run is
    checked before that (see `begins_run`): who is refused should cost next to nothing."""
    is_audited = not _AUDITED.isdisjoint({right, *others})

    class GuardedRoute(APIRoute):
        knows_all_fields = True
        """False for a protocol whose clients send more than we know of."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handle_visit(request: Request) -> Response:
                with read_services(request).admission.visit():
                    return await handle_guarded(request)

            async def handle_guarded(request: Request) -> Response:
                request = JsonRequest(request.scope, request.receive)
                identify_again = partial(identify, request, read_credential(request), right, *others)
                caller = await identify_again()
                request.state.caller = caller
                followed = follow_for_request()

                async def look() -> None:
                    """Raise what the request would be refused with now."""
                    is_over = caller.until is not None and caller.until <= time()
                    if is_over or await identify_again() != caller:
                        raise Unauthenticated("This token has expired. Sign in again.")
                    for workspace_id in {workspace_id for workspace_id, _ in followed}:
                        run_ids = [run_id for within, run_id in followed if within == workspace_id]
                        await get_run_manager(request).require(Scope(workspace_id, groups=caller.groups), *run_ids)

                standing = await read_services(request).limits.count_request(caller)
                if standing is not None:
                    request.state.standing = standing
                    standing.check()
                began = monotonic()
                has_files = getattr(self.endpoint, "receives_files", False)
                with _hold_room(request, caller) if has_files else nullcontext(request) as held:
                    if self.knows_all_fields:
                        await refuse_unknown_fields(self, held)
                    if not is_audited or request.method not in _WRITES:
                        response = await handle(held)
                    else:
                        response = await _audit(held, caller, handle)
                if not is_audited and monotonic() - began > WATCH_SECONDS:
                    # What took so long may not be theirs any more.
                    await look()
                response = add_limits(request, response)
                if getattr(response, "body", b""):
                    return response
                return WatchedResponse(response, look)

            return handle_visit if getattr(self.endpoint, "begins_run", False) else handle_guarded

    return GuardedRoute


CallerDep = Annotated[Caller, Depends(_provide(get_caller))]


async def administrate_all(caller: CallerDep) -> None:
    """Raise `Forbidden` for who administers a part: a key opens whatever its maker says, a model writes for all."""
    if caller.workspaces is not None or caller.groups is not None:
        raise Forbidden("This is for administrators of the whole deployment, and your key opens a part of it.")


async def _enter_workspace(
    request: Request,
    caller: CallerDep,
    workspace: Annotated[
        WorkspaceId | None,
        Query(description="The workspace (tenant); unset: the only one of the caller's key, else `default`."),
    ] = None,
) -> str:
    request.state.workspace = entered = caller.enter(workspace)
    return entered


Workspace = Annotated[str, Depends(_enter_workspace)]
"""The workspace of a request that names it in its address. The caller may enter it."""


async def _enter_scope(caller: CallerDep, workspace: Workspace) -> Scope:
    return Scope(workspace, groups=caller.groups)


async def _describe_parts(request: Request) -> Mapping[str, str]:
    """Describe the parts to callers who may see the whole deployment; to others nothing, since the service's paths and
    addresses are in it."""
    try:
        caller = await get_authenticator(request).identify(read_credential(request))
    except AskgraphError:
        return {}
    return read_services(request).parts if caller.sees_deployment else {}


CallerScope = Annotated[Scope, Depends(_enter_scope)]
"""What of the workspace the caller may read."""

AdmissionDep = Annotated[Admission, Depends(_pick(lambda services: services.admission))]
AssistantsDep = Annotated[Assistants, Depends(_pick(lambda services: services.assistants))]
AnswersDep = Annotated[AnswerCache, Depends(_pick(lambda services: services.runs.answers))]
ChecksDep = Annotated[Mapping[str, Check], Depends(_pick(lambda services: services.checks))]
ConversationsDep = Annotated[ConversationIndex, Depends(_pick(lambda services: services.runs.conversations))]
DocumentsDep = Annotated[DocumentStore, Depends(_pick(lambda services: services.library.documents))]
FeedbackDep = Annotated[FeedbackStore, Depends(_pick(lambda services: services.runs.feedback))]
GraphDep = Annotated[AnswerGraph, Depends(_pick(lambda services: services.runs.graph))]
HistoryDep = Annotated[HistoryReader, Depends(_pick(lambda services: services.make_history_reader()))]
IngestionDep = Annotated[Ingestion, Depends(_pick(lambda services: services.library.ingestion))]
IngestionsDep = Annotated[IngestionQueue, Depends(_pick(lambda services: services.library.ingestions))]
KeysDep = Annotated[KeyStore, Depends(_pick(lambda services: services.keys))]
WorkspaceModesDep = Annotated[WorkspaceModes, Depends(_pick(lambda services: services.workspace_modes))]
ModesDep = Annotated[Mapping[str, Profile], Depends(_pick(lambda services: services.modes))]
OriginalsDep = Annotated[OriginalStore, Depends(_pick(lambda services: services.library.originals))]
PartsDep = Annotated[Mapping[str, str], Depends(_describe_parts)]
RendererDep = Annotated[PageRenderer, Depends(_provide(lambda request: cast(PageRenderer, request.state.renderer)))]
RunLogDep = Annotated[RunLog, Depends(_pick(lambda services: services.runs.log))]
RunManagerDep = Annotated[RunManager, Depends(_provide(get_run_manager))]
SignInDep = Annotated[SignIn | None, Depends(_pick(lambda services: services.identities.sign_in))]
WorkspacesDep = Annotated[WorkspaceCatalog, Depends(_pick(lambda services: services.workspaces))]
ThreadsDep = Annotated[Threads, Depends(_pick(lambda services: services.runs.threads))]
ModelChooserDep = Annotated[ModelChooser, Depends(_pick(lambda services: ModelChooser(services.settings)))]
RetentionDep = Annotated[Retention, Depends(_pick(lambda services: services.runs.retention))]
SettingsDep = Annotated[Settings, Depends(_pick(lambda services: services.settings))]


COOKIE = "askgraph_key"
MOST_CHARACTERS = 8_192
"""Longest credential; what is longer is cut, and known to nobody."""


def name_cookie(request: HTTPConnection, name: str = COOKIE) -> str:
    """Return the name of a cookie. By https it has a prefix with which browsers take it from this very host alone, and
    from no page of a neighbour's."""
    return f"__Host-{name}" if is_secure(request) else name


def is_secure(request: HTTPConnection) -> bool:
    """Return True where the browser asks by https, whatever the last proxy does."""
    return bool(request.scope.get("scheme") == "https")


def read_credential(request: HTTPConnection) -> str | None:
    """Return what `Authorization`, as a bearer's or alone, `X-API-Key`, `Api-Key` or the page's cookie holds, in this
    order; None where none does."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    credential = token.strip() if scheme.lower() == "bearer" else "" if token else scheme
    others = (request.headers.get(name, "").strip() for name in ("x-api-key", "api-key"))
    credential = credential or next(filter(None, others), "") or request.cookies.get(name_cookie(request), "")
    return credential[:MOST_CHARACTERS] or None
