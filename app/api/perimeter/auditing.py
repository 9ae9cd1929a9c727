"""Records who changed what."""

import logging

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from app.api.perimeter.errors import status_of
from domain.errors import AskgraphError
from domain.people.access import Caller
from domain.people.audit import AuditEntry, AuditLog, fit_targets
from domain.text.storable import make_storable

logger = logging.getLogger("askgraph.api")


def status_of_exception(error: Exception) -> int:
    """Return the HTTP status to which an exception of a route leads."""
    if isinstance(error, AskgraphError):
        return status_of(error)
    if isinstance(error, RequestValidationError):
        return 422
    return error.status_code if isinstance(error, HTTPException) else 500


def describe_refusal(request: Request, caller: Caller | None, error: AskgraphError) -> AuditEntry:
    """Make the entry of a request whose sender is not known (None), or lacks a right. It does not say what was asked
    for, so that a sender's attempts are counted together."""
    return AuditEntry(
        caller="unknown" if caller is None else caller.name,
        action="refused",
        targets=(error.message,),
        status=status_of(error),
        address=_find_address(request),
    )


async def record_change(log: AuditLog, request: Request, caller: Caller, status: int) -> None:
    """Store an entry for a request that has ended with this status.

    Handlers say in `request.state` what the address does not: `workspace` and `targets`. An entry that cannot be stored
    is written to the service's own log: the change is made already.
    """
    state = request.state
    route, named = request.scope.get("route"), request.path_params.values()
    targets = [*map(str, named), *(getattr(state, "targets", None) or filter(None, [request.url.query]))]
    entry = AuditEntry(
        caller=caller.name,
        action=f"{request.method} {getattr(route, 'path', '')}",
        targets=fit_targets(map(make_storable, targets)),
        status=status,
        workspace_id=getattr(state, "workspace", None),
        address=_find_address(request),
    )
    try:
        await log.add(entry)
    except AskgraphError as error:
        logger.error("The audit log misses an entry: %s %s", entry, error.message)


def _find_address(request: Request) -> str | None:
    return request.client.host if request.client else None
